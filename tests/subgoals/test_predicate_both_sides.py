"""The law that matters: a condition means the same in DuckDB and in Python, whatever a log holds."""

import json
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.subgoals import Facts, Predicate, StepCondition
from poc.subgoals.predicate import result_json_sql

KEYS = ["a", "b", "a b", 'q"t', "b\\s", "0", "é", "*", "[0]", "it's"]
NUMBERS: list[Any] = [0, 1, 5, -1, 5.0, 5.5, -0.0, 1e20, 1e300, 2**53, 2**53 + 1, 2**63, 2**64, 10**20, 10**400]
TEXTS = ["", "5", "true", "null", "x", "X", "é", "e\u0301", "😀", "\uffff", 'a"b', "it's", "a\\b", "a\nb", "a\0b", "/"]
scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.integers(-6, 6), st.floats(allow_nan=False),
    st.sampled_from(TEXTS), st.text(alphabet=st.characters(codec="utf-8"), max_size=4),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=8,
)
# What Python's and DuckDB's readers treat differently, or what looks like JSON and is not.
ODD = [
    "[1,]", '{"a":1,}', '{"a":[1,2,],}', "NaN", "[NaN]", '{"a":NaN}', '{"a":nan}', '{"a":-Infinity}', '{"a":-inf}',
    '{"a":1e400}', '{"a":-1e400}', '{"a":-0}', '{"a":-0.0}', '{"a":1E5}', '{"a":1e-400}', '{"a":1,"a":2}',
    '{"a":"\\ud800"}', '{"a":"\\uD83D\\uDE00"}', '{"a":"\\u0000x"}', '{"a":"\\u00e9"}', '{"a":01}', '{"a":.5}',
    "{'a':1}", "True", "None", "", "  ", ' "x" ', '"x', "5", " 5 ", "5 dollars", "\ufeff[1]", '{"a":"\t"}', "[1] x",
    '{"a":' + "9" * 5000 + "}", '{"a":0.12345678901234567890}', "[" * 3000 + "]" * 3000, '{"a":"\\/"}', '{"a":tRUE}',
    '{"a":123456789012345678901234567890.5}', '{"a":{"b":[1,{"a":5},]}}', '{"":1}', '{"a":18446744073709551616}',
    "-nan", "inf", "Infinity", "1" * 400, '{"a":[[1],[5,]]}', '["a",/*c*/1]', "null", "\xa0[1]", '{"\\u0061":5}',
]  # fmt: skip
json_texts = st.one_of(
    values.map(json.dumps),
    values.map(lambda value: json.dumps(value, ensure_ascii=False)),
    values.map(lambda value: json.dumps(value, indent=1)),
    st.sampled_from(ODD),
)
texts = st.one_of(st.none(), json_texts, st.sampled_from(TEXTS), st.text(st.characters(codec="utf-8"), max_size=6))
parts = st.one_of(
    st.sampled_from(KEYS).map(lambda key: f"[{json.dumps(key, ensure_ascii=False)}]"),
    st.just(".a"),
    st.just(".b"),
    st.integers(-2, 2).map(lambda index: f"[{index}]"),
    st.just("[*]"),
)
paths = st.lists(parts, max_size=3).map(lambda found: "$" + "".join(found))
operand_texts = st.one_of(
    st.sampled_from([text for text in TEXTS if "\0" not in text]), st.text("ab5é'\"\\", max_size=3)
)
operands = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.integers(-6, 6), operand_texts,
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
bounds = st.one_of(operand_texts, st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
checks = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "equals": operands,
            "in": st.lists(operands, min_size=1, max_size=3),
            "regex": st.sampled_from(["x", "^a", "(?i)É", "a.b", "^$", "\\d", "it's", "b$", "[^a]", "\\x{e9}"]),
            "gt": bounds,
            "lt": bounds,
            "exists": st.just(True),
        },
    ).filter(bool),
    st.just({"exists": False}),
    st.fixed_dictionaries({"equals": operands}),
)
globs = st.sampled_from(["get_*", "get_order", "*", "?et_order", "g*r", "it's*", "[a]*", "get.order", "*_*r"])
conditions = st.builds(
    lambda tool, status, arguments, result: StepCondition.model_validate(
        {"tool": tool, "status": status, "arguments": arguments, "result": result}
    ),
    st.lists(globs, min_size=1, max_size=2),
    st.lists(st.sampled_from(["ok", "error", "no_result"]), min_size=1, max_size=3),
    st.dictionaries(paths, checks, max_size=2),
    st.dictionaries(paths, checks, max_size=2),
)
steps = st.tuples(
    st.sampled_from(["get_order", "get order", "it's", "[a]b", "get_\norder", "x"]),
    st.sampled_from(["ok", "error", "no_result"]),
    texts,
    texts,
)


@pytest.fixture(scope="module")
def db():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE steps (n INTEGER, tool VARCHAR, status VARCHAR, arguments JSON, result VARCHAR)"
        )
        yield connection


def in_sql(db: duckdb.DuckDBPyConnection, rows: list[tuple], predicates: list[Predicate]) -> list[tuple]:
    db.execute("DELETE FROM steps")
    columns = [list(column) for column in zip(*rows, strict=True)]
    db.execute(
        """
        INSERT INTO steps SELECT n, tool, status, TRY_CAST(arguments AS JSON), result FROM (
            SELECT unnest(?::INTEGER[]) AS n, unnest(?::VARCHAR[]) AS tool, unnest(?::VARCHAR[]) AS status,
                   unnest(?::VARCHAR[]) AS arguments, unnest(?::VARCHAR[]) AS result)
        """,
        [list(range(len(rows))), *columns],
    )
    flags = ", ".join(predicate.sql() for predicate in predicates)
    inner = f"SELECT *, {result_json_sql(predicates)} AS result_json FROM steps"
    return db.execute(f"SELECT {flags} FROM ({inner}) ORDER BY n").fetchall()


@given(st.lists(steps, min_size=1, max_size=12), st.lists(conditions, min_size=1, max_size=8))
@settings(deadline=None, max_examples=50)
def test_sql_and_python_agree(db, rows, conditions):
    predicates = [Predicate(condition) for condition in conditions]
    live = [tuple(predicate.matches(Facts(*row)) for predicate in predicates) for row in rows]
    assert in_sql(db, rows, predicates) == live


PROBES = [
    {"$.a": {"exists": True}}, {"$.a": {"exists": False}}, {"$.a": {"equals": 5}}, {"$.a": {"equals": None}},
    {"$.a": {"equals": "5"}}, {"$.a": {"gt": 0}}, {"$.a": {"lt": 0}}, {"$.a": {"regex": "."}}, {"$[*]": {"equals": 1}},
    {"$[0]": {"exists": True}}, {"$.a[*]": {"exists": False}}, {"$": {"exists": True}}, {"$": {"gt": 0}},
    {"$": {"equals": "x"}}, {"$": {"regex": "^x"}}, {"$.a": {"in": [True, 2, "x"]}}, {"$": {"equals": None}},
    {"$": {"in": ["5", 5]}}, {"$.a": {"gt": "w"}}, {"$.a": {"equals": 10**400}}, {"$.a[*][*]": {"equals": 5}},
    {"$": {"equals": 5}}, {"$.a": {"equals": 18446744073709551616}}, {"$": {"lt": "x"}}, {"$": {"exists": False}},
    {"$.a": {"equals": 9007199254740993}}, {"$.a": {"equals": 1e20}}, {"$.a.b[*]": {"equals": 1}},
]  # fmt: skip


@pytest.mark.parametrize("side", ["arguments", "result"])
def test_odd_texts_against_every_probe(db, side):
    predicates = [Predicate(StepCondition.model_validate({side: probe})) for probe in PROBES]
    rows = [("t", "ok", text, text) for text in [*ODD, *TEXTS, None]]
    for row, found in zip(rows, in_sql(db, rows, predicates), strict=True):
        live = tuple(predicate.matches(Facts(*row)) for predicate in predicates)
        assert found == live, (row[3], [probe for probe, x, y in zip(PROBES, found, live, strict=True) if x != y])


def matches(condition: dict, **step: Any) -> bool:
    facts = Facts(step.get("tool", "t"), step.get("status", "ok"), step.get("arguments"), step.get("result"))
    return Predicate(StepCondition.model_validate(condition)).matches(facts)


@pytest.mark.parametrize(
    ("checks", "value", "expected"),
    [
        ({"equals": 5}, "5", True), ({"equals": 5}, "5.0", True), ({"equals": 5}, '"5"', False),
        ({"equals": "5"}, "5", False), ({"equals": True}, "1", False), ({"equals": 1}, "true", False),
        ({"equals": None}, "null", True), ({"equals": 2**53}, str(2**53 + 1), False),
        ({"equals": 10**30}, str(10**30), True), ({"equals": 10**30}, str(10**30 + 1), False),
        ({"exists": True}, "null", True), ({"exists": False}, "null", False), ({"regex": "5"}, "5", False),
        ({"gt": 4, "lt": 6}, "5", True), ({"gt": 4}, '"5"', False), ({"gt": 0}, "NaN", False),
        ({"gt": 0}, "1e999", False), ({"gt": "2024-05-01"}, '"2024-05-20"', True),
        ({"in": ["x", 5]}, "5.0", True), ({"equals": "é"}, '"\\u00e9"', True),
        ({"equals": "é"}, '"e\\u0301"', False), ({"equals": "x"}, '["x"]', False),
    ],
)  # fmt: skip
def test_what_operators_mean(checks, value, expected):
    assert matches({"arguments": {"$.v": checks}}, arguments=f'{{"v":{value}}}') is expected


def test_a_missing_path_satisfies_only_exists_false():
    for checks in ({"equals": None}, {"in": [None]}, {"regex": ".*"}, {"gt": -1}, {"lt": 1}, {"exists": True}):
        assert not matches({"arguments": {"$.v": checks}}, arguments="{}")
        assert not matches({"arguments": {"$.v": checks}}, arguments=None)
    assert matches({"arguments": {"$.v": {"exists": False}}}, arguments=None)
    assert matches({"result": {"$.v": {"exists": False}}}, result="not json")


def test_several_operators_hold_for_the_same_element():
    condition = {"result": {"$[*].price": {"gt": 5, "lt": 10}}}
    assert matches(condition, result='[{"price":1},{"price":7}]')
    assert not matches(condition, result='[{"price":1},{"price":12}]')


def test_the_root_of_a_result_is_its_text_and_its_json():
    assert matches({"result": {"$": {"regex": "refund"}}}, result="Your refund is on its way")
    assert matches({"result": {"$": {"regex": "refund"}}}, result='{"note":"refund"}')
    assert matches({"result": {"$": {"equals": "done"}}}, result="done")
    assert matches({"result": {"$": {"equals": "done"}}}, result='"done"')
    assert matches({"result": {"$": {"equals": 5}}}, result="5")
    assert not matches({"result": {"$": {"exists": True}}}, result=None)


def test_status_is_ok_unless_said_otherwise():
    assert not matches({"tool": "t"}, status="error")
    assert matches({"tool": "t", "status": ["error", "no_result"]}, status="error")


def test_a_possible_call_is_judged_without_its_result():
    predicate = Predicate(
        StepCondition.model_validate(
            {"tool": "pay", "arguments": {"$.sum": {"gt": 0}}, "result": {"$.state": {"equals": "paid"}}}
        )
    )
    assert predicate.possible(Facts("pay", "no_result", '{"sum": 3}', None))
    assert not predicate.possible(Facts("pay", "no_result", '{"sum": 0}', None))
    assert not predicate.possible(Facts("get", "no_result", '{"sum": 3}', None))
