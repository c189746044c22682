"""The verbs outside `poc replay`, in the order of the process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from poc import api
from poc.cli.output import (
    DEFAULT_WORKSPACE,
    Bar,
    ExperimentOption,
    JsonOption,
    WorkspaceOption,
    number,
    out,
    plain,
    table,
    verb,
)
from poc.cli.replay import replay_app
from poc.errors import ExitCode

app = typer.Typer(
    name="poc",
    help="Does telling your agent its progress help, and is it worth the tokens and the delay?\n\n"
    "The path: import a log, check its readiness, define subgoals, score, plan and run a replay, decide, report. "
    "`poc sample` builds a finished example.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
subgoals_app = typer.Typer(help="Check and store subgoal sets (YAML, one per category).", no_args_is_help=True)
app.add_typer(subgoals_app, name="subgoals")
app.add_typer(replay_app, name="replay")


@app.command()
@verb
def sample(workspace: WorkspaceOption = Path("sample.duckdb"), as_json: JsonOption = False) -> None:
    """Build the sample workspace: logs, subgoals, a finished (simulated) evaluation.

    Example: `poc sample --workspace sample.duckdb`
    """
    with Bar("Building the sample") as bar:
        result = api.ensure_sample(workspace, progress=bar)
    out(result, as_json, lambda console: console.print(f"The sample workspace is ready: {workspace}"))


@app.command(name="import")
@verb
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Log files, folders, archives, patterns in quotes, or - for standard input.", show_default=False
        ),
    ],
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    mapping: Annotated[Path | None, typer.Option(help="Column mapping of a table (YAML).")] = None,
    format: Annotated[str | None, typer.Option(help="The format, if it should not be detected.")] = None,  # noqa: A002
    outcomes: Annotated[Path | None, typer.Option(help="CSV with outcomes to join on a native id.")] = None,
    strict: Annotated[bool, typer.Option(help="Fail at the first record that cannot be read.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Import tool-call logs; what cannot be read is kept as a reject with its place and reason.

    Archives (.gz, .zst, .zip, .tar and others) are opened. Files imported before are known again: of one that has
    grown only the new part is added.

    Examples: `poc import results.json "logs/**/*.jsonl" --workspace team.duckdb`, `zcat old.gz | poc import -`
    """
    with Bar("Importing", unit="bytes") as bar:
        result = api.import_logs(
            api.open(workspace),
            list(paths),
            format=format,
            mapping=mapping,
            outcomes=outcomes,
            strict=strict,
            progress=bar,
        )

    def show(console: Console) -> None:
        console.print(
            f"{result.read} records read: {result.imported} imported, {result.rejected} rejected, "
            f"{result.skipped} already there. {result.runs} runs, {result.steps} steps."
        )
        if result.replaced:
            console.print(f"{result.replaced} runs took the place of a shorter version of themselves.")
        if result.completed:
            console.print(f"{result.completed} runs that were there gained a fact that they lacked, as an outcome.")
        if result.rejected:
            console.print("Look at the rejects with: poc rejects")

    out(result, as_json, show)


@app.command()
@verb
def describe(
    path: Annotated[Path, typer.Argument(help="A log file.")],
    save: Annotated[Path | None, typer.Option(help="Keep the suggested mapping of a table here (YAML).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what a file would be read as, without importing it; for a table, the suggested mapping.

    Example: `poc describe calls.csv --save mapping.yaml`, then `poc import calls.csv --mapping mapping.yaml`
    """
    facts = api.describe(path)
    if save is not None and facts.mapping:
        api.save_mapping(facts.mapping, save)

    def show(console: Console) -> None:
        console.print(f"{path}: {facts.format or 'no format that is known here'}", markup=False)
        if facts.mapping:
            rows = [[field, column, _shown(facts.rows, column)] for field, column in facts.mapping.items()]
            console.print(table("Suggested mapping", ["field", "column", "first value"], rows))
        unused = [column for column in facts.columns if column not in facts.mapping.values()]
        if unused:
            console.print(f"Not used: {', '.join(unused)}", markup=False)

    out(facts, as_json, show)


def _shown(rows: list[dict[str, Any]], column: str) -> str:
    """The first value of a column, short enough for a table."""
    value = next((row[column] for row in rows if row.get(column) is not None), None)
    return "\u2014" if value is None else str(value)[:60]


@app.command()
@verb
def rejects(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    source: Annotated[str | None, typer.Option(help="Only of files whose path contains this.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only those whose reason contains this.")] = None,
    limit: Annotated[int, typer.Option(help="At most this many.", min=1)] = 50,
    as_json: JsonOption = False,
) -> None:
    """Show records that could not be imported: file, place, reason, excerpt.

    Example: `poc rejects --source traces --reason "broken JSON"`
    """
    opened = api.open(workspace, create=False)
    found = api.frames.rejects(opened, source=source, reason=reason, limit=limit)
    total = api.frames.reject_count(opened, source=source, reason=reason)
    found = found.astype(object)
    rows = found.where(found.notna(), None).to_dict("records")

    def show(console: Console) -> None:
        if not rows:
            console.print("No rejects." if source is None and reason is None else "No rejects that fit.")
            return
        cells = [[row["path"], row["place"], row["reason"], (row["raw"] or "")[:80]] for row in rows]
        console.print(table("Rejects", ["file", "place", "reason", "excerpt"], cells))
        if total > len(rows):
            console.print(f"{len(rows)} of {total}; --limit shows more, --source and --reason narrow it down.")

    out({"rejects": rows, "total": total}, as_json, show)


@app.command()
@verb
def readiness(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    todo: Annotated[
        Path | None, typer.Option(help="Write what to add to the logging to this file (Markdown, or .csv).")
    ] = None,
    language: Annotated[Literal["en", "ja"], typer.Option(help="Language of the to-do list.")] = "en",
    as_json: JsonOption = False,
) -> None:
    """Judge whether the logs are good enough: READY, PARTIAL or NOT READY (exit code 6).

    Example: `poc readiness --todo logging.md`
    """
    opened = api.open(workspace, create=False)
    result = api.readiness(opened)
    if todo is not None:
        api.write_todo(opened, result, todo, language=language)

    lines = api.readiness_lines(result)
    found = api.readiness_findings(result)

    def show(console: Console) -> None:
        console.print(f"[bold]{result.level}[/bold]  {api.readiness_headline(result)}")
        console.print(table("Checks", ["check", "present", "level"], [[c.title, c.count, c.level] for c in lines]))
        for line in lines:
            if line.blocks:
                console.print(f"- {line.title}: {line.blocks} {line.remedy or ''}")
        odd = [
            [c.title, c.count, c.severity_name] for c in found if c.check_id in {o.check_id for o in result.oddities}
        ]
        if odd:
            console.print(table("Oddities", ["what", "how many", "severity"], odd))
        if todo is not None:
            console.print(f"The to-do list is in {todo}")

    checks = [
        {**plain(check), "share": check.share, "level": check.level, **plain(line)}
        for check, line in zip(result.checks, lines, strict=True)
    ]
    out(
        {"level": result.level, "reasons": plain(result.reasons), "checks": checks, "findings": plain(found)},
        as_json,
        show,
    )
    if result.level == "NOT READY":
        raise typer.Exit(int(ExitCode.NOT_READY))


@subgoals_app.command("check")
@verb
def subgoals_check(
    path: Annotated[Path, typer.Argument(help="A YAML file, or a folder of them.")],
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Check subgoal sets without storing them; errors name the line.

    Example: `poc subgoals check subgoals/`
    """
    sets = api.check_subgoals(path)
    _show_sets(sets, as_json, "are valid")


@subgoals_app.command("load")
@verb
def subgoals_load(
    path: Annotated[Path, typer.Argument(help="A YAML file, or a folder of them.")],
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Store subgoal sets as the active ones of their categories."""
    sets = api.load_subgoals(api.open(workspace), path)
    _show_sets(sets, as_json, "are stored")


def _show_sets(sets: list[api.SubgoalSet], as_json: bool, what: str) -> None:
    result = {"sets": [{"category": s.category, "hash": s.hash, "subgoals": [g.id for g in s.subgoals]} for s in sets]}
    rows = [[s.category, len(s.subgoals), s.hash[:12]] for s in sets]
    out(
        result,
        as_json,
        lambda console: console.print(table(f"{len(sets)} sets {what}", ["category", "subgoals", "hash"], rows)),
    )


@app.command()
@verb
def score(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    subgoals: Annotated[Path | None, typer.Option(help="Load these subgoal sets first.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Score all runs: which subgoals were achieved at which step, and how progress tracks the outcome."""
    opened = api.open(workspace, create=False)
    if subgoals is not None:
        api.load_subgoals(opened, subgoals)
    summary = api.score(opened)
    checked = api.validity(opened)

    def show(console: Console) -> None:
        console.print(f"{summary.scored} runs scored, {summary.unassigned} fit no subgoal set.")
        rows: list[list[Any]] = []
        for entry in checked:
            auroc = entry.auroc
            shown = None if auroc is None else f"{auroc.estimate:.2f} [{auroc.low:.2f}, {auroc.high:.2f}]"
            rows.append([entry.category, entry.runs, entry.tasks, shown])
        console.print(table("Final progress against outcome (AUROC)", ["category", "runs", "tasks", "AUROC"], rows))

    out({"score": plain(summary), "validity": plain(checked)}, as_json, show)


@app.command()
@verb
def decide(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE, experiment: ExperimentOption = None, as_json: JsonOption = False
) -> None:
    """GO (exit 0), NO-GO (3), INCONCLUSIVE (4); simulated results exit with 5, whatever the verdict."""
    verdict = api.decide(api.open(workspace, create=False), experiment)

    def show(console: Console) -> None:
        console.print(f"[bold]{verdict.sentence('en')}[/bold]")
        rows = [
            [c.criterion, number(c.value), number(c.low), number(c.high), number(c.threshold), c.status]
            for c in verdict.criteria
        ]
        console.print(table("Criteria", ["criterion", "value", "low", "high", "threshold", "status"], rows))

    out({**plain(verdict), "sentence": verdict.sentence("en")}, as_json, show)
    raise typer.Exit(int(api.exit_code(verdict)))


@app.command()
@verb
def report(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the HTML file goes.")] = Path("report.html"),
    language: Annotated[Literal["en", "ja"], typer.Option(help="Language of the report.")] = "en",
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    experiment: ExperimentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report: one self-contained HTML file, from stored results.

    Example: `poc report -o report.html --language ja`
    """
    html = api.report(api.open(workspace, create=False), experiment, path=output, language=language)
    out(
        {"path": str(output), "bytes": len(html.encode())},
        as_json,
        lambda console: console.print(f"The report is in {output}"),
    )


@app.command("simulate-model")
@verb
def simulate_model(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8010,
    heed: Annotated[
        float, typer.Option(help="How much the agent heeds status text: 0 ignores, 1 heeds, 2 is distracted.")
    ] = 1.0,
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Serve the simulated agent on loopback, OpenAI-compatible. Its results are not evidence.

    Example: `poc simulate-model --port 8010`, then use `--base-url http://127.0.0.1:8010/v1`
    """

    def ready(base_url: str) -> None:
        out({"base_url": base_url}, as_json, lambda console: console.print(f"Serving at {base_url} (Ctrl-C ends it)"))
        sys.stdout.flush()

    api.serve(port=port, heed=heed, ready=ready)
