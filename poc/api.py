"""The verbs, in the order of the process; the only thing that faces import.

Each verb is a thin call into its room. `run` is synchronous and also works
where an event loop is already running (a notebook); `arun` is the same for
programs that are asynchronous themselves.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from poc import frames
from poc.errors import InputError
from poc.frames import latest_experiment
from poc.ingest import (
    FIELDS,
    FileFacts,
    ImportResult,
    JoinResult,
    check_mapping,
    describe,
    import_logs,
    join_outcomes,
    parse_mapping,
    save_mapping,
    set_effect,
)
from poc.language import Language
from poc.models.settings import ModelSettings
from poc.progress import ScoreSummary, Validity, score, validity
from poc.readiness import Finding, Readiness, assess, evidence, run_times, runs_over_time, todo_csv, todo_markdown
from poc.readiness import describe as readiness_lines
from poc.readiness import findings as readiness_findings
from poc.readiness import headline as readiness_headline
from poc.readiness import shares as readiness_shares
from poc.readiness import stored as load_readiness
from poc.replay import Experiment, Preview, ReplayStatus, RunSummary, load_experiment, make_plan, store_plan
from poc.replay import preview as _preview
from poc.replay import run as _run
from poc.replay import status as _status
from poc.replay.experiment import (
    BudgetLimits,
    ContextSettings,
    EnvironmentSettings,
    Estimate,
    Limits,
    Plan,
    Thresholds,
)
from poc.report import build_report, plots, timelines
from poc.report.build import document
from poc.report.document import Document
from poc.report.facts import read_facts
from poc.sample import ensure_sample, is_sample, running_server, serve
from poc.subgoals import SubgoalSet, active_sets, load_sets, parse_set, store_sets
from poc.verdict import Comparison, Verdict, compare, exit_code, load_verdict
from poc.verdict import decide as _decide
from poc.workspace import Workspace

__all__ = [
    "FIELDS",
    "BudgetLimits",
    "Comparison",
    "ContextSettings",
    "Document",
    "EnvironmentSettings",
    "Estimate",
    "Experiment",
    "FileFacts",
    "Finding",
    "ImportResult",
    "JoinResult",
    "Limits",
    "ModelSettings",
    "Plan",
    "Preview",
    "Readiness",
    "ReplayStatus",
    "RunSummary",
    "ScoreSummary",
    "SubgoalSet",
    "Thresholds",
    "Validity",
    "Verdict",
    "Workspace",
    "active_sets",
    "arun",
    "check_mapping",
    "check_subgoals",
    "comparison",
    "decide",
    "describe",
    "ensure_sample",
    "evidence",
    "exit_code",
    "frames",
    "import_logs",
    "is_sample",
    "join_outcomes",
    "latest_experiment",
    "load_experiment",
    "load_readiness",
    "load_subgoals",
    "load_verdict",
    "open",
    "parse_mapping",
    "parse_set",
    "plan",
    "plots",
    "preview",
    "readiness",
    "readiness_findings",
    "readiness_headline",
    "readiness_lines",
    "readiness_shares",
    "report",
    "report_document",
    "run",
    "run_times",
    "running_server",
    "runs_over_time",
    "save_mapping",
    "score",
    "serve",
    "set_effect",
    "status",
    "timelines",
    "todo_csv",
    "todo_markdown",
    "validity",
    "write_todo",
]


def open(path: str | os.PathLike[str] = "workspace.duckdb", *, create: bool = True) -> Workspace:  # noqa: A001
    """Open a workspace file, or create it. See `Workspace.open` for the errors."""
    return Workspace.open(path, create=create)


def readiness(workspace: Workspace) -> Readiness:
    """Judge whether the imported logs are good enough, and store the findings."""
    return assess(workspace)


def write_todo(
    workspace: Workspace, found: Readiness, path: str | os.PathLike[str], *, language: Language = "en"
) -> None:
    """What the team that owns the logs should add, as Markdown, or as CSV where the file is called so."""
    target = Path(path)
    text = (todo_csv if target.suffix.lower() == ".csv" else todo_markdown)(workspace, found, language)
    # A spreadsheet takes a CSV without a mark for its own local encoding.
    encoding = "utf-8-sig" if target.suffix.lower() == ".csv" else "utf-8"
    try:
        target.write_bytes(text.encode(encoding))
    except OSError as error:
        raise InputError(
            f"The to-do list cannot be written: {error.strerror}.", where=str(path), todo="Choose another place."
        ) from error


def check_subgoals(path: str | os.PathLike[str]) -> list[SubgoalSet]:
    """Read subgoal sets from a YAML file or a folder of them without storing anything; errors name the line."""
    return load_sets(Path(path))


def load_subgoals(workspace: Workspace, path: str | os.PathLike[str]) -> list[SubgoalSet]:
    """Read subgoal sets and make them the active ones of their categories."""
    sets = load_sets(Path(path))
    store_sets(workspace, sets)
    return sets


def plan(workspace: Workspace, **options: Any) -> Experiment:
    """Freeze a design and store it with its estimate; nothing is called yet. Options as in `poc.replay.make_plan`."""
    return store_plan(workspace, make_plan(workspace, **options), prices=options.get("prices"))


def preview(workspace: Workspace, experiment_id: str | None = None) -> Preview:
    """Which hosts would be called, and one request as it would leave, redacted."""
    return _preview(workspace, latest_experiment(workspace, experiment_id))


async def arun(
    workspace: Workspace,
    experiment_id: str | None = None,
    *,
    progress: Callable[[ReplayStatus], None] | None = None,
    stop: asyncio.Event | None = None,
    api_key: str | None = None,
    prices: Mapping[str, Any] | None = None,
) -> RunSummary:
    """Run an experiment to its end, or go on where it stopped; a finished call is never paid twice."""
    chosen = latest_experiment(workspace, experiment_id)
    return await _run(workspace, chosen, progress=progress, stop=stop, api_key=api_key, prices=prices)


def run(
    workspace: Workspace,
    experiment_id: str | None = None,
    *,
    progress: Callable[[ReplayStatus], None] | None = None,
    api_key: str | None = None,
    prices: Mapping[str, Any] | None = None,
) -> RunSummary:
    """`arun`, for callers without an event loop of their own and for notebooks, whose loop is already running."""

    async def work() -> RunSummary:
        return await arun(workspace, experiment_id, progress=progress, api_key=api_key, prices=prices)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    outcome: list[RunSummary] = []
    failure: list[BaseException] = []

    def in_thread() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as error:  # handed to the caller's thread below
            failure.append(error)

    thread = threading.Thread(target=in_thread, name="poc-run")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def status(workspace: Workspace, experiment_id: str | None = None) -> ReplayStatus:
    """How far an experiment is, read from its journal."""
    return _status(workspace, latest_experiment(workspace, experiment_id))


def comparison(workspace: Workspace, experiment_id: str | None = None) -> Comparison:
    """Every figure of the comparison, from stored trials."""
    return compare(workspace, latest_experiment(workspace, experiment_id))


def decide(workspace: Workspace, experiment_id: str | None = None) -> Verdict:
    """Compare, judge by the frozen thresholds and store the verdict."""
    return _decide(workspace, latest_experiment(workspace, experiment_id))


def report(
    workspace: Workspace,
    experiment_id: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    language: Language = "en",
) -> str:
    """The report as one self-contained HTML text; written to `path` when given.

    Rebuilt from stored results; nothing is called.
    """
    html = build_report(workspace, latest_experiment(workspace, experiment_id), language=language)
    if path is not None:
        try:
            Path(path).write_text(html, encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"The report cannot be written: {error.strerror}.", where=str(path), todo="Choose another place."
            ) from error
    return html


def report_document(workspace: Workspace, experiment_id: str | None = None, *, language: Language = "en") -> Document:
    """The report's parts (summary, figures, tables) before they become HTML, for pages and notebooks."""
    return document(read_facts(workspace, latest_experiment(workspace, experiment_id)), language)
