"""A condition on one step, compiled twice: to a SQL expression over ``steps`` and to a Python check of a `Step`.

What a condition says: the tool's name fits, the status is one of those named,
and for every path under ``arguments`` and ``result`` some value at that path
satisfies all of its operators. Paths with ``[*]`` may find many values; one
that fits is enough.

``$`` of a result is special: a result is a text before it is anything else,
so ``$`` finds the raw text, and the JSON value as well when the text is JSON.

Knows nothing of runs, sets or progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from poc.subgoals.documents import Document
from poc.subgoals.operators import OPERATORS, Value
from poc.subgoals.paths import JsonPath, parse_path
from poc.subgoals.patterns import fits, fits_sql, literal
from poc.subgoals.spec import StepCondition
from poc.trajectory import Step

Side = Literal["arguments", "result"]


class Facts:
    """One step as conditions see it; JSON is read once, when first needed, however many conditions look."""

    __slots__ = ("arguments", "result", "status", "tool")

    def __init__(self, tool: str, status: str, arguments: str | None, result: str | None) -> None:
        self.tool = tool
        self.status = status
        self.arguments = Document(arguments)
        self.result = Document(result)

    @classmethod
    def of(cls, step: Step) -> Facts:
        """The facts of a step."""
        return cls(step.tool, step.status, step.arguments_json, step.result)


@dataclass(frozen=True)
class PathTest:
    """The operators under one path of the arguments or the result."""

    side: Side
    path: JsonPath
    checks: tuple[tuple[str, Any], ...]

    @property
    def wants_absence(self) -> bool:
        """Whether this is ``exists: false``."""
        return self.checks == (("exists", False),)

    @property
    def on_raw_text(self) -> bool:
        """Whether this looks at ``$`` of a result, which is a text as well."""
        return self.side == "result" and self.path.is_root

    @property
    def needs_json(self) -> bool:
        """Whether the SQL needs the result read as JSON for every step that comes so far."""
        return self.side == "result" and not self.path.is_root

    def values(self, facts: Facts) -> list[Any]:
        """What the path finds in a step."""
        document = facts.arguments if self.side == "arguments" else facts.result
        found = document.values(self.path)
        if self.on_raw_text and document.text is not None:
            found = [*found, document.text]
        return found

    def fits(self, value: Any) -> bool:
        """Whether one value satisfies all operators."""
        return all(OPERATORS[name].python(operand, value) for name, operand in self.checks)

    def holds(self, facts: Facts) -> bool:
        """The test in Python."""
        values = self.values(facts)
        return not values if self.wants_absence else any(self.fits(value) for value in values)

    def sql(self) -> str:
        """The test in SQL over `arguments` (JSON), `result` (VARCHAR) and `result_json` (JSON); never NULL."""
        if self.on_raw_text:
            return self._root_sql()
        column = "arguments" if self.side == "arguments" else "result_json"
        found = f"json_extract({column}, {literal(self.path.duckdb)})"
        if self.path.many:
            if self.wants_absence:
                return f"coalesce(len({found}), 0) = 0"
            return f"coalesce(len(list_filter({found}, lambda x: {self._fits_sql(_json_value('x'))})), 0) > 0"
        if self.wants_absence:
            return f"{found} IS NULL"
        return f"({found} IS NOT NULL AND {self._fits_sql(_json_value(found))})"

    def _root_sql(self) -> str:
        if self.wants_absence:
            return "result IS NULL"
        if any(name == "exists" for name, _ in self.checks) and len(self.checks) == 1:
            return "result IS NOT NULL"
        whole = "json_extract(TRY_CAST(result AS JSON), '$')"
        as_json = self._fits_sql(_json_value(whole))
        operands = self._operands()
        if not all(any(isinstance(item, str) for item in items) for items in operands):
            return as_json  # some operator takes no text, so the raw text cannot satisfy it
        as_text = self._fits_sql(Value(None, "result"))
        if all(isinstance(item, str) for items in operands for item in items):
            # Reading every result as JSON is dear; texts can only meet a JSON value that is a text.
            quoted = "regexp_matches(result, '^[ \\t\\r\\n]*\"')"
            as_json = f"CASE WHEN {quoted} THEN {as_json} ELSE FALSE END"
        return f"({as_text} OR {as_json})"

    def _operands(self) -> list[list[Any]]:
        """Per operator (except exists) what the value is compared with."""
        return [operand if name == "in" else [operand] for name, operand in self.checks if name != "exists"]

    def _fits_sql(self, value: Value) -> str:
        tests = [OPERATORS[name].sql(operand, value) for name, operand in self.checks]
        return f"coalesce({' AND '.join(tests)}, FALSE)"


def _json_value(expression: str) -> Value:
    text = f"CAST({expression} AS VARCHAR)"
    return Value(text, f"CASE WHEN starts_with({text}, '\"') THEN json_extract_string({expression}, '$') END")


def _tests(side: Side, conditions: dict[str, dict[str, Any]]) -> tuple[PathTest, ...]:
    return tuple(PathTest(side, parse_path(path), tuple(checks.items())) for path, checks in conditions.items())


class Predicate:
    """A compiled condition."""

    def __init__(self, condition: StepCondition) -> None:
        self.tool = condition.tool
        self.status = condition.status
        self.tests = (*_tests("arguments", condition.arguments), *_tests("result", condition.result))

    def matches(self, facts: Facts) -> bool:
        """Whether a step satisfies the condition."""
        return (
            (self.tool is None or fits(self.tool, facts.tool))
            and facts.status in self.status
            and all(test.holds(facts) for test in self.tests)
        )

    def possible(self, facts: Facts) -> bool:
        """Whether a call could satisfy the condition, given its tool and arguments; the result is not known yet."""
        return (self.tool is None or fits(self.tool, facts.tool)) and all(
            test.holds(facts) for test in self.tests if test.side == "arguments"
        )

    def head_sql(self) -> str:
        """The cheap part in SQL: tool and status."""
        parts = [] if self.tool is None else [fits_sql(self.tool, "tool")]
        if set(self.status) != {"ok", "error", "no_result"}:
            parts.append(fits_sql(self.status, "status"))
        return " AND ".join(parts) or "TRUE"

    def sql(self) -> str:
        """The condition in SQL over the columns of `steps` and `result_json`; TRUE or FALSE, never NULL."""
        if not self.tests:
            return f"({self.head_sql()})"
        # CASE, unlike AND in a projection, spares the steps of other tools the reading of JSON.
        return f"CASE WHEN {self.head_sql()} THEN {' AND '.join(test.sql() for test in self.tests)} ELSE FALSE END"


def result_json_sql(predicates: Iterable[Predicate]) -> str:
    """The SQL of `result_json`: the result as JSON for the steps where some predicate needs it, else NULL."""
    heads: Sequence[str] = sorted(
        {predicate.head_sql() for predicate in predicates if any(test.needs_json for test in predicate.tests)}
    )
    if not heads:
        return "CAST(NULL AS JSON)"
    return f"CASE WHEN {' OR '.join(f'({head})' for head in heads)} THEN TRY_CAST(result AS JSON) END"
