"""Counts add up whatever happens to a file, and what was not touched is read as before."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poc.errors import InputError
from poc.ingest import READERS, import_logs
from poc.ingest.detect import THRESHOLD, detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run
from poc.workspace import Workspace

SIZE = 12


def record(number):
    arguments = json.dumps({"order": f"#W{number}", "note": 'quo"te {[' + "é" * number})
    function = {"name": "get_order", "arguments": arguments}
    return {
        "task_id": number,
        "reward": number % 2,
        "messages": [
            {"role": "user", "content": f"order {number}, please"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps({"total": number * 1.5})},
        ],
    }


LINES = [json.dumps(record(number), ensure_ascii=False).encode() for number in range(SIZE)]

DAMAGE = st.lists(
    st.one_of(
        st.tuples(st.just("flip"), st.integers(0, SIZE - 1), st.integers(0, 10_000), st.integers(0, 255)),
        st.tuples(st.just("cut"), st.integers(0, SIZE - 1), st.integers(0, 10_000), st.just(0)),
        st.tuples(st.just("double"), st.integers(0, SIZE - 1), st.just(0), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, SIZE - 1), st.just(0), st.just(0)),
    ),
    max_size=4,
)


def damaged(damage):
    lines = [bytearray(line) for line in LINES]
    extra = []
    for kind, line, place, byte in damage:
        if kind == "flip" and lines[line]:
            lines[line][place % len(lines[line])] = byte
        elif kind == "cut" and lines[line]:
            del lines[line][place % len(lines[line]) :]
        elif kind == "double":
            extra.append(bytes(lines[line]))
        elif kind == "drop":
            lines[line] = bytearray()
    return b"\n".join([*(bytes(line) for line in lines), *extra]) + b"\n"


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DAMAGE)
def test_every_line_is_counted_once(tmp_path_factory, damage):
    content = damaged(damage)
    path = tmp_path_factory.mktemp("damage") / "log.jsonl"
    path.write_bytes(content)
    items = list(READERS["openai_chat"].read(Source(path)))
    lines = content.split(b"\n")
    assert sum(item.records for item in items) == sum(bool(line.strip()) for line in lines)
    # A line that is still whole gives its run, at its own line number.
    whole = {f"line {number}" for number, line in enumerate(lines, 1) if line in LINES}
    assert whole <= {item.place for item in items if isinstance(item, Run)}
    assert not whole & {item.place for item in items if isinstance(item, Reject)}


@settings(deadline=None, max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DAMAGE)
def test_counts_add_up_in_the_workspace(tmp_path_factory, damage):
    folder = tmp_path_factory.mktemp("damage")
    content = damaged(damage)
    path = folder / "log.jsonl"
    path.write_bytes(content)
    workspace = Workspace.open(folder / "w.duckdb")
    result = import_logs(workspace, path)
    lines = [line for line in content.split(b"\n") if line.strip()]
    assert result.read == len(lines) == result.imported + result.rejected + result.skipped
    assert workspace.value("SELECT count(*) FROM runs") == result.runs == result.imported
    assert workspace.value("SELECT coalesce(sum(records), 0) FROM rejects") == result.rejected
    again = import_logs(workspace, path)
    assert (again.read, again.imported, again.rejected) == (result.read, 0, result.rejected)
    assert again.skipped == result.imported + result.skipped


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.sampled_from([None, 1, 4]))
def test_a_cut_document_gives_whole_runs_only(tmp_path_factory, cut, indent):
    text = json.dumps([record(number) for number in range(6)], indent=indent)
    content = text[: 2 + cut % (len(text) - 2)]
    path = tmp_path_factory.mktemp("cut") / "log.json"
    path.write_text(content)
    items = list(READERS["openai_chat"].read(Source(path)))
    runs = [item for item in items if isinstance(item, Run)]
    assert [run.task_key for run in runs] == [str(number) for number in range(len(runs))]
    assert all(len(run.messages) == 3 and len(run.steps) == 1 for run in runs)
    # What is cut off is said once, unless the cut fell between two runs or after the end.
    rejects = [item for item in items if isinstance(item, Reject)]
    assert sum(reject.records for reject in rejects) == 1


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=400),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.lists(
            st.sampled_from(
                [b'{"role"', b":", b'"tool"', b"[", b"]", b"{", b"}", b",", b'"', b"\n", b"\\", b"1", b"tool,args\n"]
            ),
            max_size=30,
        ).map(b"".join),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "log"
    path.write_bytes(content)
    source = Source(path)
    for reader in READERS.values():
        assert 0.0 <= reader.sniff(source.sample, source.name) <= 1.0
    if source.problem() is None:
        try:
            found = detect(source)
        except InputError:
            found = None
        else:
            assert found.confidence >= THRESHOLD
        for name in READERS:
            try:
                items = list(READERS[name].read(Source(path)))
            except InputError:
                continue
            assert all(isinstance(item, Run | Reject) for item in items)
