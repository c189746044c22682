"""The weighted share of subgoals achieved, in Python and in SQL, side by side.

Both add the weights in the order of the set, so that a log scored in SQL and
the same run tracked live give the same double. Knows no step and no table.
"""

from __future__ import annotations

from collections.abc import Collection

from poc.subgoals import SubgoalSet


def share(subgoal_set: SubgoalSet, done: Collection[str]) -> float:
    """Weight of the subgoals in `done` by the weight of all: 0..1."""
    reached = 0.0
    for subgoal in subgoal_set.subgoals:
        reached += subgoal.weight if subgoal.id in done else 0.0
    return reached / subgoal_set.total_weight


def share_sql(subgoal_set: SubgoalSet, mask: str) -> str:
    """`share` in SQL for a BIGINT whose bit i says that the subgoal at position i is done."""
    parts = [
        f"CASE WHEN {mask} & {1 << place} <> 0 THEN {_double(subgoal.weight)} ELSE {_double(0.0)} END"
        for place, subgoal in enumerate(subgoal_set.subgoals)
    ]
    return f"({' + '.join(parts)}) / {_double(subgoal_set.total_weight)}"


def _double(number: float) -> str:
    return f"CAST('{number!r}' AS DOUBLE)"  # a bare 0.1 would be a DECIMAL
