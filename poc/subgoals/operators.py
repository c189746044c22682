"""The operators of conditions: what each may be given, its DuckDB SQL and its Python check, side by side.

A condition looks at values that a JSON path finds. What the operators mean,
on both sides alike:

- ``exists: true`` holds when something is at the path, JSON null included;
  ``exists: false`` when nothing is: also when there are no arguments or the
  result is no JSON.
- ``equals`` compares with a text, number, true/false or null; ``in`` with
  any of a list of these. Kinds never mix: "5" is not 5, true is not 1, null
  is not missing. Numbers compare by value (5 equals 5.0); whole numbers of
  any length exactly, otherwise as doubles. Texts compare character by
  character, with case and without Unicode normalisation. Arrays and objects
  equal nothing.
- ``regex`` searches a text (RE2); numbers and other kinds never match.
- ``gt`` and ``lt`` compare numbers with a number (as doubles), or texts with
  a text (by code point; so ISO dates compare as expected). NaN and infinities
  are not numbers.

Several operators under one path must hold for the same value.

A `Value` describes one value in SQL: its JSON text, its content when it is a
text. Knows nothing of paths, steps or files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from poc.errors import InputError, did_you_mean
from poc.subgoals.patterns import literal, regex, searches, searches_sql

EXACT = 2**53
"""Up to here every whole number is a double, so comparing as doubles is exact."""


class OperandError(InputError):
    """An operator was given something that it cannot compare with."""


@dataclass(frozen=True)
class Value:
    """One value in SQL. `json`: its JSON text (VARCHAR), None for plain text; `text`: its content, NULL if no text."""

    json: str | None
    text: str

    @property
    def number(self) -> str:
        """The value as a double; NULL when it is no number."""
        return f"TRY_CAST({self.json} AS DOUBLE)"


@dataclass(frozen=True)
class Operator:
    """One operator. `check` refuses bad operands; `sql` and `python` are the same test of one value that is there."""

    name: str
    takes: str
    check: Callable[[Any], bool]
    sql: Callable[[Any, Value], str]
    python: Callable[[Any, Any], bool]


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be compared (true and false are not)."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def as_double(value: Any) -> float | None:
    """A number as a double; None when it is no number or lies beyond the doubles."""
    if not is_number(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _double(number: float) -> str:
    return f"CAST({literal(repr(float(number)))} AS DOUBLE)"


# equals -----------------------------------------------------------------------------------------------------


def _is_scalar(operand: Any) -> bool:
    return operand is None or isinstance(operand, (str, bool)) or is_number(operand)


def _equals_sql(operand: Any, value: Value) -> str:
    if isinstance(operand, str):
        if value.json is None:
            return f"{value.text} = {literal(operand)}"
        return f"{value.json} = CAST(to_json({literal(operand)}) AS VARCHAR)"
    if value.json is None:
        return "FALSE"
    if operand is None or isinstance(operand, bool):
        return f"{value.json} = '{json.dumps(operand)}'"
    double = as_double(operand)
    if type(operand) is float or abs(operand) <= EXACT:
        return f"{value.number} = {_double(operand)}"
    exact = f"{value.json} = '{operand}'"
    if double is None:
        return exact
    # Whole numbers keep their digits in JSON text; only the others have a point or an exponent.
    return f"({exact} OR (regexp_matches({value.json}, '[.eE]') AND {value.number} = {_double(double)}))"


def _equals(operand: Any, value: Any) -> bool:
    if is_number(operand):
        if type(operand) is int and type(value) is int:
            return operand == value
        double = as_double(value)
        return double is not None and double == as_double(operand)
    return type(value) is type(operand) and value == operand


# in ---------------------------------------------------------------------------------------------------------


def _is_scalars(operand: Any) -> bool:
    return isinstance(operand, list) and bool(operand) and all(_is_scalar(item) for item in operand)


def _in_sql(operand: Any, value: Value) -> str:
    return "(" + " OR ".join(_equals_sql(item, value) for item in operand) + ")"


def _in(operand: Any, value: Any) -> bool:
    return any(_equals(item, value) for item in operand)


# regex ------------------------------------------------------------------------------------------------------


def _is_pattern(operand: Any) -> bool:
    return isinstance(operand, str) and regex(operand) is not None


def _regex_sql(operand: Any, value: Value) -> str:
    return searches_sql(operand, value.text)


def _regex(operand: Any, value: Any) -> bool:
    return isinstance(value, str) and searches(operand, value)


# gt, lt -----------------------------------------------------------------------------------------------------


def _is_bound(operand: Any) -> bool:
    return isinstance(operand, str) or type(operand) is float or (type(operand) is int and abs(operand) <= EXACT)


def _order_sql(sign: str) -> Callable[[Any, Value], str]:
    def sql(operand: Any, value: Value) -> str:
        if isinstance(operand, str):
            return f"{value.text} {sign} {literal(operand)}"
        if value.json is None:
            return "FALSE"
        return f"(isfinite({value.number}) AND {value.number} {sign} {_double(operand)})"

    return sql


def _gt(operand: Any, value: Any) -> bool:
    if isinstance(operand, str):
        return isinstance(value, str) and value > operand
    double = as_double(value)
    return double is not None and double > operand


def _lt(operand: Any, value: Any) -> bool:
    if isinstance(operand, str):
        return isinstance(value, str) and value < operand
    double = as_double(value)
    return double is not None and double < operand


# exists -----------------------------------------------------------------------------------------------------
# Only ever asked of a value that is there; predicate.py turns `exists: false` into "no value found".


def _exists_sql(operand: Any, value: Value) -> str:
    return "TRUE"


def _exists(operand: Any, value: Any) -> bool:
    return True


_SCALAR = "a text, a number, true, false or null"
OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        Operator("equals", _SCALAR, _is_scalar, _equals_sql, _equals),
        Operator("in", f"a list, each item {_SCALAR}", _is_scalars, _in_sql, _in),
        Operator("regex", "a regular expression as text", _is_pattern, _regex_sql, _regex),
        Operator("exists", "true or false", lambda operand: isinstance(operand, bool), _exists_sql, _exists),
        Operator("gt", "a number (whole ones up to 2^53) or a text", _is_bound, _order_sql(">"), _gt),
        Operator("lt", "a number (whole ones up to 2^53) or a text", _is_bound, _order_sql("<"), _lt),
    )
}


def check_operators(checks: dict[str, Any]) -> None:
    """Refuse unknown operators, operands that do not fit and ``exists: false`` beside others.

    The `OperandError` carries the operator's name as `where`.
    """
    if not checks:
        raise OperandError("There is no operator.", todo=f"Give one or more of: {', '.join(OPERATORS)}.")
    for name, operand in checks.items():
        operator = OPERATORS.get(name)
        if operator is None:
            raise OperandError(f"There is no operator '{name}'.{did_you_mean(name, OPERATORS)}", where=name)
        try:
            fits = operator.check(operand)
        except InputError as error:
            raise OperandError(error.what, where=name, todo=error.todo) from error
        if not fits:
            raise OperandError(
                f"'{name}' cannot compare with {_shown(operand)}.",
                where=name,
                todo=f"'{name}' takes {operator.takes}.",
            )
    if checks.get("exists") is False and len(checks) > 1:
        raise OperandError("'exists: false' cannot stand beside other operators: there is no value to compare.")


def _shown(operand: Any) -> str:
    kinds = {list: "a list", dict: "a mapping"}
    shown = kinds.get(type(operand))
    return f"{shown}" if shown and operand else repr(operand)
