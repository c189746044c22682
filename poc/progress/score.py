"""All runs of a workspace scored in SQL: which set claims which run, what was achieved when, progress per step.

The steps are read once. One SELECT judges every condition of every set and
packs the answers into a bit mask per step (bit i: the subgoal at position i);
all the rest is done on those masks. The meaning is that of
`poc.progress.tracker`. Knows nothing of outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from poc.errors import InputError
from poc.progress.share import share_sql
from poc.subgoals import Predicate, SubgoalSet, active_sets
from poc.subgoals.patterns import literal
from poc.subgoals.predicate import result_json_sql
from poc.subgoals.rules import claims_sql
from poc.subgoals.spec import in_order
from poc.workspace import Connection, Workspace

_TEMPORARY = ("poc_claims", "poc_flags", "poc_first", "poc_mask")


class CategoryScore(msgspec.Struct, frozen=True):
    """One category: its set, runs claimed, those without any step of the agent, steps, mean final progress (0..1).

    `mean_progress` is the mean over runs of the high-water mark at the end; None without runs.
    """

    category: str
    set_hash: str
    runs: int
    without_steps: int
    steps: int
    mean_progress: float | None


class ScoreSummary(msgspec.Struct, frozen=True):
    """What scoring did. `runs` = `scored` + `unassigned` (no set claims them).

    `overlapping` counts the scored runs that more than one set's rule fits;
    the first set in order has claimed them. `steps` are those judged.
    """

    runs: int
    scored: int
    unassigned: int
    overlapping: int
    steps: int
    categories: list[CategoryScore]


def score(workspace: Workspace) -> ScoreSummary:
    """Score every run with the active sets and store the result, in place of any earlier one.

    Writes `assignments`, `achievements` and `progress` in one transaction.
    Raises `InputError` when no set is active.
    """
    sets = active_sets(workspace)
    if not sets:
        raise InputError(
            "There is no subgoal set in this workspace.",
            where=str(workspace.path),
            todo="Load one: poc subgoals load FOLDER, or the Subgoals page.",
        )
    with workspace.write() as db:
        for table in ("assignments", "achievements", "progress"):
            db.execute(f"DELETE FROM {table}")
        db.execute(f"CREATE OR REPLACE TEMP TABLE poc_claims AS {claims_sql(sets)}")
        db.execute(
            f"""
            INSERT INTO assignments
            SELECT run_id, {_by_place(sets, [literal(each.hash) for each in sets])}
            FROM poc_claims WHERE set_place IS NOT NULL
            """
        )
        db.execute(f"CREATE OR REPLACE TEMP TABLE poc_flags AS {flags_sql(sets)}")
        for place, each in enumerate(sets):
            _score_set(db, place, each)
        summary = _summary(db, sets)
        for table in _TEMPORARY:
            db.execute(f"DROP TABLE IF EXISTS {table}")
    return summary


def flags_sql(sets: Sequence[SubgoalSet]) -> str:
    """SQL for one row a step of the agent in a claimed run: run_id, set_place, step, masks `done` and `undone`."""
    done, undone, result_json = [], [], []
    for each in sets:
        finishing = [Predicate(subgoal.done_when) for subgoal in each.subgoals]
        undoing = [None if subgoal.undone_when is None else Predicate(subgoal.undone_when) for subgoal in each.subgoals]
        done.append(_mask_sql(finishing))
        undone.append(_mask_sql(undoing))
        result_json.append(result_json_sql([*finishing, *filter(None, undoing)]))
    return f"""
        SELECT run_id, set_place, step, {_by_place(sets, done)} AS done, {_by_place(sets, undone)} AS undone
        FROM (
            SELECT run_id, set_place, step, tool, status, arguments, result,
                   {_by_place(sets, result_json)} AS result_json
            FROM steps JOIN poc_claims USING (run_id)
            WHERE set_place IS NOT NULL AND caller <> 'user'
        )
    """


def _mask_sql(predicates: Sequence[Predicate | None]) -> str:
    bits = [
        f"CASE WHEN {predicate.sql()} THEN {1 << place}::BIGINT ELSE 0::BIGINT END"
        for place, predicate in enumerate(predicates)
        if predicate is not None
    ]
    return " | ".join(bits) or "0::BIGINT"


def _by_place(sets: Sequence[SubgoalSet], expressions: Sequence[str]) -> str:
    """The expression of the set that claims the run; only that one is evaluated."""
    if len(sets) == 1 or len(set(expressions)) == 1:
        return expressions[0]
    branches = " ".join(f"WHEN {place} THEN ({expression})" for place, expression in enumerate(expressions))
    return f"CASE set_place {branches} END"


def _score_set(db: Connection, place: int, each: SubgoalSet) -> None:
    """Achievements and progress of the runs that one set claims, from their masks."""
    gated = _first_achievements(db, place, each)
    flags = "poc_flags LEFT JOIN poc_first USING (run_id)" if gated else "poc_flags"
    window = "(PARTITION BY run_id ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    by_run = "(PARTITION BY run_id ORDER BY step)"
    undoable = [bit for bit, subgoal in enumerate(each.subgoals) if subgoal.undone_when is not None]
    lasting = sum(1 << bit for bit in range(len(each.subgoals)) if bit not in undoable)
    states = [f"bit_or(counted & {lasting}) OVER {window}"] + [
        # The last event of the subgoal decides; at one step, undone wins over done.
        f"""coalesce(last_value(CASE WHEN undone & {1 << bit} <> 0 THEN 0::BIGINT
            WHEN counted & {1 << bit} <> 0 THEN {1 << bit}::BIGINT END IGNORE NULLS) OVER {window}, 0)"""
        for bit in undoable
    ]
    db.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE poc_mask AS
        SELECT run_id, step, mask, lag(mask, 1, 0::BIGINT) OVER {by_run} AS mask_before
        FROM (
            SELECT run_id, step, {" | ".join(states)} AS mask
            FROM (SELECT run_id, step, undone, {_counted_sql(each)} AS counted FROM {flags} WHERE set_place = {place})
        )
        """
    )
    set_hash = literal(each.hash)
    db.execute(
        f"""
        INSERT INTO progress BY NAME
        SELECT run_id, {set_hash} AS set_hash, step, current, max(current) OVER {window} AS high_water,
               current - before AS gain
        FROM (SELECT run_id, step, {share_sql(each, "mask")} AS current,
                     {share_sql(each, "mask_before")} AS before FROM poc_mask)
        """
    )
    names = ", ".join(f"({1 << bit}::BIGINT, {literal(subgoal.id)})" for bit, subgoal in enumerate(each.subgoals))
    db.execute(
        f"""
        INSERT INTO achievements BY NAME
        SELECT run_id, {set_hash} AS set_hash, subgoal, step,
               CASE WHEN mask & bit <> 0 THEN 'achieved' ELSE 'undone' END AS event
        FROM poc_mask JOIN (VALUES {names}) AS names(bit, subgoal) ON mask & bit <> mask_before & bit
        WHERE mask <> mask_before
        """
    )


def _first_achievements(db: Connection, place: int, each: SubgoalSet) -> bool:
    """Make `poc_first`: per run the step at which each subgoal that others wait for was first achieved (f<bit>).

    Subgoals are taken layer by layer, since the first achievement of one may
    depend on that of another. False when no subgoal waits for another.
    """
    awaited = {other for subgoal in each.subgoals for other in subgoal.after}
    if not awaited:
        return False
    known: list[str] = []
    for layer in in_order(each.subgoals):
        bits = [bit for bit in layer if each.subgoals[bit].id in awaited]
        if not bits:
            continue
        firsts = ", ".join(
            f"min(step) FILTER (counted & {1 << bit} <> 0 AND undone & {1 << bit} = 0) AS f{bit}" for bit in bits
        )
        earlier = f"poc_flags {'LEFT JOIN poc_first USING (run_id)' if known else ''}"
        carried = "".join(f", any_value({name}) AS {name}" for name in known)
        kept = "".join(f", {name}" for name in known)
        db.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE poc_first AS
            SELECT run_id, {firsts}{carried}
            FROM (SELECT run_id, step, undone, {_counted_sql(each, bits)} AS counted{kept}
                  FROM {earlier} WHERE set_place = {place})
            GROUP BY run_id
            """
        )
        known += [f"f{bit}" for bit in bits]
    return True


def _counted_sql(each: SubgoalSet, only: Sequence[int] | None = None) -> str:
    """The mask `done` without the subgoals whose `after` is not met at that step."""
    place_of = {subgoal.id: bit for bit, subgoal in enumerate(each.subgoals)}
    bits = range(len(each.subgoals)) if only is None else only
    free = sum(1 << bit for bit in bits if not each.subgoals[bit].after)
    parts = [f"(done & {free})"]
    for bit in bits:
        if each.subgoals[bit].after:
            met = " AND ".join(f"step > f{place_of[other]}" for other in each.subgoals[bit].after)
            parts.append(f"CASE WHEN {met} THEN done & {1 << bit} ELSE 0::BIGINT END")
    return " | ".join(parts)


def _summary(db: Connection, sets: Sequence[SubgoalSet]) -> ScoreSummary:
    totals = db.execute(
        "SELECT count(*), count(set_place), count(*) FILTER (fitting > 1), (SELECT count(*) FROM poc_flags) "
        "FROM poc_claims"
    ).fetchone()
    assert totals is not None
    runs, scored, overlapping, steps = totals
    rows = db.execute(
        """
        SELECT set_place, count(*), count(*) FILTER (steps = 0), sum(steps)::BIGINT, avg(final) FROM (
            SELECT c.set_place, c.run_id, count(p.step) AS steps, coalesce(max(p.high_water), 0) AS final
            FROM poc_claims c LEFT JOIN progress p USING (run_id) WHERE c.set_place IS NOT NULL GROUP BY ALL
        ) GROUP BY set_place
        """
    ).fetchall()
    found = {place: rest for place, *rest in rows}
    categories = []
    for place, each in enumerate(sets):
        count, without, own_steps, mean = found.get(place, (0, 0, 0, None))
        categories.append(CategoryScore(each.category, each.hash, count, without, own_steps, mean))
    return ScoreSummary(
        runs=runs, scored=scored, unassigned=runs - scored, overlapping=overlapping, steps=steps, categories=categories
    )
