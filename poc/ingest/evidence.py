"""Whether a call failed, and which evidence says so.

Evidence is asked in a fixed order: an explicit flag, then an exit code, then
an error field, then the text rule ``^Error``. The one that decided is stored
beside the status, so that a team can see how far to trust it. A call without
a result is ``no_result``: neither an error nor an empty result.
Knows no format and no table.
"""

from __future__ import annotations

from typing import Any

import msgspec

from poc.trajectory import Evidence, Status

_BAD = frozenset(
    {"error", "err", "failed", "failure", "fail", "timeout", "timed_out", "exception", "false", "no", "denied"}
)
_GOOD = frozenset(
    {"ok", "success", "succeeded", "successful", "completed", "complete", "done", "true", "yes", "passed", "finished"}
)


class _Probe(msgspec.Struct, gc=False):
    """The fields of a result object that tell how the call went."""

    error: Any = None
    is_error: Any = None
    isError: Any = None
    success: Any = None
    status: Any = None
    exit_code: Any = None
    exitCode: Any = None
    returncode: Any = None
    return_code: Any = None


_decoder = msgspec.json.Decoder(_Probe)
_SILENT = _Probe()


def read_flag(value: Any) -> bool | None:
    """True: failed, False: went well, None: the value does not say. For words like ``success`` or HTTP codes.

    >>> read_flag("failed"), read_flag(200), read_flag("pending")
    (True, False, None)
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return _http(int(value))
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _BAD:
            return True
        if word in _GOOD:
            return False
        if word.isdigit():
            return _http(int(word))
    return None


def judge(
    *,
    has_result: bool,
    text: str | None,
    failed: bool | None = None,
    exit_code: Any = None,
    error: Any = None,
) -> tuple[Status, Evidence]:
    """Status of a call and the evidence for it.

    has_result: the log holds an answer, even an empty one.
    failed: an explicit flag, None where there is none.
    exit_code, error: fields beside the result; those inside a JSON result are found here.
    """
    if failed is not None:
        return ("error" if failed else "ok"), "flag"
    if exit_code is None and error is None and not has_result:
        return "no_result", "none"
    body = text.lstrip() if text else ""
    said = _said(body) if body[:1] == "{" else None
    if said is None and exit_code is None and error is None:
        return ("error", "text_rule") if body.startswith("Error") else ("ok", "result")
    if said is not None:
        for flag in (said.is_error, said.isError):
            if isinstance(flag, bool):
                return ("error" if flag else "ok"), "flag"
    code = _code(exit_code)
    if code is None and said is not None:
        for value in (said.exit_code, said.exitCode, said.returncode, said.return_code):
            code = _code(value) if code is None else code
    if code is not None:
        return ("ok" if code == 0 else "error"), "exit_code"
    if _says_error(error):
        return "error", "error_field"
    if said is not None and (_says_error(said.error) or said.success is False or said.status == "error"):
        return "error", "error_field"
    if body.startswith("Error"):
        return "error", "text_rule"
    return ("ok", "result") if has_result else ("no_result", "none")


def _said(body: str) -> _Probe | None:
    """What a result object says of how the call went; None when it says nothing."""
    # Most say nothing, and to look for letters is much cheaper than to parse. All fields of `_Probe` that can say
    # something hold one of these, unless their letters are escaped.
    if not ("rror" in body or "success" in body or "exit" in body or "return" in body or "\\u" in body):
        return None
    try:
        found = _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    if found.status != "error":
        found.status = None
    return None if found == _SILENT else found


def _http(code: int) -> bool | None:
    if 200 <= code < 300:
        return False
    if 400 <= code < 600:
        return True
    return None


def _code(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return int(value) if value == value and abs(value) < 1e9 else None
    if isinstance(value, str) and value.strip().lstrip("-").isdigit():
        return int(value)
    return None


def _says_error(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in ("", "none", "null", "false", "no", "0")
    return bool(value)
