"""The Streamlit app: pages without logic, and the parts that they share."""
