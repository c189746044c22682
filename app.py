"""Streamlit entry: page config and navigation, nothing else."""

import streamlit as st

from poc.ui.shell import pages, sidebar
from poc.ui.words import say

st.set_page_config(page_title=say("app.title"), page_icon="🏁", layout="wide")
page = st.navigation(pages())
sidebar()
page.run()
