"""What a good record looks like, for each check and oddity: JSON lines that this program itself imports without a gap.

Knows the checks' ids, no sentences; tests import every example.
"""

from __future__ import annotations

import json
from typing import Any

_CALL: dict[str, Any] = {"run_id": "run-0042", "step": 3, "tool": "get_order", "arguments": {"order_id": "W1001"}}
_GOOD: dict[str, Any] = {
    **_CALL,
    "call_id": "call_3",
    "execution_id": "exec-0917",
    "result": '{"status": "shipped"}',
    "is_error": False,
    "start_time": "2025-03-01T09:30:00.125Z",
    "end_time": "2025-03-01T09:30:00.537Z",
    "task_text": "Where is my order W1001?",
    "outcome": 1,
    "input_tokens": 1820,
    "output_tokens": 64,
}
_RETRY: dict[str, Any] = {"step": 4, "execution_id": "exec-0918", "is_error": False}
_NEXT: dict[str, Any] = {"step": 4, "start_time": "2025-03-01T09:30:01.002Z"}
_FIELDS: dict[str, tuple[str, ...]] = {
    "tool": (),
    "arguments": (),
    "result": ("result",),
    "status": ("result", "is_error"),
    "status_evidence": ("is_error",),
    "order": ("start_time",),
    "start_time": ("start_time",),
    "duration": ("start_time", "end_time"),
    "run_id": (),
    "execution_id": ("execution_id",),
    "task_text": ("task_text",),
    "outcome": ("outcome",),
    "tokens": ("input_tokens", "output_tokens"),
    "paired_results": ("call_id", "result"),
    "end_before_start": ("start_time", "end_time"),
    "outside_run": ("start_time", "end_time"),
    "future": ("start_time",),
    "no_zone": ("start_time",),
    "no_steps": ("result",),
}
_PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "repeat_at_once": ({**_CALL, "execution_id": "exec-0917", "is_error": True}, {**_CALL, **_RETRY}),
    "repeat_later": ({**_CALL, "execution_id": "exec-0917"}, {**_CALL, "step": 9, "execution_id": "exec-0931"}),
    "same_start": ({**_CALL, "start_time": _GOOD["start_time"]}, {**_CALL, **_NEXT}),
    "backwards": ({**_CALL, "start_time": _GOOD["start_time"]}, {**_CALL, **_NEXT}),
}


def example(check_id: str) -> str:
    """One or two JSON lines that fulfil a check, or are free of an oddity, with no more fields than that needs."""
    if check_id in _PAIRS:
        return "\n".join(_line(record) for record in _PAIRS[check_id])
    return _line({**_CALL, **{name: _GOOD[name] for name in _FIELDS[check_id]}})


def whole_example() -> str:
    """One JSON line that fulfils every check."""
    return _line(_GOOD)


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)
