"""What the report cannot show, worked out from the facts; the glossary; and where every number comes from."""

from __future__ import annotations

from poc.language import Language
from poc.report.document import Block, Bullets, Queries, Section, Text
from poc.report.document import Facts as Items
from poc.report.facts import QUERIES, Facts, printed
from poc.report.numbers import Cell, number, percent, points, whole
from poc.report.wording import named, phrase, say, spoken

FEW_TASKS = 30
"""Below this many tasks the report warns, whatever the interval says."""
TERMS = (
    "arm", "trial", "task", "subgoal", "progress", "primary", "interval", "points", "geometric", "irreversible",
    "outcome", "next_step", "fidelity", "holm", "auroc", "simulated",
)  # fmt: skip


def limits(facts: Facts, language: Language) -> Section:
    """The limits that hold for this very experiment."""
    verdict, plan = facts.verdict, facts.plan
    comparison = verdict.comparison
    items: list[Cell] = []
    stated = [criterion.reason for criterion in verdict.criteria if not criterion.is_gate]
    for reason in verdict.reasons[1:-1]:
        # Gates that are not met and notes; the criteria have a table of their own.
        if reason not in stated:
            items.append(spoken(reason, "verdict", language))
    gate = next((line for line in verdict.criteria if line.is_gate and line.reason == verdict.reasons[0]), None)
    if gate is not None:
        items.insert(0, spoken(gate.reason, "verdict", language))
    tasks = comparison.primary.tasks
    if tasks < FEW_TASKS:
        items.append(phrase("limit.few", language, tasks=number(tasks, whole, "verdict")))
    if comparison.detectable is not None:
        items.append(
            phrase(
                "limit.detectable",
                language,
                tasks=number(tasks, whole, "verdict"),
                points=number(comparison.detectable, _unsigned_points, "verdict"),
            )
        )
    if plan.repeats == 1:
        items.append(say("limit.one_repeat", language))
    if facts.totals["restarts"]:
        items.append(phrase("limit.restarts", language, restarts=number(facts.totals["restarts"], whole, "totals")))
    if plan.mode == "next_step" and facts.effects["guessed"]:  # an environment declares its effects itself
        items.append(
            phrase(
                "limit.effects",
                language,
                guessed=number(facts.effects["guessed"], whole, "effects"),
                tools=number(facts.effects["tools"], whole, "effects"),
            )
        )
    if facts.totals["priced"] < facts.totals["trials"]:
        items.append(
            phrase(
                "limit.price",
                language,
                priced=number(facts.totals["priced"], whole, "totals"),
                trials=number(facts.totals["trials"], whole, "totals"),
            )
        )
    if plan.sampling.how == "all":
        items.append(say("limit.tasks", language))
    if plan.mode == "closed_loop":
        items.append(say("limit.environment", language, environment=plan.environment.target or "—"))
    models = say("list.comma", language).join(comparison.models) or plan.model.name
    items.append(say("limit.model", language, model=models))
    items.append(say("limit.estimates", language))
    if comparison.primary.outcome.interval.bounded:
        items.append(say("limit.confidence", language, confidence=percent(comparison.confidence)))
    return Section("limits", say("section.limits", language), [Bullets(items)])


def glossary(language: Language) -> Section:
    """The words of the report, one line each."""
    terms: list[tuple[str, Cell]] = [(say("term." + term, language), say("define." + term, language)) for term in TERMS]
    return Section("glossary", say("section.glossary", language), [Items(list(terms))])


def sources(facts: Facts, language: Language) -> Section:
    """Every query behind the numbers, ready to be run again."""
    experiment_id = str(facts.experiment["experiment_id"])
    items = [(name, named("query", name, language), printed(name, experiment_id)) for name in QUERIES]
    blocks: list[Block] = [Text(say("text.sources", language)), Queries(items), Text(say("text.validity", language))]
    return Section("sources", say("section.sources", language), blocks)


def _unsigned_points(value: float | None) -> str:
    return points(value).lstrip("+")
