"""Replays: a frozen plan, its estimate and preview, and running it against a model."""

from poc.replay.estimate import estimate, spoken_notes
from poc.replay.experiment import (
    BudgetLimits,
    ContextSettings,
    EnvironmentSettings,
    Estimate,
    Limits,
    Plan,
    Thresholds,
)
from poc.replay.planning import make_plan, store_plan
from poc.replay.preview import Preview, preview
from poc.replay.runner import RunSummary, merge_journal, run
from poc.replay.status import ArmStatus, ReplayStatus, status
from poc.replay.store import Experiment, load_experiment

__all__ = [
    "ArmStatus",
    "BudgetLimits",
    "ContextSettings",
    "EnvironmentSettings",
    "Estimate",
    "Experiment",
    "Limits",
    "Plan",
    "Preview",
    "ReplayStatus",
    "RunSummary",
    "Thresholds",
    "estimate",
    "load_experiment",
    "make_plan",
    "merge_journal",
    "preview",
    "run",
    "spoken_notes",
    "status",
    "store_plan",
]
