"""Small files that are whole or absent, and texts that may not be there yet. Knows no job."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any


def write(path: Path, text: str) -> None:
    """Write the whole file at once: a reader sees the old text or the new one, never a part."""
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def text_of(path: Path) -> str:
    """What the file holds; '' when it is not there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def last_object(text: str) -> dict[str, Any] | None:
    """The JSON object that is the whole of `text`, or else of its last line."""
    lines = text.strip().splitlines()
    for candidate in (text, lines[-1] if lines else ""):
        with suppress(ValueError):
            value = json.loads(candidate)
            if isinstance(value, dict):
                return value
    return None
