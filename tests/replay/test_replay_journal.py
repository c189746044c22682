from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.errors import InputError, WorkspaceBusy, WorkspaceError
from poc.replay.calls import ArgumentsError, Repeats, canonical, canonical_text, parse_arguments
from poc.replay.journal import open_journal, read_journal, running_pid
from poc.replay.records import Call, Header, Session, StepDone, TurnDone, decode, encode
from poc.trajectory import Usage

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
HEADER = Header(experiment_id="e", plan_hash="p", arms={"none": 2})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def turn(number: int, text: str | None = "hello") -> TurnDone:
    return TurnDone(
        trial_id="t",
        attempt=1,
        turn=number,
        sent_at=NOW,
        content=text,
        tool_calls=(Call(id="c", name="look_up", arguments='{"a": 1}'),),
        usage=Usage(input_tokens=5),
        backoff_s=0.25,
    )


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "j" / "e.jsonl"
    records = [
        Session(pid=1, at=NOW),
        turn(0),
        turn(1, "日本語\n\x00\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")),
    ]
    with open_journal(path, HEADER) as (writer, before):
        assert before.records == ()
        for record in records:
            writer.write(record)
            assert read_journal(path).records[-1] == record
    assert read_journal(path).records == (HEADER, *records)
    with open_journal(path, HEADER) as (_, before):
        assert before.records == (HEADER, *records)


@settings(deadline=None)
@given(text=st.none() | st.text(), context=st.none() | st.text())
def test_any_text_survives_on_one_line(text, context):
    step = StepDone(
        trial_id="t",
        attempt=1,
        step=0,
        turn=0,
        ordinal=0,
        tool="x",
        arguments=text,
        result=text,
        status="ok",
        context=context,
    )
    line = encode(step)
    assert line.count(b"\n") == 1
    assert decode(line) == step


def test_cut_at_every_byte_only_whole_records_count(tmp_path):
    path = tmp_path / "e.jsonl"
    with open_journal(path, HEADER) as (writer, _):
        for number in range(3):
            writer.write(turn(number))
    data = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == 10]
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        journal = read_journal(path)
        # A record without its line end is whole too: only the end of the line is missing.
        whole = sum(end - 1 <= size for end in ends)
        assert len(journal.records) == whole, size
        assert len(journal.torn) == (size not in {0, *ends, *(end - 1 for end in ends)})


def test_a_torn_line_stays_alone(tmp_path):
    path = tmp_path / "e.jsonl"
    with open_journal(path, HEADER) as (writer, _):
        writer.write(turn(0))
    path.write_bytes(path.read_bytes() + encode(turn(1))[:20])
    with open_journal(path, HEADER) as (writer, before):
        assert before.torn == (3,)
        writer.write(turn(2))
    journal = read_journal(path)
    assert journal.records == (HEADER, turn(0), turn(2))
    assert journal.torn == (3,)


def test_one_writer_at_a_time(tmp_path):
    import os

    path = tmp_path / "e.jsonl"
    assert running_pid(path) is None
    with open_journal(path, HEADER):
        assert running_pid(path) == os.getpid()
        with pytest.raises(WorkspaceBusy, match=str(os.getpid())), open_journal(path, HEADER):
            pass
    assert running_pid(path) is None
    with open_journal(path, HEADER):
        pass


def test_another_plan_is_refused(tmp_path):
    path = tmp_path / "e.jsonl"
    with open_journal(path, HEADER):
        pass
    with (
        pytest.raises(InputError, match="another plan"),
        open_journal(path, Header(experiment_id="e", plan_hash="q", arms={})),
    ):
        pass


def test_a_newer_journal_and_a_folder_in_its_place_are_refused(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(encode(Header(experiment_id="e", plan_hash="p", arms={}, version=99)))
    with pytest.raises(WorkspaceError, match="newer version"):
        read_journal(path)
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(WorkspaceError, match="cannot be read"):
        read_journal(tmp_path / "folder.jsonl")


def test_arguments_as_models_write_them():
    assert parse_arguments(None) == parse_arguments("") == parse_arguments(" \n") == {}
    assert parse_arguments('{"a": {"b": [1, null]}}') == {"a": {"b": [1, None]}}
    for bad in ("{", "[]", "1", "null", '"x"', '{"a": NaN}', '{"a": Infinity}', "[" * 100_000):
        with pytest.raises(ArgumentsError):
            parse_arguments(bad)


@settings(deadline=None)
@given(value=st.dictionaries(st.text(max_size=4), JSON, max_size=4), data=st.data())
def test_canonical_ignores_order_spacing_and_kind_of_number(value, data):
    import json

    keys = data.draw(st.permutations(list(value)))
    other = json.dumps({key: value[key] for key in keys}, indent=3, ensure_ascii=True)
    assert canonical(json.loads(other)) == canonical(value) == canonical_text(other)
    assert parse_arguments(canonical(value)) == value
    assert canonical({"a": 5.0}) == canonical({"a": 5})
    assert canonical({"a": "5"}) != canonical({"a": 5})


def test_repeats_need_an_earlier_success():
    repeats = Repeats()
    assert not repeats.is_repeat("a", "{}")
    repeats.note("a", "{}", ok=False)
    assert not repeats.is_repeat("a", "{}")
    repeats.note("a", "{}", ok=True)
    assert repeats.is_repeat("a", "{}")
    assert not repeats.is_repeat("b", "{}")
    repeats.note("c", None, ok=True)
    assert not repeats.is_repeat("c", None)
    assert canonical_text("{") is None
    assert canonical_text(None) is None
