"""Long work in a process of its own: progress, cancel, survives a reload and a restart.

A job is one verb of the shell (``python -m poc.cli <verb> ... --json``),
started detached. All that is known of it lies in a folder beside the
workspace, ``<workspace>.files/jobs/<id>/``:

==================  =====================================================
``job.json``        verb, arguments, pid and its start time; never a key
``progress.json``   written by the child through `report_progress`
``stdout``          the verb's one JSON object
``stderr``          what it said besides
``cancel``          present once a stop was asked for
``exit``            the exit code, written by a small supervisor
==================  =====================================================

So any process, also one started later, can tell how a job is doing. A child
that died without a word (killed, out of memory, machine restarted) has no
``exit`` and no process with the recorded pid *and* start time: it is shown as
lost, not as running. Keys reach the child through its environment only.

Does not know what any verb does.
"""

from poc.jobs.control import cancel, get, jobs, latest, start
from poc.jobs.job import Job, State
from poc.jobs.progress import JOB_DIRECTORY, Progress, report_progress

__all__ = ["JOB_DIRECTORY", "Job", "Progress", "State", "cancel", "get", "jobs", "latest", "report_progress", "start"]
