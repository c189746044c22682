"""A real log, end to end: import, hand-written sets, scores that were worked out by hand, validity."""

from pathlib import Path

import pytest

from poc.ingest import import_logs
from poc.progress import score, validity
from poc.subgoals import active_sets, load_sets, set_for_task, store_sets
from poc.workspace import Workspace

HERE = Path(__file__).resolve()
LOG = HERE.parents[3] / "shared" / "logs" / "openai_chat" / "taubench_gpt-4o-airline.json"
SETS = HERE.parents[1] / "data" / "airline"


@pytest.fixture(scope="module")
def airline(tmp_path_factory) -> Workspace:
    if not LOG.exists():
        pytest.skip(f"the shared airline log is not here: {LOG}")
    workspace = Workspace.open(tmp_path_factory.mktemp("airline") / "w.duckdb")
    import_logs(workspace, [LOG])
    store_sets(workspace, load_sets(SETS))
    return workspace


@pytest.fixture(scope="module")
def summary(airline):
    return score(airline)


def progress_of(workspace: Workspace, native_id: str) -> list[tuple[int, float, float]]:
    rows = workspace.rows(
        "SELECT step, current, high_water FROM progress JOIN runs USING (run_id) WHERE native_id = ? ORDER BY step",
        [native_id],
    )
    return [(row["step"], row["current"], row["high_water"]) for row in rows]


def test_every_run_is_counted_once(airline, summary):
    assert summary.runs == 200
    assert summary.scored + summary.unassigned == 200
    assert [each.category for each in summary.categories] == ["book", "cancel", "change"]
    assert sum(each.runs for each in summary.categories) == summary.scored
    # By the first messages: three tasks ask for a booking (0, 32, 46) and one for "the same flights" (11).
    tasks = airline.rows(
        """
        SELECT g.category, list(DISTINCT t.task_key ORDER BY t.task_key::INTEGER) AS keys
        FROM assignments a JOIN subgoal_sets g USING (set_hash) JOIN runs r USING (run_id) JOIN tasks t USING (task_id)
        GROUP BY g.category
        """
    )
    keys = {row["category"]: row["keys"] for row in tasks}
    assert keys["book"] == ["0", "11", "32", "46"]
    assert {"12", "18", "34", "47", "49"} <= set(keys["cancel"])
    assert "40" not in keys["cancel"]  # complains about a flight that "was canceled"


def test_a_booking_that_was_cancelled_and_made_again(airline, summary):
    # By hand, task 0, trial 3; weights 1 + 1 + 2 = 4. Step 0 reads the profile (1/4), 1 finds flights (2/4),
    # 3 fails to book, 5 books (4/4), 6, 7 and 9 book again, 10 cancels (2/4), 11 fails, 12 books (4/4).
    currents = [0.25, 0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 1, 0.5, 0.5, 1]
    highs = [0.25, 0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 1, 1, 1, 1]
    assert progress_of(airline, "0/3") == list(zip(range(13), currents, highs, strict=True))
    events = airline.rows(
        "SELECT step, subgoal, event FROM achievements JOIN runs USING (run_id) WHERE native_id = '0/3' ORDER BY step"
    )
    assert [(row["step"], row["subgoal"], row["event"]) for row in events] == [
        (0, "customer_known", "achieved"),
        (1, "flights_found", "achieved"),
        (5, "booked", "achieved"),
        (10, "booked", "undone"),
        (12, "booked", "achieved"),
    ]


def test_a_cancellation(airline, summary):
    # By hand, task 34, trial 1: 0 reads a reservation (1/4), 2 reads the profile (2/4), 5 cancels (4/4).
    assert progress_of(airline, "34/1") == [
        (step, share, share) for step, share in enumerate([0.25, 0.25, 0.5, 0.5, 0.5, 1, 1, 1, 1, 1, 1])
    ]


def test_handing_over_unread_does_not_settle(airline, summary):
    # Task 18, trial 3: the agent handed over without reading the reservation; `after` says that this is no end.
    assert progress_of(airline, "18/3") == [(0, 0.0, 0.0)]


def test_validity_of_the_hand_written_sets(airline, summary):
    found = {each.category: each for each in validity(airline)}
    assert set(found) == {"book", "cancel", "change", None}
    assert found[None].runs == summary.scored
    assert found["book"].tasks == 4
    for each in found.values():
        assert (each.auroc is None) == (each.refusal is not None)
        if each.auroc is not None:
            assert each.auroc.estimate is not None
            assert 0 <= each.auroc.low <= each.auroc.estimate <= each.auroc.high <= 1


def test_a_task_names_its_set_before_it_is_run(airline, summary):
    sets = active_sets(airline)
    rows = airline.rows(
        """
        SELECT t.task_key, t.text, t.category, t.scenario, any_value(a.set_hash) AS set_hash
        FROM runs r JOIN tasks t USING (task_id) LEFT JOIN assignments a USING (run_id) GROUP BY ALL
        """
    )
    assert len(rows) == 50
    for row in rows:
        claimed = set_for_task(
            sets, category=row["category"], task_key=row["task_key"], task_text=row["text"], scenario=row["scenario"]
        )
        assert (claimed and claimed.hash) == row["set_hash"], row
