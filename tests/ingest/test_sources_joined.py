"""A run whose records stand in several files: read together, or completed when the other part comes later."""

import gzip
import json
import random

import pytest

from poc.ingest import import_logs, load_run
from poc.workspace import Workspace

TRACE = "5b8efff798038103d269b633813fc6{:02x}"


def value(thing):
    return {"intValue": str(thing)} if isinstance(thing, int) else {"stringValue": thing}


def span(trace, number, name, parent=None, **attributes):
    return {
        "traceId": TRACE.format(trace),
        "spanId": f"{trace:08x}{number:08x}",
        **({"parentSpanId": f"{trace:08x}{parent:08x}"} if parent is not None else {}),
        "name": name,
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + trace * 10**10 + number * 10**9),
        "endTimeUnixNano": str(1_700_000_000_500_000_000 + trace * 10**10 + number * 10**9),
        "attributes": [{"key": key.replace("__", "."), "value": value(thing)} for key, thing in attributes.items()],
        "status": {},
    }


def trace(number, calls=4):
    """The spans of one request to an agent, its root last, as exporters write them."""
    spans = [
        span(
            number,
            place,
            "execute_tool look",
            99,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="look",
            gen_ai__tool__call__arguments=json.dumps({"n": place}),
            gen_ai__tool__call__result=f"seen {place}",
        )
        for place in range(1, calls + 1)
    ]
    return [*spans, span(number, 99, "invoke_agent", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="a")]


def otlp(spans):
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


def as_lines(spans):
    return "".join(json.dumps(otlp([each])) + "\n" for each in spans)


def as_document(spans):
    return json.dumps(otlp(spans), indent=1)


def counts(result):
    assert result.read == result.imported + result.rejected + result.skipped
    return result.read, result.imported, result.skipped, result.runs, result.replaced


def calls(workspace):
    rows = workspace.rows("SELECT run_id, native_id FROM runs ORDER BY native_id")
    runs = {row["native_id"]: load_run(workspace, row["run_id"]) for row in rows}
    dangling = "SELECT count(*) FROM {} WHERE {} NOT IN (SELECT {} FROM {})"
    for table, column, other in (("runs", "source_id", "sources"), ("run_parts", "source_id", "sources")):
        assert workspace.value(dangling.format(table, column, column, other)) == 0
    assert workspace.value(dangling.format("run_parts", "run_id", "run_id", "runs")) == 0
    assert workspace.value("SELECT bool_and(read = imported + rejected + skipped) FROM sources") is not False
    return {native_id: [step.arguments_json for step in run.steps] for native_id, run in runs.items()}


def whole(workspace, write, spans):
    """What one file with all spans gives."""
    import_logs(workspace, write("whole.jsonl", as_lines(spans)))
    return calls(workspace)


@pytest.fixture
def other(tmp_path_factory):
    return Workspace.open(tmp_path_factory.mktemp("other") / "w.duckdb")


@pytest.mark.parametrize("pack", [as_lines, as_document])
@pytest.mark.parametrize("pack_too", [as_lines, as_document])
def test_traces_over_two_files_of_one_import(workspace, other, write, pack, pack_too):
    spans = [each for number in range(5) for each in trace(number)]
    paths = [write("a", pack(spans[:12])), write("b", pack_too(spans[12:]))]
    result = import_logs(workspace, paths)
    assert counts(result) == (25, 25, 0, 5, 0)
    assert [(source["read"], source["imported"]) for source in result.sources] == [(12, 12), (13, 13)]
    assert calls(workspace) == whole(other, write, spans)
    assert workspace.value("SELECT sum(records) FROM run_parts") == 3  # what is in the second file of the third trace
    # All again, in any order and packed: nothing new.
    packed = [write(f"{path.name}.gz", gzip.compress(path.read_bytes())) for path in paths]
    for again in (paths, paths[::-1], packed, paths[0]):
        assert counts(import_logs(workspace, again))[1:] == (0, counts(import_logs(workspace, again))[0], 0, 0)
    assert workspace.value("SELECT count(*) FROM sources") == 2


@pytest.mark.parametrize("pack", [as_lines, as_document])
def test_a_part_that_comes_in_a_later_import_completes_the_run(workspace, other, write, pack):
    spans = [each for number in range(3) for each in trace(number)]
    label = "INSERT INTO labels SELECT run_id, 1.0, 'person:ann', now() FROM runs WHERE native_id = ?"
    assert counts(import_logs(workspace, write("a", pack(spans[:7])))) == (7, 7, 0, 2, 0)
    with workspace.write() as db:
        db.execute(label, [TRACE.format(1)])
    assert counts(import_logs(workspace, write("b", pack(spans[7:12])))) == (5, 5, 0, 1, 1)
    assert counts(import_logs(workspace, write("c", pack(spans[12:])))) == (3, 3, 0, 0, 1)
    assert calls(workspace) == whole(other, write, spans)
    assert workspace.value("SELECT count(*) FROM labels SEMI JOIN runs USING (run_id)") == 1
    for name in "abc":
        result = import_logs(workspace, workspace.path.parent / name)
        assert (result.imported, result.replaced) == (0, 0)


def test_a_third_part_completes_what_two_files_hold(workspace, other, write):
    spans = trace(1, calls=8)
    for name, part in (("a", spans[:3]), ("b", spans[3:6]), ("c", spans[6:])):
        result = import_logs(workspace, write(name, as_lines(part)))
        assert (result.imported, result.skipped) == (3, 0)
    assert calls(workspace) == whole(other, write, spans)


def test_an_earlier_part_in_an_archive_is_found_again(workspace, other, write):
    spans = trace(1)
    import_logs(workspace, write("a.gz", gzip.compress(as_lines(spans[:2]).encode())))
    assert import_logs(workspace, write("b", as_lines(spans[2:]))).replaced == 1
    assert calls(workspace) == whole(other, write, spans)


@pytest.mark.parametrize("gone", ["removed", "changed"])
def test_a_part_whose_earlier_part_is_gone_is_kept_out_and_said(workspace, write, gone):
    spans = trace(1)
    path = write("a", as_lines(spans[:2]))
    import_logs(workspace, path)
    before = calls(workspace)
    path.unlink() if gone == "removed" else path.write_text("something else")
    result = import_logs(workspace, write("b", as_lines(spans[2:])))
    assert (result.read, result.rejected, result.replaced) == (3, 3, 0)
    assert calls(workspace) == before
    assert "another part of it" in workspace.value("SELECT reason FROM rejects")
    # With all parts in hand it is made whole.
    path.write_text(as_lines(spans[:2]))
    other = write("b2", as_lines(spans[2:]) + "\n")
    assert import_logs(workspace, [path, other]).replaced == 1
    assert len(calls(workspace)[TRACE.format(1)]) == 4


def test_a_grown_file_of_traces(workspace, other, write):
    spans = [each for number in range(3) for each in trace(number)]
    import_logs(workspace, write("log", as_lines(spans[:7])))
    assert counts(import_logs(workspace, write("log", as_lines(spans)))) == (15, 10, 5, 1, 1)
    assert calls(workspace) == whole(other, write, spans)
    assert workspace.value("SELECT count(*) FROM sources") == 1


def test_a_span_that_is_written_twice_is_one(workspace, other, write):
    spans = [each for number in range(3) for each in trace(number)]
    doubled = [*spans, *spans[3:9]]
    random.Random(0).shuffle(doubled)
    result = import_logs(workspace, write("log", as_lines(doubled)))
    assert (result.read, result.imported, result.runs) == (21, 21, 3)
    assert calls(workspace) == whole(other, write, spans)


def test_a_file_and_its_longer_copy_in_one_import(workspace, other, write):
    spans = [each for number in range(3) for each in trace(number)]
    result = import_logs(workspace, [write("old", as_lines(spans[:7])), write("new", as_lines(spans))])
    assert (result.read, result.runs) == (22, 3)
    assert calls(workspace) == whole(other, write, spans)


def test_a_part_that_goes_before_its_turn_costs_itself_only(workspace, write):
    spans = [each for number in range(4) for each in trace(number)]
    first, second = write("a", as_lines(spans[:7] * 400)), write("b", as_lines(spans[7:]))

    def progress(done, total, note):
        second.unlink(missing_ok=True)

    result = import_logs(workspace, [first, second], progress=progress)
    assert result.read == result.imported + result.rejected + result.skipped
    assert (result.runs, result.rejected) == (2, 1)


def test_spans_without_a_trace_of_two_files_are_not_mixed(workspace, write):
    def loose(number):
        return {**trace(number, 1)[0], "traceId": ""}

    spans = trace(1)
    paths = [write("a", as_lines([*spans[:2], loose(7)])), write("b", as_lines([*spans[2:], loose(8)]))]
    result = import_logs(workspace, paths)
    assert (result.read, result.imported, result.runs) == (7, 7, 3)


WEBHOOK = "langsmith/langsmith_webhook_trace_2025-11-15T17-{}.json"


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("late_root_last", [True, False])
def test_the_late_root_of_a_langsmith_trace(workspace, other, shared_log, write, together, late_root_last):
    """Two real bodies of one webhook: ten runs of a trace, then four with its root."""
    paths = [shared_log(WEBHOOK.format(end)) for end in ("38-05.316920", "39-08.334291")]
    bodies = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if not late_root_last:
        paths.reverse()
    if together:
        result = import_logs(workspace, paths)
        assert counts(result) == (14, 14, 0, 1, 0)
    else:
        first, second = (import_logs(workspace, path) for path in paths)
        assert {first.read, second.read} == {10, 4}
        assert (first.runs, second.runs, first.replaced, second.replaced) == (1, 0, 0, 1)
        assert first.imported + second.imported == 14
    import_logs(other, write("all.json", json.dumps([run for body in bodies for run in body["runs"]])))
    assert calls(workspace) == calls(other)
    [steps] = calls(workspace).values()
    assert len(steps) == 2
    facts = "SELECT native_id, model, started_at, ended_at, input_tokens, output_tokens, t.text FROM runs"
    facts += " JOIN tasks t USING (task_id)"
    assert workspace.rows(facts) == other.rows(facts)
