"""The small parts that readers share: times, evidence, pairing, arguments, outcomes, effect classes, schemas."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.errors import InputError
from poc.ingest import guess_effect, import_logs, set_effect
from poc.ingest.arguments import from_text, from_value
from poc.ingest.evidence import judge, read_flag
from poc.ingest.outcome_values import read_outcome
from poc.ingest.pairing import Pairing
from poc.ingest.schemas import infer, merge
from poc.ingest.times import parse_time
from poc.trajectory import Step

# Times ----------------------------------------------------------------------------------------------------

NOON = datetime(2024, 5, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "zone"),
    [
        ("2024-05-15T12:00:00Z", True),
        ("2024-05-15T14:00:00+02:00", True),
        ("2024-05-15 12:00:00 UTC", True),
        ("2024-05-15T12:00:00.000000000Z", True),
        ("2024-05-15T12:00:00", False),
        ("2024/5/15 12:00:00", False),
        (1715774400, True),
        (1715774400.0, True),
        (1715774400000, True),
        ("1715774400000000", True),
        (1715774400000000000, True),
        ("1715774400000000000", True),
        (1.7157744e18, True),
    ],
)
def test_times(value, zone):
    assert parse_time(value) == (NOON, zone)


@pytest.mark.parametrize(
    "value", [None, True, "", "yesterday", 12, 1e30, float("nan"), float("inf"), [], "99999999999999999999999"]
)
def test_what_is_no_time(value):
    assert parse_time(value) == (None, None)


@settings(deadline=None)
@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from([1, 1000, 1_000_000, 1_000_000_000]),
)
def test_a_time_survives_every_way_of_writing(moment, offset, scale):
    local = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    assert parse_time(local.isoformat()) == (local, True)
    assert parse_time(moment.isoformat()) == (moment.replace(tzinfo=UTC), False)
    whole = local.replace(microsecond=0)
    assert parse_time(int(whole.timestamp()) * scale) == (whole, True)


# Evidence -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"has_result": True, "text": "Error: x", "failed": False}, ("ok", "flag")),
        ({"has_result": True, "text": "fine", "failed": True}, ("error", "flag")),
        ({"has_result": True, "text": '{"isError": true, "exit_code": 0}'}, ("error", "flag")),
        ({"has_result": True, "text": '{"exit_code": 0, "error": "x"}'}, ("ok", "exit_code")),
        ({"has_result": True, "text": "x", "exit_code": "2"}, ("error", "exit_code")),
        ({"has_result": True, "text": '{"error": "no such order"}'}, ("error", "error_field")),
        ({"has_result": True, "text": '{"error": null}'}, ("ok", "result")),
        ({"has_result": True, "text": '{"error": ""}'}, ("ok", "result")),
        ({"has_result": True, "text": '{"success": false}'}, ("error", "error_field")),
        ({"has_result": True, "text": '{"status": "pending"}'}, ("ok", "result")),
        ({"has_result": True, "text": '{"order": {"error": "inner"}}'}, ("ok", "result")),
        ({"has_result": True, "text": "Error: x"}, ("error", "text_rule")),
        ({"has_result": True, "text": "No Error here"}, ("ok", "result")),
        ({"has_result": True, "text": '{"error": broken'}, ("ok", "result")),
        ({"has_result": False, "text": None, "error": "gone"}, ("error", "error_field")),
        ({"has_result": False, "text": None}, ("no_result", "none")),
        ({"has_result": True, "text": None}, ("ok", "result")),
    ],
)
def test_evidence_in_its_order(given_, expected):
    assert judge(**given_) == expected


@pytest.mark.parametrize(
    ("word", "failed"),
    [
        ("success", False),
        ("OK", False),
        (True, False),
        ("failed", True),
        (False, True),
        (500, True),
        ("200", False),
        ("pending", None),
        (0, None),
        (None, None),
    ],
)
def test_flags(word, failed):
    assert read_flag(word) is failed


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1.0),
        (0, 0.0),
        (0.25, 0.25),
        ("1.0", 1.0),
        ("Passed", 1.0),
        ("fail", 0.0),
        (2, None),
        (-1, None),
        ("x", None),
        (None, None),
        (float("nan"), None),
        ("nan", None),
    ],
)
def test_outcome_values(value, expected):
    assert read_outcome(value) == expected


# Arguments ------------------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(st.characters(codec="utf-8")), JSON_VALUES, max_size=4)


@settings(deadline=None)
@given(OBJECTS)
def test_arguments_survive_every_encoding(arguments):
    once = json.dumps(arguments, ensure_ascii=False)
    for text, status in ((once, "parsed"), (json.dumps(once), "repaired"), (repr(arguments), None)):
        raw, parsed, how = from_text(text)
        assert raw == text
        assert how in ({status} if status else {"parsed", "repaired"})
        assert json.loads(parsed) == arguments
    _, parsed, how = from_value(arguments)
    assert (json.loads(parsed), how) == (arguments, "parsed")


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_kept_as_it_is(text):
    raw, parsed, how = from_text(text)
    assert raw == text
    assert (parsed is None) == (how in ("unparsed", "absent"))


def test_code_in_a_repr_is_not_run():
    assert from_text("{'a': __import__('os').getcwd()}")[2] == "unparsed"


# Pairing --------------------------------------------------------------------------------------------------


def paired(events):
    """Events: (turn, id, tool) for calls, (id, name) for results; gives call index by result number."""
    pairing, calls, results = Pairing(), 0, 0
    for event in events:
        if len(event) == 3:
            pairing.call(Step(index=calls, turn=event[0], call_id=event[1], tool=event[2]))
            calls += 1
        else:
            pairing.result(results, event[0], event[1])
            results += 1
    pairing.finish()
    return {place: step.index for step, place in pairing.pairs}, sorted(pairing.orphans)


@pytest.mark.parametrize(
    ("events", "expected", "orphans"),
    [
        ([(0, "a", "t"), ("a", None)], {0: 0}, []),
        ([(0, "a", "t"), (0, "b", "t"), ("b", None), ("a", None)], {0: 1, 1: 0}, []),
        # the same id again and again
        ([(0, "x", "t"), ("x", None), (1, "x", "t"), ("x", None)], {0: 0, 1: 1}, []),
        ([(0, "x", "t"), (0, "x", "t"), ("x", None), ("x", None)], {0: 0, 1: 1}, []),
        ([(0, "x", "t"), (1, "x", "t"), ("x", None), ("x", None)], {0: 0, 1: 1}, []),
        # the first was left without an answer
        ([(0, "x", "t"), (1, "x", "t"), ("x", None)], {0: 1}, []),
        ([(0, None, "t"), (1, None, "t"), (None, None)], {0: 1}, []),
        # no ids: by position, by name
        ([(0, None, "t"), (0, None, "u"), (None, None), (None, None)], {0: 0, 1: 1}, []),
        ([(0, None, "t"), (0, None, "u"), (None, "u"), (None, "t")], {0: 1, 1: 0}, []),
        ([(0, None, "t"), (0, None, "t"), (None, "t"), (None, "t")], {0: 0, 1: 1}, []),
        # an answer that comes late still finds its call by its id
        ([(0, "a", "t"), (1, "b", "t"), ("b", None), (2, "c", "t"), ("a", None), ("c", None)], {0: 1, 1: 0, 2: 2}, []),
        # ids rewritten on one side: nothing is left over, so position decides
        ([(0, "call_1", "t"), ("1", None)], {0: 0}, []),
        ([(0, "call_1", "t"), (0, "call_2", "t"), ("9", None)], {}, [0]),
        # answers to nothing
        ([(None, None), (0, None, "t"), (None, None)], {1: 0}, [0]),
        ([(0, "a", "t"), ("a", None), ("a", None)], {0: 0}, [1]),
        ([(0, None, "t"), (None, "other")], {}, [0]),
    ],
)
def test_pairing(events, expected, orphans):
    assert paired(events) == (expected, orphans)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from([None, "a", "b"]), st.sampled_from(["t", "u"]), st.booleans()),
        st.tuples(st.just("result"), st.sampled_from([None, "a", "b", "z"]), st.sampled_from([None, "t", "u"])),
    ),
    max_size=25,
)


@settings(deadline=None)
@given(EVENTS)
def test_no_result_is_lost_and_none_is_used_twice(events):
    turn, plain, made_before = 0, [], []
    for event in events:
        if event[0] == "call":
            turn += event[3]
            plain.append((turn, event[1], event[2]))
        else:
            made_before.append(sum(len(other) == 3 for other in plain))
            plain.append((event[1], event[2]))
    pairs, orphans = paired(plain)
    assert sorted([*pairs, *orphans]) == list(range(len(made_before)))
    assert len(set(pairs.values())) == len(pairs)
    # A result never answers a call that comes after it.
    assert all(call < made_before[place] for place, call in pairs.items())


# Tools ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "effect"),
    [
        ("get_order", "read"),
        ("searchDirectFlight", "read"),
        ("list_items", "read"),
        ("cancel_reservation", "irreversible"),
        ("refund", "irreversible"),
        ("send_certificate", "irreversible"),
        ("update_address", "write"),
        ("book_reservation", "write"),
        ("shop__delete_user", "irreversible"),
        ("frobnicate", None),
        ("", None),
    ],
)
def test_guessed_effects(tool, effect):
    assert guess_effect(tool) == effect


def call(name, arguments):
    function = {"name": name, "arguments": arguments}
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
    ]


def test_schemas_are_inferred_and_grow(workspace, write):
    first = [call("get_order", {"id": "a", "deep": {"x": 1}}), call("get_order", {"id": "b", "n": 1})]
    import_logs(workspace, write("a.jsonl", first))
    (tool,) = workspace.rows("SELECT * FROM tools")
    assert (tool["origin"], tool["effect"], tool["effect_is_guess"]) == ("inferred", "read", True)
    schema = json.loads(tool["parameters"])
    assert schema["required"] == ["id"]
    assert schema["properties"]["deep"]["properties"]["x"] == {"type": "integer"}
    import_logs(
        workspace, write("b.jsonl", [call("get_order", {"n": 1.5}), call("get_order", {"n": 2, "tags": ["t"]})])
    )
    schema = json.loads(workspace.value("SELECT parameters FROM tools"))
    assert "required" not in schema
    assert schema["properties"]["n"] == {"type": "number"}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}


def test_a_logged_schema_wins_whenever_it_comes(workspace, write):
    logged = {"type": "object", "properties": {"id": {"type": "string", "enum": ["a"]}}}
    import_logs(workspace, write("a.jsonl", [call("get_order", {"id": "a"})] * 2))
    record = {
        "messages": call("get_order", {"id": "a", "x": 1}),
        "tools": [{"name": "get_order", "parameters": logged}],
    }
    import_logs(workspace, write("b.jsonl", [record, record]))
    import_logs(workspace, write("c.jsonl", [call("get_order", {"y": "a"})] * 2))
    (tool,) = workspace.rows("SELECT * FROM tools")
    assert (tool["origin"], json.loads(tool["parameters"])) == ("logged", logged)


def test_a_persons_effect_class_stays(workspace, write):
    import_logs(workspace, write("a.jsonl", [call("get_order", {"id": "a"})] * 2))
    set_effect(workspace, "get_order", "write")
    import_logs(workspace, write("b.jsonl", [call("get_order", {"id": "b"})] * 2))
    (tool,) = workspace.rows("SELECT effect, effect_is_guess FROM tools")
    assert tool == {"effect": "write", "effect_is_guess": False}
    with pytest.raises(InputError, match='Did you mean "get_order"'):
        set_effect(workspace, "get_ordr", "read")
    with pytest.raises(InputError, match='Did you mean "write"'):
        set_effect(workspace, "get_order", "wite")


def _as_seen(value):
    """What `infer` should say of one value, written without it."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    return {"type": {int: "integer", float: "number", str: "string"}[type(value)]}


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.booleans() | st.integers(0, 9) | st.text("xyz")), min_size=1)
)
def test_merging_schemas_loses_nothing(calls):
    merged = None
    for arguments in calls:
        schema = {"type": "object", "properties": {name: _as_seen(value) for name, value in arguments.items()}}
        if arguments:
            schema["required"] = list(arguments)
        merged = schema if merged is None else merge(merged, schema)
    assert set(merged["properties"]) == {name for arguments in calls for name in arguments}
    assert set(merged.get("required", [])) == set.intersection(*(set(arguments) for arguments in calls))
    for arguments in calls:
        for name, value in arguments.items():
            assert merged["properties"][name] in ({}, _as_seen(value))


def test_infer_without_structure():
    assert infer(None, 0, {}) == {"type": "object", "properties": {}}
