"""How the shell speaks: results, errors, exit codes, progress, and the options that all verbs share.

Knows no verb.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from poc import jobs
from poc.errors import ExitCode, InputError, PocError

WorkspaceOption = Annotated[
    Path, typer.Option("--workspace", "-w", help="The workspace file (DuckDB).", envvar="POC_WORKSPACE")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
ExperimentOption = Annotated[
    str | None, typer.Option("--experiment", "-e", help="The experiment; the latest unless told otherwise.")
]
DEFAULT_WORKSPACE = Path("workspace.duckdb")


def plain(value: Any) -> Any:
    """Any result of the package as plain JSON data."""

    def other(unknown: Any) -> Any:
        if isinstance(unknown, BaseModel):
            return unknown.model_dump(mode="json")
        if isinstance(unknown, Path):
            return str(unknown)
        raise NotImplementedError

    return msgspec.to_builtins(value, str_keys=True, enc_hook=other)


def out(result: Any, as_json: bool, show: Callable[[Console], None]) -> None:
    """Print a result: as one JSON object, or by `show` for people."""
    if as_json:
        sys.stdout.write(json.dumps(plain(result), ensure_ascii=False) + "\n")
    else:
        show(Console(soft_wrap=True))


def fail(error: PocError, as_json: bool) -> NoReturn:
    """Print an error and leave with its exit code."""
    if as_json:
        sys.stdout.write(json.dumps(error.as_dict(), ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"Error: {error}\n")
    raise typer.Exit(int(error.exit_code))


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into messages and exit codes; never show a bare traceback (POC_DEBUG=1 does)."""

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> None:
        as_json = bool(options.get("as_json"))
        try:
            function(*args, **options)
        except PocError as error:
            fail(error, as_json)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            fail(InputError(f"An option cannot be used: {first['msg']}.", where=field or None), as_json)
        except BrokenPipeError:
            # The reader of our output went away (for example `| head`): nothing to tell anybody.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(int(ExitCode.OK)) from None
        except (KeyboardInterrupt, asyncio.CancelledError):
            stopped = PocError("Stopped by the user.", todo="Run the same command again to go on.")
            stopped.exit_code = ExitCode.FAILED
            fail(stopped, as_json)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if os.environ.get("POC_DEBUG"):
                traceback.print_exc()
            unexpected = PocError(
                f"Unexpected failure: {type(error).__name__}: {error}",
                todo="Set POC_DEBUG=1 and run again to see where it happened, then report it.",
            )
            unexpected.exit_code = ExitCode.FAILED
            fail(unexpected, as_json)

    return wrapped


class Bar:
    """Progress on stderr where that is a terminal, and for the app where the command runs as a job."""

    def __init__(self, title: str, *, unit: Literal["bytes"] | None = None) -> None:
        self._unit: Literal["bytes"] | None = unit
        self._rich = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            *((DownloadColumn(), TransferSpeedColumn()) if unit == "bytes" else ()),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._title = title
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        self._rich.start()
        self._task = self._rich.add_task(self._title, total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def __call__(self, done: int, total: int | None, note: str) -> None:
        """Show that `done` of `total` (None: unknown) is done."""
        if self._task is not None:
            self._rich.update(self._task, completed=done, total=total, description=note or self._title)
        jobs.report_progress(done, total, note, unit=self._unit)


def table(title: str, columns: list[str], rows: list[list[Any]]) -> Table:
    """A table for people; an absent value is a dash."""
    result = Table(title=title, title_justify="left")
    for column in columns:
        result.add_column(column, overflow="fold")
    for row in rows:
        result.add_row(*("–" if cell is None else _as_written(str(cell)) for cell in row))
    return result


def _as_written(text: str) -> Text:
    """Text as it is: a log's brackets are no markup, its control characters move no cursor."""
    return Text("".join(sign if sign.isprintable() or sign == "\n" else "\ufffd" for sign in text))


def number(value: float | None) -> str | None:
    """Three significant digits."""
    return None if value is None else f"{value:.3g}"


def names(text: str | None) -> tuple[str, ...] | None:
    """A comma-separated option as its parts."""
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())
