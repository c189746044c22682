"""Subgoals: the sets per category, how often each subgoal was achieved, and their definition."""

from poc.ui import subgoals
from poc.ui.shell import page

with page("subgoals") as workspace:
    category = subgoals.chosen(workspace)
    if category:
        subgoals.counts(workspace, category)
    subgoals.editor(workspace, category)
