"""Oddities worked out by hand, the steps behind every count, shares by source and tool, the to-do list."""

import csv
import io
import itertools
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from poc.cli import app
from poc.errors import InputError
from poc.ingest import import_logs
from poc.language import LANGUAGES
from poc.readiness import assess, evidence, findings, shares, todo_csv, todo_markdown
from poc.readiness.checks import CHECKS, COUNTED, ODDITIES
from poc.readiness.examples import example, whole_example
from poc.workspace import Workspace


def row(step, *, run="r", tool="look", at=None, end=None, **more):
    record = {"run_id": run, "step": step, "tool": tool, "args": {"n": 0}, "output": "ok", "question": "q", **more}
    if at is not None:
        record["start_time"] = f"2025-01-01T00:00:{at:06.3f}Z" if isinstance(at, int | float) else at
    if end is not None:
        record["end_time"] = f"2025-01-01T00:00:{end:06.3f}Z" if isinstance(end, int | float) else end
    return record


@pytest.fixture
def load(workspace, tmp_path):
    def put(records, name="log.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        import_logs(workspace, path)
        return assess(workspace)

    return put


def cases(readiness, check_id):
    check = readiness.check(check_id)
    return check.cases, check.total


def places(workspace, check_id, **options):
    rows = evidence(workspace, check_id, **options)
    return [
        (native, None if pd.isna(step) else int(step))
        for native, step in zip(rows["native_id"], rows["step"], strict=True)
    ]


def test_repeats_at_once_and_later(load, workspace):
    calls = [("look", 1), ("look", 1), ("look", 2), ("cancel", 1), ("look", 1), ("look", 1)]
    readiness = load([row(n, tool=tool, args={"n": value}) for n, (tool, value) in enumerate(calls)])
    assert cases(readiness, "repeat_at_once") == (2, 6)
    assert cases(readiness, "repeat_later") == (1, 6)
    assert places(workspace, "repeat_at_once") == [("r", 1), ("r", 5)]
    later = evidence(workspace, "repeat_later")
    assert (later["step"].tolist(), later["other"].tolist()) == ([4], [1])
    assert later["excerpt"].tolist() == ['{"n": 1}']


def test_the_same_call_in_another_run_is_no_repeat(load):
    readiness = load([row(0, run="a"), row(0, run="b")])
    assert cases(readiness, "repeat_at_once") == cases(readiness, "repeat_later") == (0, 2)


def test_calls_without_arguments_cannot_be_called_repeats(load):
    records = [{"run_id": "r", "step": n, "tool": "look", "output": "ok"} for n in range(3)]
    assert cases(load(records), "repeat_at_once") == (0, 0)


def test_clocks(load, workspace):
    readiness = load(
        [
            row(0, at=1, end=2),
            row(1, at=1, end=0.5),  # starts with the one before, and ends before it starts
            row(2, at=0.25, end=3),  # starts before the one before
            row(3),  # has no time
            row(4, at=4),
            row(5, at="2999-01-01T00:00:00Z"),
        ]
    )
    assert cases(readiness, "same_start") == (1, 4)
    assert cases(readiness, "backwards") == (1, 4)
    assert cases(readiness, "end_before_start") == (1, 3)
    assert cases(readiness, "future") == (1, 5)
    assert places(workspace, "same_start") == [("r", 1)]
    back = evidence(workspace, "backwards")
    assert (back["step"].tolist(), back["other"].tolist(), back["seconds"].tolist()) == ([2], [1], [0.75])
    assert evidence(workspace, "end_before_start")["seconds"].tolist() == [0.5]
    assert places(workspace, "future") == [("r", 5)]
    assert readiness.check("order").present == 0


def test_parallel_calls_of_one_turn_start_in_any_order(load):
    readiness = load([row(0, turn=0, at=2), row(1, turn=0, at=1), row(2, turn=0, at=1), row(3, turn=1, at=3)])
    assert cases(readiness, "backwards") == cases(readiness, "same_start") == (0, 1)
    assert readiness.check("order").level == "ok"


def test_steps_outside_their_run(load, workspace):
    readiness = load([row(0, at=1), row(1, at=20, end=21), row(2, at=31, end=33)])
    assert cases(readiness, "outside_run") == (0, 3)
    with workspace.write() as db:
        db.execute("UPDATE runs SET started_at = '2025-01-01 00:00:05Z', ended_at = '2025-01-01 00:00:30Z'")
    readiness = assess(workspace)
    assert cases(readiness, "outside_run") == (2, 3)
    assert readiness.check("outside_run").level == "gap"
    assert evidence(workspace, "outside_run")["seconds"].tolist() == [4, 3]


def test_times_without_a_zone_are_not_called_future_for_being_ahead_of_us(load, workspace):
    readiness = load([row(0, at="2025-01-01T00:00:00"), row(0, run="s", at=1)])
    assert cases(readiness, "no_zone") == (1, 2)
    assert places(workspace, "no_zone") == [("r", None)]
    with workspace.write() as db:
        db.execute("UPDATE sources SET imported_at = '2024-12-31 12:00:00Z'")
    assert places(workspace, "future") == [("s", 0)]


def test_runs_without_steps_and_orphans_have_a_place(load, workspace):
    call = {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "look", "arguments": "{}"}}]}
    readiness = load(
        [
            {"id": "talk", "messages": [{"role": "user", "content": "hello"}]},
            {
                "id": "work",
                "messages": [
                    {"role": "user", "content": "go"},
                    {"role": "tool", "content": "nobody asked for this"},
                    call,
                ],
            },
        ]
    )
    assert cases(readiness, "no_steps") == (1, 2)
    assert places(workspace, "no_steps") == [("talk", None)]
    orphans = evidence(workspace, "paired_results")
    assert (orphans["native_id"].tolist(), orphans["message_seq"].tolist()) == (["work"], [1])
    assert orphans["excerpt"].tolist() == ["nobody asked for this"]
    assert places(workspace, "status") == [("work", 0)]


def test_an_unknown_check_is_refused(workspace):
    with pytest.raises(InputError, match="backwards"):
        evidence(workspace, "backward")


def test_a_subagent_works_beside_its_agent(load):
    readiness = load([row(0, at=5), row(1, at=1, caller="subagent"), row(2, at=6), row(3, at=2, caller="subagent")])
    assert cases(readiness, "backwards") == (0, 2)


def test_shares_per_source_and_tool(load, workspace):
    load([row(0, tool="a", at=1, end=2), row(1, tool="b")], "one.jsonl")
    readiness = load([row(0, run="x", tool="b", at=1), row(1, run="x", tool="b")], "two.jsonl")
    by_tool = {(r.tool, r.check_id): (r.present, r.total) for r in shares(workspace, "tool").itertuples()}
    assert (by_tool["a", "start_time"], by_tool["b", "start_time"]) == ((1, 1), (1, 3))
    assert ("b", "outcome") not in by_tool
    by_source = shares(workspace, "source")
    assert {path.rsplit("/", 1)[-1] for path in by_source["path"]} == {"one.jsonl", "two.jsonl"}
    whole = {c.check_id: (c.present, c.total) for c in (*readiness.checks, *readiness.oddities)}
    for check_id, rows in by_source.groupby("check_id"):
        assert (rows["present"].sum(), rows["total"].sum()) == whole[str(check_id)]


@pytest.mark.parametrize("name", ["openai_chat", "langfuse", "tau2", "own_tables", "otel_genai", "claude_code"])
def test_evidence_is_as_long_as_its_count_on_real_logs(workspace, real_logs, name):
    import_logs(workspace, real_logs / name)
    readiness = assess(workspace)
    for check in (*readiness.checks, *readiness.oddities):
        rows = evidence(workspace, check.check_id, limit=10_000)
        assert len(rows) == check.cases, check.check_id
        assert rows["run_id"].notna().all()
        assert not rows.duplicated(["run_id", "step", "message_seq"]).any()
        first = evidence(workspace, check.check_id, limit=3)
        second = evidence(workspace, check.check_id, limit=3, offset=3)
        assert [*first["run_id"], *second["run_id"]] == rows["run_id"].tolist()[:6]


MOMENTS = st.one_of(st.none(), st.integers(0, 59).map(lambda second: f"2025-01-01T00:00:{second:02d}Z"))
CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), MOMENTS, MOMENTS), min_size=2, max_size=12)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=CALLS)
def test_counts_equal_a_plain_count_in_python(calls, tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    log = folder / "log.jsonl"
    log.write_text(
        "".join(
            json.dumps(row(n, tool=tool, args={"n": value}, at=start, end=end)) + "\n"
            for n, (tool, value, start, end) in enumerate(calls)
        )
    )
    workspace = Workspace.open(folder / "workspace.duckdb")
    import_logs(workspace, log)
    readiness = assess(workspace)
    keys = [call[:2] for call in calls]
    at_once = sum(a == b for a, b in itertools.pairwise(keys))
    again = len(keys) - len(set(keys))
    assert readiness.check("repeat_at_once").cases == at_once
    assert readiness.check("repeat_later").cases == again - at_once
    starts = [start for _, _, start, _ in calls if start]
    assert readiness.check("backwards").cases == sum(a > b for a, b in itertools.pairwise(starts))
    assert readiness.check("same_start").cases == sum(a == b for a, b in itertools.pairwise(starts))
    both = [(start, end) for _, _, start, end in calls if start and end]
    assert cases(readiness, "end_before_start") == (sum(start > end for start, end in both), len(both))


def twice(lines):
    """The same for another run: one record alone does not tell its format."""
    return lines + "\n" + lines.replace("run-0042", "run-0043") + "\n"


@pytest.mark.parametrize("check_id", COUNTED)
def test_every_example_closes_its_own_gap(check_id, workspace, tmp_path):
    log = tmp_path / "example.jsonl"
    log.write_text(twice(example(check_id)))
    import_logs(workspace, log)
    readiness = assess(workspace)
    check = readiness.check(check_id)
    if check_id.startswith("repeat"):  # a repeat that is logged well is still a repeat, told by its id
        assert sum(readiness.check(name).cases for name in ("repeat_at_once", "repeat_later")) == 2
        assert readiness.check("execution_id").level == "ok"
    else:
        assert (check.level, check.total > 0) == ("ok", True)


def test_the_whole_example_has_everything(workspace, tmp_path):
    log = tmp_path / "example.jsonl"
    log.write_text(twice(whole_example()))
    import_logs(workspace, log)
    readiness = assess(workspace)
    assert readiness.level == "READY"
    assert findings(readiness) == []
    assert "Nothing to do" in todo_markdown(workspace, readiness)
    assert len(todo_csv(workspace, readiness).splitlines()) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_has_every_finding_with_all_its_parts(load, workspace, language):
    readiness = load([row(0), row(1), row(2, at=1)])
    found = findings(readiness, language)
    assert {finding.check_id for finding in found} >= {"repeat_at_once", "start_time", "outcome"}
    assert [f.severity for f in found] == sorted((f.severity for f in found), key=["stops", "limits", "note"].index)
    text = todo_markdown(workspace, readiness, language)
    table = list(csv.DictReader(io.StringIO(todo_csv(workspace, readiness, language))))
    assert [record["id"] for record in table] == [finding.check_id for finding in found]
    for number, finding in enumerate(found, start=1):
        assert f"## {number}. {finding.title}" in text
        assert all(part in text for part in (finding.count, finding.blocks, finding.remedy, finding.example))
    share = next(f for f in found if f.check_id == "start_time").share
    assert share == pytest.approx(2 / 3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_check_and_oddity_has_all_its_words(workspace, language):
    from poc.readiness.speech import WORDS

    for counted in (*CHECKS, *ODDITIES):
        for part in ("title", "blocks", "remedy"):
            assert WORDS.say(f"readiness.{counted.check_id}.{part}", language)


def test_names_from_the_log_become_no_markup_and_no_formula(load, workspace):
    readiness = load([row(0, tool="=1+1"), row(1, tool="[link](http://x)"), row(2, at=1), row(3, at=2)])
    text = todo_markdown(workspace, readiness)
    assert r"\[link\](http://x)" in text
    assert "=1+1" in text
    assert "[link](" not in text
    for record in csv.reader(io.StringIO(todo_csv(workspace, readiness))):
        assert not any(cell.startswith("=") for cell in record)


def test_shares_under_a_per_cent_are_not_called_none(load):
    readiness = load([row(n, args={"n": n}, output="x" if n else None) for n in range(300)])
    finding = next(f for f in findings(readiness) if f.check_id == "result")
    assert finding.count == "missing in 1 of 300 steps (<1 %)"
    assert finding.severity == "note"


@pytest.mark.parametrize("name", ["logging.md", "logging.csv"])
def test_the_shell_writes_the_list(load, workspace, tmp_path, name):
    load([row(0), row(1)])
    target = tmp_path / name
    command = ["readiness", "--workspace", str(workspace.path), "--todo", str(target), "--language", "ja"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "the same call again at once" in done.output
    text = target.read_text(encoding="utf-8-sig")
    assert "直後に繰り返された同じ呼び出し" in text
    refused = CliRunner().invoke(app, [*command[:4], str(tmp_path / "no" / name)])
    assert refused.exit_code == 2
    assert "cannot be written" in refused.stderr
