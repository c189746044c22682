"""Sets in the workspace, and which runs they claim."""

import pytest

from poc.errors import InputError
from poc.progress import score
from poc.subgoals import SubgoalSet, active_sets, parse_set, retire_set, set_by_hash, set_for_task, store_sets
from poc.workspace import Workspace


def made(category: str, runs: str, title: str = "t") -> SubgoalSet:
    return parse_set(
        f"# {category}\ncategory: {category}\nruns: {runs}\n"
        f"subgoals: [{{id: s, title: {title}, done_when: {{tool: pay}}}}]\n"
    )


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    """Five runs of four tasks; run r5 has neither task nor category, r4 makes no call."""
    workspace = Workspace.open(tmp_path / "w.duckdb")
    with workspace.write() as db:
        db.execute(
            """
            INSERT INTO tasks (task_id, task_key, text, category, scenario) VALUES
                ('t1', '1', 'Please refund it', 'shop', NULL), ('t2', '2', 'Refund and cancel', NULL, NULL),
                ('t3', '10', 'Hello', 'other', 'You want a REFUND'), ('t4', NULL, NULL, NULL, NULL);
            INSERT INTO runs (run_id, source_id, place, task_id, category) VALUES
                ('r1', 's', 'p', 't1', NULL), ('r2', 's', 'p', 't2', 'web'), ('r3', 's', 'p', 't3', NULL),
                ('r4', 's', 'p', 't4', NULL), ('r5', 's', 'p', NULL, NULL);
            INSERT INTO steps (run_id, step, turn, ordinal, tool, arguments_status, status, status_evidence, caller)
            VALUES ('r1', 0, 0, 0, 'find', 'absent', 'ok', 'flag', 'agent'),
                   ('r2', 0, 0, 0, 'pay', 'absent', 'ok', 'flag', 'user'),
                   ('r3', 0, 0, 0, 'pay', 'absent', 'ok', 'flag', 'agent'),
                   ('r5', 0, 0, 0, 'pay', 'absent', 'ok', 'flag', 'agent')
            """
        )
    return workspace


@pytest.mark.parametrize(
    ("rule", "claimed"),
    [
        ("all", "r1 r2 r3 r4 r5"),
        ("{category: shop}", "r1"),
        ("{category: [sh*, web]}", "r1 r2"),
        ("{category: '*'}", "r1 r2 r3"),
        ("{task_key: ['1*']}", "r1 r3"),
        ("{task_key: '?'}", "r1 r2"),
        ("{task_text: '(?i)refund'}", "r1 r2"),
        ("{task_text: '(?i)refund', task_key: '2'}", "r2"),
        ("{scenario: '(?i)refund'}", "r3"),
        ("{tool: 'pa?'}", "r3 r5"),
        ("{tool: pay, task_key: '*'}", "r3"),
    ],
)
def test_what_rules_claim(workspace, rule, claimed):
    sets = [made("a", rule)]
    store_sets(workspace, sets)
    summary = score(workspace)
    found = [row["run_id"] for row in workspace.rows("SELECT run_id FROM assignments ORDER BY run_id")]
    assert found == claimed.split()
    assert (summary.scored, summary.unassigned) == (len(found), 5 - len(found))
    if "tool" in rule:
        return
    tasks = workspace.rows(
        """SELECT r.run_id, coalesce(r.category, t.category) AS category, t.task_key, t.text AS task_text, t.scenario
           FROM runs r LEFT JOIN tasks t USING (task_id)"""
    )
    for task in tasks:
        assert (set_for_task(sets, **{k: v for k, v in task.items() if k != "run_id"}) is not None) == (
            task["run_id"] in found
        )


def test_a_rule_on_tools_decides_nothing_before_the_run():
    later = made("b", "all")
    assert set_for_task([made("a", "{tool: pay}"), later], task_key="1") is None
    assert set_for_task([made("a", "{tool: pay, task_key: '2'}"), later], task_key="1") is later


def test_the_first_set_in_order_claims_and_overlaps_are_counted(workspace):
    store_sets(workspace, [made("z", "{task_text: cancel}"), made("a", "{task_text: '(?i)refund'}")])
    summary = score(workspace)
    assert (summary.runs, summary.scored, summary.unassigned, summary.overlapping) == (5, 2, 3, 1)
    assert [(each.category, each.runs) for each in summary.categories] == [("z", 1), ("a", 1)]
    owner = workspace.value("SELECT category FROM assignments JOIN subgoal_sets USING (set_hash) WHERE run_id = 'r2'")
    assert owner == "z"


def test_a_run_without_steps_is_scored_and_told(workspace):
    store_sets(workspace, [made("a", "all")])
    summary = score(workspace)
    # r4 makes no call, and in r2 only the simulated user does.
    assert (summary.categories[0].runs, summary.categories[0].without_steps, summary.steps) == (5, 2, 3)
    assert summary.categories[0].mean_progress == pytest.approx(2 / 5)


def test_scoring_again_replaces_and_needs_a_set(workspace):
    with pytest.raises(InputError, match="no subgoal set"):
        score(workspace)
    store_sets(workspace, [made("a", "all")])
    assert score(workspace) == score(workspace)
    assert workspace.value("SELECT count(*) FROM progress") == 3
    assert workspace.value("SELECT count(*) FROM achievements") == 2


def test_storing_keeps_versions_and_one_active_a_category(workspace):
    first, second, other = made("a", "all"), made("a", "all", "changed"), made("b", "all")
    store_sets(workspace, [first, other])
    store_sets(workspace, [second])
    assert [each.hash for each in active_sets(workspace)] == [other.hash, second.hash]
    assert set_by_hash(workspace, first.hash) == first
    store_sets(workspace, [first, other])
    assert [each.hash for each in active_sets(workspace)] == [first.hash, other.hash]
    assert active_sets(workspace)[0].source_text == first.source_text
    assert workspace.value("SELECT count(*) FROM subgoal_sets") == 3
    retire_set(workspace, "a")
    assert [each.category for each in active_sets(workspace)] == ["b"]


def test_misuse_of_the_store_is_told(workspace):
    with pytest.raises(InputError, match="no subgoal set to store"):
        store_sets(workspace, [])
    with pytest.raises(InputError, match="two sets"):
        store_sets(workspace, [made("a", "all"), made("a", "all", "u")])
    assert active_sets(workspace) == []
    with pytest.raises(InputError, match="has no subgoal set abc"):
        set_by_hash(workspace, "abc")
    store_sets(workspace, [made("cancel", "all")])
    with pytest.raises(InputError, match='Did you mean "cancel"'):
        retire_set(workspace, "cansel")
