"""Which set a run belongs to: the rules of sets, in SQL over tasks and runs, and in Python for one task.

Sets are asked in order and the first that fits claims the run. Rules look at
the log's own category (the run's, else its task's), the task key, the task
text and scenario, and, where a rule names tools, at the steps of the agent.

Knows nothing of subgoals.
"""

from __future__ import annotations

from collections.abc import Sequence

from poc.subgoals.patterns import fits, fits_sql, searches, searches_sql
from poc.subgoals.spec import RunRule, SubgoalSet


def rule_sql(rule: RunRule) -> str:
    """A rule in SQL over `category`, `task_key`, `task_text`, `scenario` and `run_id`; TRUE or FALSE, never NULL."""
    tests = []
    if rule.category is not None:
        tests.append(fits_sql(rule.category, "category"))
    if rule.task_key is not None:
        tests.append(fits_sql(rule.task_key, "task_key"))
    if rule.task_text is not None:
        tests.append(searches_sql(rule.task_text, "task_text"))
    if rule.scenario is not None:
        tests.append(searches_sql(rule.scenario, "scenario"))
    if rule.tool is not None:
        tests.append(
            f"run_id IN (SELECT s.run_id FROM steps s WHERE s.caller <> 'user' AND {fits_sql(rule.tool, 's.tool')})"
        )
    return f"coalesce({' AND '.join(tests)}, FALSE)" if tests else "TRUE"


def fits_task(
    rule: RunRule,
    *,
    category: str | None = None,
    task_key: str | None = None,
    task_text: str | None = None,
    scenario: str | None = None,
) -> bool | None:
    """Whether a task fits a rule; None when that depends on what the run will do (`tool`)."""
    if rule.category is not None and not fits(rule.category, category):
        return False
    if rule.task_key is not None and not fits(rule.task_key, task_key):
        return False
    if rule.task_text is not None and (task_text is None or not searches(rule.task_text, task_text)):
        return False
    if rule.scenario is not None and (scenario is None or not searches(rule.scenario, scenario)):
        return False
    return True if rule.judges_task else None


def set_for_task(
    sets: Sequence[SubgoalSet],
    *,
    category: str | None = None,
    task_key: str | None = None,
    task_text: str | None = None,
    scenario: str | None = None,
) -> SubgoalSet | None:
    """The set that claims every run of a task, whatever the run does; None when none does for sure.

    A set whose rule names tools may claim some runs of the task; sets after
    it then claim none for sure.
    """
    for candidate in sets:
        fit = fits_task(candidate.runs, category=category, task_key=task_key, task_text=task_text, scenario=scenario)
        if fit is not False:
            return candidate if fit else None
    return None


def claims_sql(sets: Sequence[SubgoalSet]) -> str:
    """SQL for one row a run: run_id, place of the claiming set in `sets` (NULL: none), how many sets fit."""
    flags = ", ".join(f"({rule_sql(each.runs)})::INTEGER AS fit_{place}" for place, each in enumerate(sets))
    first = " ".join(f"WHEN fit_{place} = 1 THEN {place}" for place in range(len(sets)))
    count = " + ".join(f"fit_{place}" for place in range(len(sets)))
    return f"""
        SELECT run_id, CASE {first} END AS set_place, {count} AS fitting
        FROM (
            SELECT run_id, {flags}
            FROM (
                SELECT r.run_id, coalesce(r.category, t.category) AS category, t.task_key, t.text AS task_text,
                       t.scenario
                FROM runs r LEFT JOIN tasks t USING (task_id)
            )
        )
    """
