"""`poc replay plan | run | resume | status`."""

from __future__ import annotations

import asyncio
import signal
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
    names,
    out,
    plain,
    verb,
)

replay_app = typer.Typer(help="Plan, run, resume and watch replays.", no_args_is_help=True)


@replay_app.command("plan")
@verb
def replay_plan(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    mode: Annotated[
        Literal["closed_loop", "next_step"], typer.Option(help="Run the tasks anew, or judge single next steps.")
    ] = "next_step",
    model: Annotated[str, typer.Option(help="The model's name.")] = "simulated-agent",
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible server; OpenAI's own when left out.")
    ] = None,
    api_key_env: Annotated[str, typer.Option(help="Environment variable that holds the key.")] = "OPENAI_API_KEY",
    environment: Annotated[
        str | None, typer.Option(help="module:Class or file.py:Class that answers tool calls.")
    ] = None,
    arms: Annotated[str, typer.Option(help="Arms, comma-separated.")] = "none,plan,progress",
    primary: Annotated[str, typer.Option(help="The primary contrast, treatment:control.")] = "progress:none",
    categories: Annotated[str | None, typer.Option(help="Only these categories, comma-separated.")] = None,
    tasks: Annotated[int | None, typer.Option(help="At most this many tasks, drawn at random.")] = None,
    runs: Annotated[int | None, typer.Option(help="Next-step: at most this many logged runs.")] = None,
    repeats: Annotated[int, typer.Option(help="Repeats of each task in each arm.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of order, sampling and worlds.")] = 0,
    temperature: Annotated[float | None, typer.Option(help="Not sent when left out.")] = None,
    max_output_tokens: Annotated[int, typer.Option(help="Per model call.")] = 1024,
    placement: Annotated[
        Literal["system", "tail", "tool_result"], typer.Option(help="Where the context stands.")
    ] = "tail",
    language: Annotated[Literal["en", "ja"], typer.Option(help="Language of the context.")] = "en",
    budget_usd: Annotated[float | None, typer.Option(help="Hard limit in US dollars.")] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(help="Hard limit in tokens; needed when the price is unknown.")
    ] = None,
    budget_seconds: Annotated[float | None, typer.Option(help="Hard limit in seconds.")] = None,
    concurrency: Annotated[int, typer.Option(help="Model calls in flight.")] = 8,
    max_turns: Annotated[int, typer.Option(help="A trial ends after this many turns.")] = 30,
    gain_above: Annotated[
        float, typer.Option(help="GO: the interval of the success difference lies above this.")
    ] = 0.0,
    gain_worthwhile: Annotated[
        float, typer.Option(help="GO: the estimate reaches this; NO-GO: the interval lies below.")
    ] = 0.05,
    latency_max: Annotated[float, typer.Option(help="Accepted latency ratio; 0 switches the criterion off.")] = 1.10,
    tokens_max: Annotated[float, typer.Option(help="Accepted token ratio; 0 switches the criterion off.")] = 1.15,
    name: Annotated[str, typer.Option(help="A name for people.")] = "experiment",
    override_readiness: Annotated[
        str | None, typer.Option(help="Reason to go on although the logs are NOT READY.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Freeze a design and show what it would cost and send; nothing is called.

    Examples: `poc replay plan --mode next_step --base-url http://127.0.0.1:8010/v1 --runs 20 --budget-tokens 500000`

    `poc replay plan --mode closed_loop --environment world.py:World --model gpt-4.1-mini --budget-usd 5`
    """
    opened = api.open(workspace, create=False)
    treatment, _, control = primary.partition(":")
    experiment = api.plan(
        opened,
        mode=mode,
        model=api.ModelSettings(
            name=model,
            base_url=base_url,
            api_key_env=api_key_env,
            temperature=temperature,
            max_output_tokens=max_output_tokens,
        ),
        arms=names(arms) or (),
        primary=(treatment.strip(), control.strip()),
        environment=environment,
        categories=names(categories),
        tasks=tasks,
        runs=runs,
        repeats=repeats,
        seed=seed,
        budget=api.BudgetLimits(usd=budget_usd, tokens=budget_tokens, seconds=budget_seconds),
        thresholds=api.Thresholds(
            gain_above=gain_above,
            gain_worthwhile=gain_worthwhile,
            latency_ratio_max=latency_max or None,
            tokens_ratio_max=tokens_max or None,
        ),
        context=api.ContextSettings(placement=placement, language=language),
        limits=api.Limits(max_turns=max_turns),
        concurrency=concurrency,
        name=name,
        override_readiness=override_readiness,
    )
    shown = api.preview(opened, experiment.experiment_id)

    def show(console: Console) -> None:
        console.print(f"Experiment [bold]{experiment.experiment_id}[/bold]")
        if experiment.estimate is not None:
            console.print(_estimate_line(experiment.estimate))
        console.print(f"Calls go to: {', '.join(shown.hosts)}.")
        console.print(f"Start it with: poc replay run --workspace {workspace}")

    out({"experiment": plain(experiment), "preview": plain(shown)}, as_json, show)


def _estimate_line(estimate: api.Estimate) -> str:
    cost = "unknown (no price for this model)" if estimate.usd is None else f"about $ {estimate.usd:.2f}"
    seen = "" if estimate.detectable is None else f" Differences of {estimate.detectable:.0%} and more would be seen."
    return (
        f"{estimate.trials} trials, about {estimate.requests} calls and "
        f"{estimate.input_tokens + estimate.output_tokens} tokens (estimate, {estimate.encoding}), cost {cost}.{seen}"
    )


@replay_app.command("run")
@verb
def replay_run(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE, experiment: ExperimentOption = None, as_json: JsonOption = False
) -> None:
    """Run the planned trials; Ctrl-C stops cleanly, and the same command goes on later."""
    _run(workspace, experiment, as_json)


@replay_app.command("resume")
@verb
def replay_resume(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE, experiment: ExperimentOption = None, as_json: JsonOption = False
) -> None:
    """Go on where a replay stopped; a finished call is never paid twice."""
    _run(workspace, experiment, as_json)


def _run(workspace: Path, experiment: str | None, as_json: bool) -> None:
    opened = api.open(workspace, create=False)

    async def work(bar: Bar) -> api.RunSummary:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)

        def tick(state: api.ReplayStatus) -> None:
            bar(state.done, state.total, f"{state.done} of {state.total} trials")

        return await api.arun(opened, experiment, progress=tick, stop=stop)

    with Bar("Replaying") as bar:
        summary = asyncio.run(work(bar))

    def show(console: Console) -> None:
        console.print(_status_line(summary))
        if summary.message:
            console.print(summary.message)
        for parameter, instead in summary.adaptations.items():
            console.print(f"The server refused '{parameter}': {instead}")

    out(summary, as_json, show)


def _status_line(state: Any) -> str:
    cost = "–" if state.cost_usd is None else f"$ {state.cost_usd:.4f}"
    tokens = "–" if state.tokens is None else str(state.tokens)
    return f"{state.experiment_id}: {state.state}, {state.done} of {state.total} trials, {tokens} tokens, cost {cost}."


@replay_app.command("status")
@verb
def replay_status(
    workspace: WorkspaceOption = DEFAULT_WORKSPACE, experiment: ExperimentOption = None, as_json: JsonOption = False
) -> None:
    """How far a replay is, read from its journal; also while it runs."""
    state = api.status(api.open(workspace, create=False), experiment)
    out(state, as_json, lambda console: console.print(_status_line(state)))
