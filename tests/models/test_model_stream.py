"""Streams as different servers send them give the same response; usage has one meaning."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.models.stream import Assembler, parse_arguments
from poc.models.turn import Turn
from poc.models.usage import normalise
from poc.trajectory import Usage


def chunk(*calls, index=0, finish=None, **delta):
    inner = {**delta, **({"tool_calls": list(calls)} if calls else {})}
    return {"choices": [{"index": index, "delta": inner, "finish_reason": finish}]}


def call(name=None, arguments=None, **more):
    function = {**({"name": name} if name else {}), **({"arguments": arguments} if arguments is not None else {})}
    return {**more, "function": function}


def assemble(*chunks) -> Assembler:
    answer = Assembler()
    for one in chunks:
        answer.feed(one)
    return answer


TWO = [("look", {"a": 1}), ("find", {"b": 2})]

STREAMS = {
    "by the book": [
        chunk(call("look", "", index=0, id="c1", type="function")),
        chunk(call(None, '{"a"', index=0)),
        chunk(call(None, ": 1}", index=0)),
        chunk(call("find", "", index=1, id="c2", type="function")),
        chunk(call(None, '{"b": 2}', index=1)),
    ],
    "interleaved": [
        chunk(call("look", "", index=0, id="c1"), call("find", "", index=1, id="c2")),
        chunk(call(None, '{"b"', index=1), call(None, '{"a"', index=0)),
        chunk(call(None, ": 1}", index=0), call(None, ": 2}", index=1)),
    ],
    "whole calls in one chunk": [
        chunk(call("look", '{"a": 1}', index=0, id="c1"), call("find", '{"b": 2}', index=1, id="c2"))
    ],
    "whole calls without index": [chunk(call("look", '{"a": 1}', id="c1"), call("find", '{"b": 2}', id="c2"))],
    "every call numbered 0": [
        chunk(call("look", '{"a": 1}', index=0, id="c1")),
        chunk(call("find", '{"b": 2}', index=0, id="c2")),
    ],
    "every call numbered 0 without id": [
        chunk(call("look", '{"a": 1}', index=0, id="")),
        chunk(call("find", '{"b": 2}', index=0, id="")),
    ],
    "neither index nor id": [
        chunk(call("look", '{"a"')),
        chunk(call(None, ": 1}")),
        chunk(call("find", '{"b": 2}')),
    ],
    "name and id again in every chunk": [
        chunk(call("look", '{"a"', index=0, id="c1")),
        chunk(call("look", ": 1}", index=0, id="c1")),
        chunk(call("find", '{"b"', index=1, id="c2")),
        chunk(call("find", ": 2}", index=1, id="c2")),
    ],
    "name again without id": [
        chunk(call("look", '{"a"', index=0)),
        chunk(call("look", ": 1}", index=0)),
        chunk(call("find", '{"b": 2}', index=1)),
    ],
    "name in pieces": [
        chunk(call("lo", "", index=0, id="c1")),
        chunk(call("ok", "", index=0)),
        chunk(call(None, '{"a": 1}', index=0)),
        chunk(call("find", '{"b": 2}', index=1, id="c2")),
    ],
    "arguments as objects": [chunk(call("look", {"a": 1}, index=0), call("find", {"b": 2}, index=1))],
    "a message in place of a delta": [
        {
            "choices": [
                {"message": {"tool_calls": [call("look", '{"a": 1}', id="c1"), call("find", '{"b": 2}', id="c2")]}}
            ]
        }
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_calls_are_the_same_however_they_come(name):
    calls = assemble(*STREAMS[name]).tool_calls()
    assert [(one.name, one.arguments) for one in calls] == TWO
    assert len({one.id for one in calls}) == 2
    assert all(one.id_given == one.id.startswith(("c1", "c2")) for one in calls)


def test_two_calls_of_one_tool_without_index_stay_two():
    calls = assemble(chunk(call("look", '{"a": 1}'), call("look", '{"a": 1}'))).tool_calls()
    assert [one.arguments for one in calls] == [{"a": 1}, {"a": 1}]


def test_the_older_function_call():
    answer = assemble(
        chunk(function_call={"name": "look", "arguments": '{"a"'}),
        chunk(function_call={"arguments": ": 1}"}),
        chunk(finish="function_call"),
    )
    assert [(one.name, one.arguments) for one in answer.tool_calls()] == [("look", {"a": 1})]
    assert answer.finish_reason == "function_call"


@pytest.mark.parametrize(
    ("raw", "reason"), [('{"a": ', "not valid JSON"), ("[1]", "list"), ('"x"', "str"), ("{'a': 1}", "not valid")]
)
def test_malformed_arguments_are_kept_as_written(raw, reason):
    (one,) = assemble(chunk(call("look", raw, index=0, id="c1"))).tool_calls()
    assert one.arguments is None
    assert one.arguments_raw == raw
    assert reason in (one.arguments_error or "")


def test_no_arguments_are_an_empty_object():
    assert parse_arguments("  ") == ({}, None)
    (one,) = assemble(chunk(call("look", index=0, id="c1"))).tool_calls()
    assert (one.arguments, one.arguments_raw) == ({}, "")


def test_text_refusal_and_other_choices():
    answer = assemble(
        chunk(content="Hel"),
        chunk(content=[{"type": "text", "text": "lo"}]),
        chunk(content="other", index=1),
        chunk(refusal="No."),
        chunk(content=None, finish="stop"),
        chunk(),
    )
    assert (answer.content, answer.refusal, answer.finish_reason) == ("Hello", "No.", "stop")
    assert assemble({"choices": []}).choices_seen is False


def test_what_counts_as_the_first_token():
    answer = Assembler()
    assert not answer.feed(chunk(role="assistant", content=""))
    assert not answer.feed({"choices": [], "usage": None})
    assert answer.feed(chunk(reasoning_content="hm"))
    assert answer.content is None
    assert answer.feed(chunk(call("look", index=0)))


@pytest.mark.parametrize(
    "junk", [{}, {"choices": None}, {"choices": "x"}, {"choices": [1]}, {"choices": [{"delta": 3}]}]
)
def test_junk_is_passed_over(junk):
    answer = assemble(junk, chunk(content="ok"))
    assert answer.content == "ok"


@given(st.text(), st.lists(st.integers(0, 30), max_size=6))
@settings(deadline=None)
def test_arguments_come_together_wherever_they_are_cut(text, cuts):
    raw = json.dumps({"v": text})
    edges = sorted({0, len(raw), *(min(cut, len(raw)) for cut in cuts)})
    pieces = [raw[start:end] for start, end in pairwise(edges)]
    for first in (call("look", "", index=0, id="c1"), call("look", "")):
        more = [chunk(call(None, piece, **{k: v for k, v in first.items() if k == "index"})) for piece in pieces]
        (one,) = assemble(chunk(first), *more).tool_calls()
        assert one.arguments_raw == raw
        parsed, error = one.arguments, one.arguments_error
        assert parsed == {"v": text} or error is not None


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60},
             "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(input_tokens=100, output_tokens=20, cached_tokens=60, reasoning_tokens=5),
        ),
        ({"prompt_tokens": 100, "completion_tokens": 20}, Usage(input_tokens=100, output_tokens=20)),
        ({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": None},
         Usage(input_tokens=100, output_tokens=20)),
        ({"prompt_tokens": 100, "completion_tokens": 0, "prompt_cache_hit_tokens": 64},
         Usage(input_tokens=100, output_tokens=0, cached_tokens=64)),
        # Anthropic's own: cached tokens stand beside the input.
        ({"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5},
         Usage(input_tokens=105, output_tokens=3, cached_tokens=90)),
        # OpenAI's newer names: cached tokens are inside.
        ({"input_tokens": 100, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 90}},
         Usage(input_tokens=100, output_tokens=3, cached_tokens=90)),
        # More cached than input: they cannot be inside.
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 90}},
         Usage(input_tokens=100, output_tokens=1, cached_tokens=90)),
        # Reasoning in the total but not in the completion.
        ({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 21,
          "completion_tokens_details": {"reasoning_tokens": 7}},
         Usage(input_tokens=10, output_tokens=11, reasoning_tokens=7)),
        ({"prompt_tokens": 10}, Usage(input_tokens=10)),
        ({"prompt_tokens": 10.0, "completion_tokens": True}, Usage(input_tokens=10)),
        ({"prompt_tokens": -1, "completion_tokens": "7"}, None),
        ({}, None),
        (None, None),
    ],
)  # fmt: skip
def test_usage_has_one_meaning(raw, usage):
    assert normalise(raw) == usage


def test_usage_is_found_where_servers_put_it():
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    expected = Usage(input_tokens=3, output_tokens=2)
    assert assemble({"choices": [], "usage": usage}).usage == expected
    assert assemble({"choices": [], "x_groq": {"usage": usage}}).usage == expected
    assert assemble({"choices": [{"delta": {}, "usage": usage}]}).usage == expected
    running = [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": n}} for n in range(3)]
    assert assemble(*running, {"choices": [], "usage": None}).usage == expected


def test_a_turn_as_a_message_for_the_history():
    from datetime import UTC, datetime

    def turn(**fields) -> Turn:
        fixed = {"total_s": 1.0, "http_status": 200, "sent_at": datetime.now(UTC), "estimated_input_tokens": 1}
        return Turn(**fixed, **fields)

    calls = assemble(chunk(call("look", '{"a": ', index=0, id="c1"))).tool_calls()
    assert turn(tool_calls=calls).message() == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": '}}],
    }
    assert turn(content="hi").message() == {"role": "assistant", "content": "hi"}
    assert turn().message() == {"role": "assistant", "content": ""}
    assert turn(refusal="no").message() == {"role": "assistant", "content": "no"}
