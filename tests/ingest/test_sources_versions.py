"""A file that has grown, a run that has grown, and two versions of one run: kept once, whole, with its labels."""

import json
import uuid

import pytest

from poc.errors import InputError
from poc.ingest import import_logs
from poc.progress import score
from poc.subgoals import parse_set, store_sets


def call(number, result="ok"):
    function = {"name": "look", "arguments": json.dumps({"n": number})}
    return [
        {"role": "assistant", "content": f"step {number}", "tool_calls": [{"id": f"c{number}", "function": function}]},
        *([{"role": "tool", "tool_call_id": f"c{number}", "content": result}] if result is not None else []),
    ]


def chat(name, steps, *, global_id=False, **more):
    messages = [{"role": "user", "content": f"do {name}"}]
    for number in range(steps):
        messages += call(number)
    return {
        **({"id": str(uuid.uuid5(uuid.NAMESPACE_URL, name))} if global_id else {"task_id": name}),
        "messages": messages,
        **more,
    }


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def listed(*records):
    return json.dumps(records, indent=1)


def counts(result):
    assert result.read == result.imported + result.rejected + result.skipped
    return result.imported, result.rejected, result.skipped, result.runs, result.replaced


def steps(workspace):
    """Steps by the first message of the run."""
    rows = workspace.rows(
        "SELECT m.content, (SELECT count(*) FROM steps s WHERE s.run_id = r.run_id) AS n,"
        " (SELECT count(*) FROM messages s WHERE s.run_id = r.run_id) AS messages"
        " FROM runs r JOIN messages m ON m.run_id = r.run_id AND m.seq = 0 ORDER BY 1, 2"
    )
    assert workspace.value("SELECT count(*) FROM steps WHERE run_id NOT IN (SELECT run_id FROM runs)") == 0
    assert workspace.value("SELECT count(*) FROM messages WHERE run_id NOT IN (SELECT run_id FROM runs)") == 0
    return [(row["content"], row["n"]) for row in rows]


def sources(workspace):
    rows = workspace.rows("SELECT * FROM sources ORDER BY imported_at")
    for row in rows:
        assert row["read"] == row["imported"] + row["rejected"] + row["skipped"]
    unknown = "SELECT count(*) FROM {} WHERE source_id NOT IN (SELECT source_id FROM sources)"
    assert [workspace.value(unknown.format(table)) for table in ("runs", "rejects")] == [0, 0]
    return [(row["read"], row["imported"], row["rejected"], row["skipped"]) for row in rows]


@pytest.mark.parametrize("pack", [lines, listed])
def test_of_a_grown_file_only_the_new_part_is_added(workspace, write, pack):
    records = [chat(f"t{number}", 2) for number in range(3)]
    bad = {"nothing": "here"}
    assert counts(import_logs(workspace, write("log", pack(*records, bad)))) == (3, 1, 0, 3, 0)
    grown = import_logs(workspace, write("log", pack(*records, bad, chat("t3", 1), chat("t4", 5))))
    assert counts(grown) == (2, 1, 3, 2, 0)
    assert (grown.steps, grown.messages) == (6, 14)
    assert steps(workspace) == [("do t0", 2), ("do t1", 2), ("do t2", 2), ("do t3", 1), ("do t4", 5)]
    # The file stays one source, and its reject stands once.
    assert sources(workspace) == [(6, 5, 1, 0)]
    assert workspace.value("SELECT count(*) FROM rejects") == 1
    again = import_logs(workspace, write("copy", pack(*records, bad, chat("t3", 1), chat("t4", 5))))
    assert counts(again) == (0, 1, 5, 0, 0)
    assert len(sources(workspace)) == 1


def test_a_last_line_that_was_cut_is_made_good_by_the_grown_file(workspace, write):
    whole = lines(chat("t0", 1), chat("t1", 1))
    assert counts(import_logs(workspace, write("log", whole[:-30]))) == (1, 1, 0, 1, 0)
    assert counts(import_logs(workspace, write("log", whole))) == (1, 0, 1, 1, 0)
    assert workspace.value("SELECT count(*) FROM rejects") == 0
    assert sources(workspace) == [(2, 2, 0, 0)]


def test_a_file_with_other_runs_under_the_same_path_keeps_both(workspace, write):
    import_logs(workspace, write("app.log", lines(chat("monday", 1), chat("too", 1), {"bad": 1})))
    result = import_logs(workspace, write("app.log", lines(chat("tuesday", 1), chat("wednesday", 2))))
    assert counts(result) == (2, 0, 0, 2, 0)
    assert len(steps(workspace)) == 4
    assert sources(workspace) == [(3, 2, 1, 0), (2, 2, 0, 0)]
    assert workspace.value("SELECT count(*) FROM rejects") == 1


def test_the_shorter_file_again_changes_nothing(workspace, write):
    short, long = lines(chat("t0", 1), chat("t1", 1)), lines(chat("t0", 1), chat("t1", 1), chat("t2", 1))
    for content in (short, long):
        import_logs(workspace, write("log", content))
    before = steps(workspace)
    for _ in range(2):
        result = import_logs(workspace, write("log", short))
        assert (result.imported, result.skipped) == (0, 2)
    assert steps(workspace) == before


@pytest.mark.parametrize("global_id", [True, False])
@pytest.mark.parametrize("pack", [lines, listed])
def test_a_run_that_has_grown_takes_the_place_of_its_shorter_self(workspace, write, global_id, pack):
    other = chat("other", 1, global_id=True)
    short, long = (chat("it", number, global_id=global_id) for number in (2, 5))
    import_logs(workspace, write("log", pack(short, other)))
    label(workspace, 0.25)
    scored(workspace)
    found_out = found(workspace)
    assert found_out["achievements"] == 2
    result = import_logs(workspace, write("log", pack(long, other)))
    assert counts(result) == (1, 0, 1, 0, 1)
    assert (result.steps, result.messages) == (3, 6)
    assert steps(workspace) == [("do it", 5), ("do other", 1)]
    # What people said and what was found out about its first steps is still there.
    assert workspace.value("SELECT outcome FROM outcomes WHERE provenance = 'person:ann'") == 0.25
    assert found(workspace) == found_out
    assert sources(workspace) == [(2, 2, 0, 0)]
    # Its shorter self is no news afterwards.
    again = import_logs(workspace, write("elsewhere", pack(short, other)))
    assert again.replaced == 0
    if global_id:
        assert counts(again) == (0, 0, 2, 0, 0)


def label(workspace, value):
    with workspace.write() as db:
        db.execute(
            "INSERT INTO labels SELECT run_id, ?, 'person:ann', now() FROM messages WHERE content = 'do it'", [value]
        )


def scored(workspace):
    text = "category: any\nruns: {tool: look}\nsubgoals: [{id: looked, title: Looked, done_when: {tool: look}}]\n"
    store_sets(workspace, [parse_set(text, "set.yaml")])
    score(workspace)


def found(workspace):
    tables = ("assignments", "achievements", "progress")
    mine = "SELECT count(*) FROM {} SEMI JOIN runs USING (run_id)"
    return {table: workspace.value(mine.format(table)) for table in tables}


def test_what_was_found_out_about_other_steps_is_forgotten(workspace, write):
    before = chat("it", 3, global_id=True)
    after = chat("it", 4, global_id=True)
    after["messages"].insert(1, call(77)[0])  # a call that the first export had missed, before all others
    import_logs(workspace, write("a", lines(before, before)))
    label(workspace, 1.0)
    scored(workspace)
    assert found(workspace)["progress"] == 3
    result = import_logs(workspace, write("b", lines(after, after)))
    assert result.replaced == 1
    assert found(workspace) == {"assignments": 0, "achievements": 0, "progress": 0}
    assert workspace.value("SELECT count(*) FROM labels SEMI JOIN runs USING (run_id)") == 1


def test_an_answer_that_came_later_completes_the_run(workspace, write):
    short, long = chat("it", 1, global_id=True), chat("it", 1, global_id=True)
    short["messages"] += call(9, None)
    long["messages"] += call(9, "at last")
    import_logs(workspace, write("a", lines(short, short)))
    assert workspace.value("SELECT status FROM steps WHERE step = 1") == "no_result"
    assert import_logs(workspace, write("b", lines(long, long))).replaced == 1
    assert workspace.value("SELECT result FROM steps WHERE step = 1") == "at last"
    assert import_logs(workspace, write("c", lines(short, short, {}))).replaced == 0
    assert workspace.value("SELECT result FROM steps WHERE step = 1") == "at last"


@pytest.mark.parametrize("order", [(2, 5, 3), (5, 2, 3), (3, 2, 5)])
def test_versions_of_one_run_in_one_import(workspace, write, order):
    paths = [
        write(f"{number}.jsonl", lines(chat("it", number, global_id=True), chat(f"x{number}", 1))) for number in order
    ]
    result = import_logs(workspace, paths)
    assert (result.runs, result.imported, result.skipped, result.rejected) == (4, 4, 2, 0)
    assert ("do it", 5) in steps(workspace)
    assert len(steps(workspace)) == 4


def test_two_versions_that_differ_are_not_mixed_and_the_loss_is_said(workspace, write):
    first, second = chat("it", 3, global_id=True), chat("it", 5, global_id=True)
    second["messages"][1]["content"] = "rewritten"
    import_logs(workspace, write("a", lines(first, chat("x", 1))))
    result = import_logs(workspace, write("b", lines(second, chat("y", 1))))
    assert counts(result) == (2, 0, 0, 1, 1)
    [reject] = workspace.rows("SELECT * FROM rejects")
    assert reject["records"] == 0
    assert "in place of an earlier version" in reject["reason"]
    # The smaller one later: it is kept out, and counts as a reject since it has something of its own.
    third = chat("it", 2, global_id=True)
    third["messages"][1]["content"] = "rewritten again"
    other = write("c", lines(third, chat("z", 1)))
    with pytest.raises(InputError, match="Two versions of one run differ"):
        import_logs(workspace, other, strict=True)
    assert counts(import_logs(workspace, other)) == (1, 1, 0, 1, 0)
    assert ("do it", 5) in steps(workspace)
    assert sources(workspace)[-1] == (2, 1, 1, 0)
    assert counts(import_logs(workspace, other)) == (0, 1, 1, 0, 0)


def test_an_outcome_that_comes_later_is_taken(workspace, write):
    import_logs(workspace, write("a", lines(chat("t0", 1), chat("t1", 1))))
    result = import_logs(workspace, write("b", lines(chat("t0", 1, reward=1), chat("t1", 1))))
    assert (*counts(result), result.completed) == (0, 0, 2, 0, 0, 1)
    assert workspace.value("SELECT outcome FROM outcomes WHERE outcome IS NOT NULL") == 1.0
    result = import_logs(workspace, write("c", lines(chat("t0", 1, reward=0), chat("t1", 1))))
    assert result.completed == 0  # what is known is not overwritten
    assert workspace.value("SELECT outcome FROM outcomes WHERE outcome IS NOT NULL") == 1.0
