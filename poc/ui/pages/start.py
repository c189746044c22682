"""Start: what logs alone can show, what needs an environment, and how far this workspace is."""

from poc.ui import start
from poc.ui.shell import page

with page("start") as workspace:
    start.three_sentences(workspace)
    start.way(workspace)
    start.begin(workspace)
