import json
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.context import PLACEMENTS, can_place, place
from poc.errors import InputError

CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
MESSAGES = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "Where is my order?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "sent"}'},
]

CONTENT = st.one_of(st.none(), st.text(max_size=20), st.just([{"type": "text", "text": "part"}]))
HISTORIES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": CONTENT}),
    max_size=6,
)


def test_each_place():
    tail = place(MESSAGES, "TEXT", "tail")
    assert tail == [*MESSAGES, {"role": "user", "content": "TEXT"}]
    system = place(MESSAGES, "TEXT", "system")
    assert system == [{"role": "system", "content": "You are an agent.\n\nTEXT"}, *MESSAGES[1:]]
    result = place(MESSAGES, "TEXT", "tool_result")
    assert result == [*MESSAGES[:3], {**MESSAGES[3], "content": '{"status": "sent"}\n\nTEXT'}]


def test_without_a_system_message_one_is_made():
    assert place(MESSAGES[1:2], "TEXT", "system") == [{"role": "system", "content": "TEXT"}, MESSAGES[1]]


def test_before_the_first_result_there_is_no_place():
    assert not can_place(MESSAGES[:2], "tool_result")
    assert place(MESSAGES[:2], "TEXT", "tool_result") == MESSAGES[:2]
    assert can_place(MESSAGES, "tool_result")


def test_content_in_parts_gets_a_part():
    parts = [{"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}]}]
    assert place(parts, "TEXT", "tool_result")[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "TEXT"},
    ]


def test_unknown_placement():
    with pytest.raises(InputError, match='Did you mean "tail"'):
        place(MESSAGES, "TEXT", "tai")  # type: ignore[arg-type]


@settings(deadline=None)
@given(messages=HISTORIES, placement=st.sampled_from(PLACEMENTS))
def test_the_input_stays_and_only_the_text_is_added(messages, placement):
    before = deepcopy(messages)
    marked = place(messages, "MARKED-TEXT", placement)
    assert messages == before
    assert place(messages, None, placement) == before
    dumped = json.dumps(marked)
    assert dumped.count("MARKED-TEXT") == int(can_place(messages, placement))
    # Take the text away again: what is left is the request without it, up to an emptied message.
    without = json.dumps(marked).replace("\\n\\nMARKED-TEXT", "").replace("MARKED-TEXT", "")
    left = [
        m for m in json.loads(without) if m not in ({"role": "user", "content": ""}, {"role": "system", "content": ""})
    ]
    for message in left:
        if isinstance(message["content"], list):
            message["content"] = [part for part in message["content"] if part["text"]]
    blank = [
        {**m, "content": m["content"] or ""} for m in left if m.get("content") or m["role"] not in ("user", "system")
    ]
    want = [
        {**m, "content": m["content"] or ""} for m in before if m.get("content") or m["role"] not in ("user", "system")
    ]
    assert blank == want


@given(messages=HISTORIES, placement=st.sampled_from(PLACEMENTS))
def test_changing_the_result_leaves_the_history_alone(messages, placement):
    before = deepcopy(messages)
    for message in place(messages, "TEXT", placement):
        message["role"] = "changed"
        if isinstance(message["content"], list):
            message["content"][0]["text"] = "changed"
    assert messages == before
