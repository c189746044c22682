"""Readiness: are the logs good enough, what do gaps block, how are they closed; what tools do to the world."""

from poc.ui import readiness
from poc.ui.shell import page

with page("readiness") as workspace:
    found = readiness.level(workspace)
    if found is not None:
        readiness.checks(found)
        readiness.gaps(workspace, found)
        readiness.parts(workspace, found)
    readiness.tools(workspace)
