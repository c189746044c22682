"""A log scored afterwards equals the same run tracked live: every achievement, every step's progress, bit by bit."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
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
    with workspace.write() as db:
        for table in ("tasks", "runs", "steps"):
            db.execute(f"DELETE FROM {table}")
        for number, (key, run) in enumerate(keyed):
            run_id = f"r{number:03}"
            db.execute("INSERT INTO tasks (task_id, task_key) VALUES (?, ?) ON CONFLICT DO NOTHING", [key, key])
            db.execute("INSERT INTO runs (run_id, source_id, place, task_id) VALUES (?, 's', 'p', ?)", [run_id, key])
            made[run_id] = [
                # Gaps in the numbering, since steps of others may have been left out.
                Step(
                    index=2 * place, turn=place, tool=tool, status=status, arguments_json=arguments, result=result,
                    caller=caller,
                )
                for place, (tool, status, arguments, result, caller) in enumerate(run)
            ]  # fmt: skip
            for step in made[run_id]:
                db.execute(
                    """
                    INSERT INTO steps (run_id, step, turn, ordinal, tool, arguments, arguments_status, result, status,
                                       status_evidence, caller)
                    VALUES (?, ?, ?, 0, ?, ?, 'parsed', ?, ?, 'flag', ?)
                    """,
                    [
                        run_id,
                        step.index,
                        step.turn,
                        step.tool,
                        step.arguments_json,
                        step.result,
                        step.status,
                        step.caller,
                    ],
                )
    return made


def test_scored_equals_tracked(tmp_path_factory):
    workspace = Workspace.open(Path(tmp_path_factory.mktemp("both")) / "w.duckdb")

    @given(
        sets("first", "k0"), sets("second", "k1"), st.lists(st.tuples(st.sampled_from(["k0", "k1"]), runs), max_size=6)
    )
    @settings(deadline=None, max_examples=40)
    def law(first: SubgoalSet, second: SubgoalSet, keyed: list[tuple[str, list[tuple]]]) -> None:
        steps = fill(workspace, keyed)
        store_sets(workspace, [first, second])
        summary = score(workspace)
        assert summary.scored == len(keyed)
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
            tracker = Tracker(first if key == "k0" else second)
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
