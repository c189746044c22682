"""Globs and regular expressions that mean the same in DuckDB and in Python.

A glob knows ``*`` (any text) and ``?`` (one character); everything else
stands for itself and the whole name must fit. A regular expression is RE2's,
which both DuckDB and google-re2 speak; it is searched anywhere in the text.

Knows nothing of conditions or steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import duckdb
import re2

from poc.errors import InputError
from poc.subgoals.documents import duck

_options = re2.Options()
_options.log_errors = False


class PatternError(InputError):
    """A regular expression that RE2 cannot read."""


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


@cache
def regex(pattern: str) -> Any:
    """The compiled RE2 expression; raises `PatternError` when either side cannot read it."""
    try:
        compiled = re2.compile(pattern, _options)
        duck().execute("SELECT regexp_matches('', ?)", [pattern])
    except (re2.error, duckdb.Error) as error:
        reason = error.args[0] if error.args else str(error)
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason).splitlines()[0]
        raise PatternError(
            f"The regular expression '{pattern}' cannot be read: {text.removeprefix('Invalid Input Error: ')}.",
            todo="Use RE2 syntax (no look-around, no back-references): https://github.com/google/re2/wiki/Syntax.",
        ) from error
    return compiled


def searches(pattern: str, text: str) -> bool:
    """Whether the expression is found anywhere in the text."""
    return regex(pattern).search(text) is not None


def searches_sql(pattern: str, column: str) -> str:
    """`searches` in SQL; NULL when the column is NULL."""
    return f"regexp_matches({column}, {literal(pattern)})"


@cache
def _glob(pattern: str) -> str:
    pieces = {"*": ".*", "?": "."}
    return "(?s)" + "".join(pieces.get(sign) or re2.escape(sign) for sign in pattern)


def fits(patterns: Iterable[str], name: str | None) -> bool:
    """Whether a name fits any of the globs; None fits none."""
    if name is None:
        return False
    return any(
        regex(_glob(pattern)).fullmatch(name) is not None if re.search(r"[*?]", pattern) else pattern == name
        for pattern in patterns
    )


def fits_sql(patterns: Iterable[str], column: str) -> str:
    """`fits` in SQL; NULL when the column is NULL."""
    exact: list[str] = []
    tests: list[str] = []
    for pattern in patterns:
        stem = pattern[:-1]
        if not re.search(r"[*?]", pattern):
            exact.append(literal(pattern))
        elif pattern == "*":
            tests.append(f"{column} IS NOT NULL")
        elif pattern.endswith("*") and not re.search(r"[*?]", stem):
            tests.append(f"starts_with({column}, {literal(stem)})")
        else:
            tests.append(f"regexp_full_match({column}, {literal(_glob(pattern))})")
    if exact:
        tests.insert(0, f"{column} = {exact[0]}" if len(exact) == 1 else f"{column} IN ({', '.join(exact)})")
    return tests[0] if len(tests) == 1 else "(" + " OR ".join(tests) + ")"
