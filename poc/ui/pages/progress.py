"""Progress: score the runs, see whether progress goes with the outcome, follow one run."""

from poc.ui import progress
from poc.ui.shell import page

with page("progress") as workspace:
    if progress.scoring(workspace):
        progress.against_outcome(workspace)
        progress.one_run(workspace)
