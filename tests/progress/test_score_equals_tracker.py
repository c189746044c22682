"""A log scored afterwards equals the same run tracked live: every achievement, every step's progress, bit by bit."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poc.progress import Tracker, score
from poc.subgoals import SubgoalSet, store_sets
from poc.trajectory import Step
from poc.workspace import Workspace

TOOLS = ["find", "pay", "ship"]
conditions = st.fixed_dictionaries(
    {"tool": st.lists(st.sampled_from([*TOOLS, "*", "p*"]), min_size=1, max_size=2, unique=True)},
    optional={
        "status": st.sampled_from(["ok", "error", ["ok", "error"]]),
        "arguments": st.just({"$.n": {"gt": 1}}),
        "result": st.sampled_from(
            [{"$.state": {"equals": "done"}}, {"$": {"regex": "done"}}, {"$.x[*]": {"in": [1, 2]}}]
        ),
    },
)


@st.composite
def sets(draw: st.DrawFn, category: str, key: str) -> SubgoalSet:
    count = draw(st.integers(1, 6))
    names = [f"s{index}" for index in range(count)]
    # `after` may point to any earlier place of a shuffled order, so layers and order of the file differ.
    order = draw(st.permutations(names))
    subgoals = []
    for name in names:
        before = order[: order.index(name)]
        subgoal: dict[str, Any] = {
            "id": name,
            "title": name,
            "weight": draw(st.sampled_from([1, 0.1, 0.3, 2.5, 7])),
            "done_when": draw(conditions),
        }
        if before and draw(st.booleans()):
            subgoal["after"] = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2, unique=True))
        if draw(st.integers(0, 2)) == 0:
            subgoal["undone_when"] = draw(conditions)
        subgoals.append(subgoal)
    return SubgoalSet.model_validate({"category": category, "runs": {"task_key": [key]}, "subgoals": subgoals})


runs = st.lists(
    st.tuples(
        st.sampled_from(TOOLS),
        st.sampled_from(["ok", "ok", "ok", "error"]),
        st.sampled_from([None, '{"n": 1}', '{"n": 2}', '{"n": "2"}']),
        st.sampled_from([None, '{"state": "done"}', '{"state": "open"}', "done", '{"x": [3, 2]}', '{"x": [1,]}']),
        st.sampled_from(["agent", "agent", "agent", "user", "subagent"]),
    ),
    max_size=10,
)


def fill(workspace: Workspace, keyed: list[tuple[str, list[tuple]]]) -> dict[str, list[Step]]:
    """Put runs of the tasks k0, k1, ... into the tables, as an import would; returns their steps."""
    made: dict[str, list[Step]] = {}
    columns: list[list[Any]] = [[] for _ in range(7)]
    for number, (_, run) in enumerate(keyed):
        made[f"r{number:03}"] = steps = [
            # Gaps in the numbering, since a step may have been left out.
            Step(
                index=2 * place, turn=place, tool=tool, status=status, arguments_json=arguments, result=result,
                caller=caller,
            )
            for place, (tool, status, arguments, result, caller) in enumerate(run)
        ]  # fmt: skip
        for step in steps:
            row = (f"r{number:03}", step.index, step.tool, step.arguments_json, step.result, step.status, step.caller)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    keys = [key for key, _ in keyed]
    with workspace.write() as db:
        db.execute("DELETE FROM tasks; DELETE FROM runs; DELETE FROM steps")
        db.execute("INSERT INTO tasks BY NAME SELECT unnest(?) AS task_id, task_id AS task_key", [sorted(set(keys))])
        db.execute(
            "INSERT INTO runs BY NAME SELECT unnest(?) AS run_id, unnest(?) AS task_id, 's' AS source_id, 'p' AS place",
            [list(made), keys],
        )
        db.execute(
            """
            INSERT INTO steps BY NAME
            SELECT unnest(?::VARCHAR[]) AS run_id, unnest(?::INTEGER[]) AS step, unnest(?::VARCHAR[]) AS tool,
                   unnest(?::VARCHAR[])::JSON AS arguments, unnest(?::VARCHAR[]) AS result,
                   unnest(?::VARCHAR[]) AS status, unnest(?::VARCHAR[]) AS caller,
                   step AS turn, 0 AS ordinal, 'parsed' AS arguments_status, 'flag' AS status_evidence
            """,
            columns,
        )
    return made


def test_scored_equals_tracked(tmp_path):
    workspace = Workspace.open(tmp_path / "w.duckdb")
    keys = [f"k{number}" for number in range(8)]

    @given(
        st.tuples(*(sets(f"category {key}", key) for key in keys)), st.tuples(*(st.tuples(runs, runs) for _ in keys))
    )
    @settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
    def law(all_sets: tuple[SubgoalSet, ...], all_runs: tuple[tuple[list, list], ...]) -> None:
        keyed = [(key, run) for key, pair in zip(keys, all_runs, strict=True) for run in pair]
        steps = fill(workspace, keyed)
        store_sets(workspace, all_sets)
        summary = score(workspace)
        assert (summary.scored, summary.unassigned) == (16, 0)
        progress = {
            (row["run_id"], row["step"]): (row["current"], row["high_water"], row["gain"])
            for row in workspace.rows("SELECT * FROM progress")
        }
        events = {
            (row["run_id"], row["step"], row["subgoal"], row["event"])
            for row in workspace.rows("SELECT * FROM achievements")
        }
        live_progress, live_events = {}, set()
        for number, (key, _) in enumerate(keyed):
            run_id = f"r{number:03}"
            tracker = Tracker(all_sets[keys.index(key)])
            for step in steps[run_id]:
                record = tracker.observe(step)
                if step.caller == "user":
                    assert (record.gain, record.achieved, record.undone) == (0, (), ())
                    continue
                live_progress[run_id, step.index] = (record.current, record.high_water, record.gain)
                live_events |= {(run_id, step.index, name, "achieved") for name in record.achieved}
                live_events |= {(run_id, step.index, name, "undone") for name in record.undone}
        assert events == live_events
        assert progress == live_progress

    law()
