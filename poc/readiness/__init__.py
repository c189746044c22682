"""Is this log good enough to judge anything, and what would make it better?"""

from poc.readiness.assess import Check, Readiness, assess, stored
from poc.readiness.count import evidence, shares
from poc.readiness.findings import Finding, findings
from poc.readiness.speech import describe, headline
from poc.readiness.times import run_times, runs_over_time
from poc.readiness.todo import todo_csv, todo_markdown

__all__ = [
    "Check",
    "Finding",
    "Readiness",
    "assess",
    "describe",
    "evidence",
    "findings",
    "headline",
    "run_times",
    "runs_over_time",
    "shares",
    "stored",
    "todo_csv",
    "todo_markdown",
]
