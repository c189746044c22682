"""Subgoal sets: what they say (YAML), how they judge a step (SQL and live) and which runs they claim."""

from poc.subgoals.predicate import Facts, Predicate
from poc.subgoals.rules import set_for_task
from poc.subgoals.source import SpecError
from poc.subgoals.spec import MadeFrom, RunRule, StepCondition, Subgoal, SubgoalSet, load_sets, parse_set
from poc.subgoals.store import active_sets, retire_set, set_by_hash, store_sets

__all__ = [
    "Facts",
    "MadeFrom",
    "Predicate",
    "RunRule",
    "SpecError",
    "StepCondition",
    "Subgoal",
    "SubgoalSet",
    "active_sets",
    "load_sets",
    "parse_set",
    "retire_set",
    "set_by_hash",
    "set_for_task",
    "store_sets",
]
