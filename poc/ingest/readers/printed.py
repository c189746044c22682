"""Objects that Python printed: ``Response(id='r1', usage=Usage(input_tokens=5))`` as plain values.

Some tracers keep the printed form of what an SDK gave them. It is only parsed,
never run; what is more than names, fields and literals is not understood here.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

_LIMIT = 1_000_000
"""Longest text that is parsed; the parser's memory grows with its input."""


@lru_cache(maxsize=16)
def printed(text: str) -> dict[str, Any] | None:
    """The fields of a printed object, inner ones as dictionaries too; None for any other text. Not to be changed.

    >>> printed("Call(name='look', ids=[1, 2], by=User(id=None))")
    {'name': 'look', 'ids': [1, 2], 'by': {'id': None}}
    """
    stripped = text.strip()
    if not stripped.endswith(")") or not stripped[:1].isalpha() or len(stripped) > _LIMIT:
        return None
    try:
        tree = ast.parse(stripped, mode="eval").body
        return _value(tree) if isinstance(tree, ast.Call) else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        value = node.value
        return value if isinstance(value, str | int | float | None) else str(value)
    if isinstance(node, ast.Call):
        named = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        if node.args or not isinstance(named, ast.Name):
            raise ValueError("not a printed object")
        return {field.arg: _value(field.value) for field in node.keywords if field.arg is not None}
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {str(_value(key)): _value(item) for key, item in zip(node.keys, node.values, strict=True) if key}
    value = ast.literal_eval(node)
    return value if isinstance(value, str | int | float | None) else str(value)
