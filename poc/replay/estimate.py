"""What a plan will need, before anything is spent: calls, tokens, money, and what it can show.

Lengths come from logged runs of the planned tasks: how many turns they take
and how much each turn adds to the history that every later request carries
again. Texts are counted with tiktoken, so all token figures are estimates.
The worst case is what the hard limits of a trial allow. Knows no result.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poc import tokens
from poc.context import arm
from poc.ingest import iter_runs
from poc.language import Language, Sentence, Words
from poc.models import Budget, destination
from poc.prices import PriceTable, cost_usd, price_of
from poc.progress import Tracker
from poc.progress.view import ProgressView, SubgoalView
from poc.replay.environments.python import PythonEnvironments
from poc.replay.experiment import BudgetLimits, Estimate, Plan
from poc.replay.history import agent_turns, chat_tools, history
from poc.replay.toolbox import tools_of_source
from poc.stats import TYPICAL, detectable_difference, variance_of_runs
from poc.subgoals import SubgoalSet, set_by_hash
from poc.trajectory import Run, Usage
from poc.workspace import Workspace

_WORDS = Words.load(Path(__file__).with_name("words.yaml"))
_MOST_RUNS = 60
_ASSUMED_TURNS = 10
_ASSUMED_OUTPUT = 120
_ASSUMED_RESULT = 200
_MARGIN = 1.2
"""Local counts miss how a server frames requests; the client reserves with the same margin."""


@dataclass(frozen=True)
class Growth:
    """How logged runs grow: turns with calls, tokens that the model writes a turn, tokens of its results a turn."""

    runs: int
    turns: float
    output: float
    results: float
    longest_results: int

    @classmethod
    def of(cls, runs: Sequence[Run], model: str) -> Growth:
        """From logged runs; assumed figures (`runs` 0) where there is none."""
        turns: list[int] = []
        outputs: list[int] = []
        results: list[int] = []
        for run in runs:
            messages = history(run)
            per_turn: list[int] = []
            for message in messages:
                size = tokens.count_message(message, model)
                if message["role"] == "assistant":
                    outputs.append(size)
                    per_turn.append(0)
                elif message["role"] == "tool" and per_turn:
                    per_turn[-1] += size
            results.extend(per_turn)
            turns.append(len(agent_turns(run)))
        if not outputs:
            return cls(0, _ASSUMED_TURNS, _ASSUMED_OUTPUT, _ASSUMED_RESULT, 4 * _ASSUMED_RESULT)
        return cls(len(runs), _mean(turns), _mean(outputs), _mean(results), max(results, default=0))


@dataclass(frozen=True)
class Estimated:
    """An estimate with the budget that follows from it where none was given."""

    estimate: Estimate
    default_budget: BudgetLimits


def estimate(workspace: Workspace, plan: Plan, prices: PriceTable | None = None) -> Estimated:
    """What `plan` will need. Loads the environment (and calls no tool), so a broken one is found here.

    Raises `InputError` for an environment that cannot be loaded and for a bad base URL.
    """
    model = plan.model.name
    trials = plan.trials()
    per_arm = len(trials) // len(plan.arms)
    context = _context_sizes(workspace, plan)
    if plan.mode == "closed_loop":
        need = _closed_loop(workspace, plan, per_arm, context)
    else:
        need = _next_step(workspace, plan, context)
    price = price_of(model, base_url=plan.model.base_url, overrides=prices)
    seconds, basis = _seconds(workspace, plan, need.requests)
    usage = Usage(input_tokens=need.input, output_tokens=need.output)
    worst = Usage(input_tokens=round(_MARGIN * need.worst_input), output_tokens=need.worst_output)
    usd = None if price is None else cost_usd(usage, model, base_url=plan.model.base_url, overrides=prices)
    worst_usd = None if price is None else cost_usd(worst, model, base_url=plan.model.base_url, overrides=prices)
    worst_tokens = worst.total or 0
    encoding = tokens.encoding_name(model)
    notes = [Sentence("estimate.tokens_are_estimates", {"encoding": encoding}), *need.notes]
    if price is None:
        notes.append(Sentence("estimate.price_unknown", {"model": model}))
    if seconds is None:
        notes.append(Sentence("estimate.time_unknown"))
    if plan.budget in (BudgetLimits(tokens=worst_tokens), BudgetLimits(usd=worst_usd)):
        notes.append(Sentence("estimate.budget_default"))
    detectable, told = _detectable(workspace, plan)
    found = Estimate(
        trials=len(trials),
        requests=need.requests,
        input_tokens=need.input,
        output_tokens=need.output,
        context_tokens=need.context,
        usd=usd,
        seconds=seconds,
        seconds_basis=basis,
        worst_tokens=worst_tokens,
        worst_usd=worst_usd,
        hosts=(destination(plan.model.base_url).name,),
        encoding=encoding,
        detectable=detectable,
        notes=tuple({"key": note.key, "values": note.values} for note in (*notes, *told)),
    )
    limit = BudgetLimits(tokens=worst_tokens) if worst_usd is None else BudgetLimits(usd=worst_usd)
    return Estimated(found, limit)


def spoken_notes(estimate: Estimate, language: Language = "en") -> list[str]:
    """The notes of an estimate as sentences."""
    return [_WORDS.say(note["key"], language, **note["values"]) for note in estimate.notes]


def hard_budget(workspace: Workspace, plan: Plan, prices: PriceTable | None = None) -> Plan:
    """The plan with a hard limit that can be held: its own, or the worst case of the estimate where it has none.

    Raises `InputError` when a dollar limit stands alone and the price is unknown.
    """
    given = plan.budget
    known = price_of(plan.model.name, base_url=plan.model.base_url, overrides=prices) is not None
    Budget(given.usd, given.tokens, given.seconds).require_price(known, plan.model.name)
    if given.usd is not None or given.tokens is not None:
        return plan
    limit = estimate(workspace, plan, prices).default_budget
    return plan.model_copy(update={"budget": limit.model_copy(update={"seconds": given.seconds})})


@dataclass
class _Need:
    requests: int
    input: int
    output: int
    context: int
    worst_input: int
    worst_output: int
    notes: list[Sentence]


def _closed_loop(workspace: Workspace, plan: Plan, per_arm: int, context: dict[str, float]) -> _Need:
    model = plan.model.name
    growth = Growth.of(_logged_runs(workspace, plan), model)
    assert plan.environment.target is not None
    offered, instructions = _offered(plan.environment.target)
    texts = [task.text or "" for task in plan.tasks]
    head = [{"role": "system", "content": instructions}]
    base = tokens.count_request(head, offered, model) + round(_mean([tokens.count(text, model) for text in texts]))
    # One more request than turns with calls: the closing answer.
    requests = min(growth.turns + 1, plan.limits.max_turns)
    # The request at turn k carries the head and k grown turns, so n requests carry 0 + 1 + ... + (n - 1) of them.
    carried = requests * (requests - 1) / 2 * (growth.output + growth.results)
    per_trial = requests * base + carried
    most = plan.limits.max_turns
    grown = plan.model.max_output_tokens + growth.longest_results
    worst = most * (base + plan.context.token_budget) + most * (most - 1) // 2 * grown
    trials = per_arm * len(plan.arms)
    added = sum(per_arm * requests * size for size in context.values())
    notes = [
        Sentence("estimate.length_from_logs", {"runs": growth.runs})
        if growth.runs
        else Sentence("estimate.length_unknown", {"turns": _ASSUMED_TURNS}),
        Sentence("estimate.worst_case", {"turns": most}),
        Sentence("estimate.no_outcome"),
    ]
    return _Need(
        requests=round(trials * requests),
        input=round(trials * per_trial + added),
        output=round(trials * requests * growth.output),
        context=round(added),
        worst_input=trials * worst,
        worst_output=trials * most * plan.model.max_output_tokens,
        notes=notes,
    )


def _next_step(workspace: Workspace, plan: Plan, context: dict[str, float]) -> _Need:
    model = plan.model.name
    cuts = [cut for task in plan.tasks for cut in task.cuts]
    sample = random.Random(f"{plan.seed}:estimate").sample(cuts, min(len(cuts), _MOST_RUNS))
    runs = _runs(workspace, sorted({run_id for run_id, _ in sample}))
    source = _sources(workspace, list(runs))
    tools = {source_id: chat_tools(tools_of_source(workspace, source_id)) for source_id in set(source.values())}
    sizes = [tokens.count_request(history(runs[run_id], turn), tools[source[run_id]], model) for run_id, turn in sample]
    growth = Growth.of(list(runs.values()), model)
    per_arm = len(cuts) * plan.repeats
    requests = per_arm * len(plan.arms)
    added = sum(per_arm * size for size in context.values())
    return _Need(
        requests=requests,
        input=round(requests * _mean(sizes) + added),
        output=round(requests * growth.output),
        context=round(added),
        worst_input=requests * (max(sizes) + plan.context.token_budget),
        worst_output=requests * plan.model.max_output_tokens,
        notes=[Sentence("estimate.next_step_quality")],
    )


def _logged_runs(workspace: Workspace, plan: Plan) -> list[Run]:
    rows = workspace.rows(
        "SELECT run_id FROM runs WHERE list_contains(?, task_id) ORDER BY run_id",
        [[task.task_id for task in plan.tasks]],
    )
    ids = [row["run_id"] for row in rows]
    chosen = random.Random(f"{plan.seed}:estimate").sample(ids, min(len(ids), _MOST_RUNS))
    return list(_runs(workspace, chosen).values())


def _runs(workspace: Workspace, run_ids: list[str]) -> dict[str, Run]:
    return dict(iter_runs(workspace, where="list_contains(?, run_id)", parameters=[run_ids]))


def _sources(workspace: Workspace, run_ids: list[str]) -> dict[str, str]:
    rows = workspace.rows("SELECT run_id, source_id FROM runs WHERE list_contains(?, run_id)", [run_ids])
    return {row["run_id"]: row["source_id"] for row in rows}


def _offered(target: str) -> tuple[list[dict[str, Any]], str]:
    environment = PythonEnvironments(target).new()
    try:
        return chat_tools(environment.tools()), environment.instructions()
    finally:
        environment.release()


def example_view(subgoal_set: SubgoalSet) -> ProgressView:
    """A state for show: the first half of the subgoals done."""
    view = Tracker(subgoal_set).view()
    half = (view.total + 1) // 2
    return ProgressView(
        subgoals=tuple(SubgoalView(title=s.title, done=place < half) for place, s in enumerate(view.subgoals)),
        fraction=half / view.total,
    )


def _context_sizes(workspace: Workspace, plan: Plan) -> dict[str, float]:
    """Per arm: mean tokens of its text in one request, weighted by task."""
    sizes: dict[str, dict[str, int]] = {name: {} for name in plan.arms}
    for set_hash in {task.set_hash for task in plan.tasks}:
        view = example_view(set_by_hash(workspace, set_hash))
        for name in plan.arms:
            text = arm(name).render(
                [view],
                random.Random(plan.seed),
                plan.context.token_budget,
                plan.context.language,
                model=plan.model.name,
            )
            sizes[name][set_hash] = 0 if text is None else tokens.count(text, plan.model.name)
    return {name: _mean([its[task.set_hash] for task in plan.tasks]) for name, its in sizes.items()}


def _seconds(workspace: Workspace, plan: Plan, requests: int) -> tuple[float | None, str | None]:
    """Expected wall clock, from earlier calls of the same model in this workspace; None where there were none."""
    rows = workspace.rows(
        """
        SELECT avg(r.total_s) AS mean, count(*) AS n FROM requests r
        JOIN trials t USING (trial_id) JOIN experiments e USING (experiment_id)
        WHERE r.error IS NULL AND e.plan->>'$.model.name' = $name
          AND coalesce(e.plan->>'$.model.base_url', '') = $url AND e.mode = $mode
        """,
        {"name": plan.model.name, "url": plan.model.base_url or "", "mode": plan.mode},
    )
    mean, n = rows[0]["mean"], rows[0]["n"]
    if mean is None:
        return None, None
    return requests * mean / min(plan.concurrency, len(plan.trials())), f"{n} earlier calls of this model"


def _detectable(workspace: Workspace, plan: Plan) -> tuple[float | None, list[Sentence]]:
    if plan.mode == "next_step":
        return None, []
    rows = workspace.rows(
        "SELECT task_id, list(outcome) AS outcomes FROM outcomes WHERE outcome IS NOT NULL AND task_id IS NOT NULL "
        "AND list_contains(?, task_id) GROUP BY task_id ORDER BY task_id",
        [[task.task_id for task in plan.tasks]],
    )
    measured = variance_of_runs([row["outcomes"] for row in rows])
    found = detectable_difference(
        len(plan.tasks), plan.repeats, variance=measured or TYPICAL, alpha=1 - plan.thresholds.confidence
    )
    told = [
        Sentence("estimate.detectable_not", {"tasks": len(plan.tasks)})
        if found is None
        else Sentence("estimate.detectable", {"tasks": len(plan.tasks), "points": round(100 * found, 1)})
    ]
    if measured is None:
        told.append(Sentence("estimate.detectable_typical"))
    return found, told


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
