"""Cached reading of a workspace: nothing is read twice while its file stays the same.

The file's time and size are the cache's key, so that whatever another process
writes is seen at the next rerun. No connection outlives a read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from poc import api

Stamp = tuple[int, ...]
_PATIENCE_S = 5.0


def workspace_at(path: Path) -> api.Workspace:
    """The workspace of a page: it waits a short while for its turn, since a reader sits in front of it."""
    return api.Workspace(path, wait_s=_PATIENCE_S)


def stamp(path: Path) -> Stamp:
    """What changes whenever the file, or the log beside it, is written."""
    parts: list[int] = []
    for file in (path, path.with_name(path.name + ".wal")):
        try:
            facts = file.stat()
        except OSError:
            parts.extend((0, 0))
        else:
            parts.extend((facts.st_mtime_ns, facts.st_size))
    return tuple(parts)


def read(function: Callable[..., Any], workspace: api.Workspace, *arguments: Any, **options: Any) -> Any:
    """`function(workspace, *arguments, **options)`, from the cache where the workspace has not changed since.

    Only for functions that read: a write would change the very key.
    """
    return _cached(
        f"{function.__module__}.{function.__qualname__}",
        str(workspace.path),
        stamp(workspace.path),
        arguments,
        tuple(sorted(options.items())),
        _function=function,
    )


@st.cache_data(show_spinner=False, max_entries=300)
def _cached(
    name: str, path: str, stamp: Stamp, arguments: tuple[Any, ...], options: tuple[Any, ...], *, _function: Callable
) -> Any:
    return _function(workspace_at(Path(path)), *arguments, **dict(options))
