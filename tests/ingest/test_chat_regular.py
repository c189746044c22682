"""The fast way to read a usual chat and the way that makes all allowances give the same run."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.ingest.readers.chat_messages import decode_messages, fill
from poc.ingest.readers.chat_regular import read_regular
from poc.trajectory import Run

ids = st.sampled_from(["a", "b", "c", "d", "e"])
texts = st.sampled_from(
    [
        "",
        "fine",
        "Error: no",
        ' {"status": "error"}',
        '{"exit_code": 2}',
        '{"is_error": false}',
        "[1, 2]",
        "注文",
        "{'a'",
    ]
)
arguments = st.sampled_from(["", "{}", '{"a": 1.50}', "{'a': 1}", "free text", '"{\\"a\\": 1}"', "null"])
calls = st.builds(
    lambda call_id, name, text: {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}},
    ids,
    st.sampled_from(["look", "pay", ""]),
    arguments,
)
plain = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "developer", "critic"]), "content": st.none() | texts},
    optional={"name": st.none() | texts, "tool_calls": st.none() | st.lists(calls, max_size=3)},
)
results = st.fixed_dictionaries(
    {"role": st.just("tool"), "content": texts}, optional={"tool_call_id": ids, "name": texts}
)
odd = st.sampled_from(
    [
        {"role": "tool", "content": "x", "is_error": True},
        {"role": "assistant", "content": [{"type": "text", "text": "part"}]},
        {"role": "assistant", "content": "x", "timestamp": "2026-11-30T10:00:00Z"},
        {"role": None, "content": "x"},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "assistant", "tool_calls": [{"id": "z", "function": {"name": "look", "arguments": {"a": 1}}}]},
    ]
)


def slowly(raw: bytes) -> Run:
    run = Run(place="")
    fill(run, decode_messages(raw))
    return run


@settings(deadline=None, max_examples=400)
@given(st.lists(plain | results | plain | results | odd, min_size=1, max_size=12))
def test_both_ways_agree_wherever_the_fast_one_answers(chat):
    raw = json.dumps(chat, ensure_ascii=False).encode()
    found = read_regular(raw)
    if found is not None:
        assert msgspec.to_builtins(found) == msgspec.to_builtins(slowly(raw))


def test_the_fast_way_is_taken_for_what_is_usual_and_for_nothing_else():
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    usual = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "annotations": []},
        {"role": "tool", "tool_call_id": "a", "name": "look", "content": "nothing"},
        {"role": "assistant", "content": "Done"},
    ]
    run = read_regular(json.dumps(usual).encode())
    assert run is not None
    assert (len(run.messages), [step.result for step in run.steps], run.task_text) == (4, ["nothing"], "Look")


@pytest.mark.parametrize(
    "chat",
    [
        [],
        [{"role": "tool", "tool_call_id": "a", "content": "answers nothing"}],
        [{"role": "tool", "content": "has no id"}],
        [{"role": "assistant", "content": "x", "usage": {"prompt_tokens": 3}}],
        [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}] * 2}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}],
    ],
)
def test_the_rest_is_left(chat):
    assert read_regular(json.dumps(chat).encode()) is None


@pytest.mark.parametrize("raw", [b"", b"{}", b"[", b'[{"role": "user", "content": "\xff"}]', b'[{"role": "\\ud800"}]'])
def test_broken_text_is_left(raw):
    assert read_regular(raw) is None
