"""Decision: the verdict, what it rests on, and the report."""

from poc.ui import choice, decision
from poc.ui.shell import page

with page("decision") as workspace:
    decision.verdict(workspace, choice.experiment(workspace))
