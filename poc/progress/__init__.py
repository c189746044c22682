"""Progress of runs: scored in SQL, tracked live, shown to models as an allowlist, and checked against outcomes."""

from poc.progress.score import CategoryScore, ScoreSummary, score
from poc.progress.tracker import ProgressRecord, Tracker
from poc.progress.validity import Validity, validity
from poc.progress.view import ProgressView, SubgoalView
from poc.progress.why import Explanation, why

__all__ = [
    "CategoryScore",
    "Explanation",
    "ProgressRecord",
    "ProgressView",
    "ScoreSummary",
    "SubgoalView",
    "Tracker",
    "Validity",
    "score",
    "validity",
    "why",
]
