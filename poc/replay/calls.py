"""Arguments of a tool call: read from what a model wrote, and compared.

Two calls are the same when the tool and the canonical arguments are the same:
key order, spacing and the spelling of escapes do not matter. Knows no
environment and no subgoal.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


class ArgumentsError(ValueError):
    """The arguments are no JSON object; the message may be told to the model."""


def parse_arguments(raw: str | None) -> dict[str, Any]:
    """The arguments object that a model wrote. Nothing at all means no arguments.

    Raises `ArgumentsError` with the place of the fault.
    """
    if raw is None or not raw.strip():
        return {}
    try:
        value = json.loads(raw, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ArgumentsError(
            f"The arguments are not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from error
    except RecursionError as error:
        raise ArgumentsError("The arguments are nested too deeply.") from error
    if not isinstance(value, dict):
        raise ArgumentsError("The arguments must be a JSON object.")
    return value


def canonical(arguments: Any) -> str:
    """One spelling for equal JSON values: keys sorted, no spaces, 5.0 as 5."""
    return json.dumps(_plain(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_text(arguments_json: str | None) -> str | None:
    """`canonical` of a JSON text; None when there is none or it cannot be read."""
    if arguments_json is None:
        return None
    try:
        return canonical(json.loads(arguments_json))
    except (json.JSONDecodeError, RecursionError):
        return None


class Repeats:
    """Finds repeated steps: same tool and canonical arguments as an earlier successful step of the trial."""

    def __init__(self) -> None:
        self._succeeded: set[tuple[str, str]] = set()

    def is_repeat(self, tool: str, arguments: str | None) -> bool:
        """Whether this call was already made with success. Unreadable arguments (None) repeat nothing."""
        return arguments is not None and (tool, arguments) in self._succeeded

    def note(self, tool: str, arguments: str | None, *, ok: bool) -> None:
        """Remember a finished step."""
        if ok and arguments is not None:
            self._succeeded.add((tool, arguments))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


def _no_constant(name: str) -> NoReturn:
    raise ArgumentsError(f"The arguments are not valid JSON: {name} is not a JSON value.")
