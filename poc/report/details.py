"""The engineer's check of the comparison: every arm, every contrast, categories, likeness to the log.

Shows the stored figures of the verdict; computes none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poc.language import Language
from poc.report.document import Badge, Block, Heading, Section, Table, Text, Tone
from poc.report.facts import Facts
from poc.report.measures import level_of, level_per_100, value_of
from poc.report.numbers import Cell, decimal, interval, number, percent, points, probability, ratio, seconds, usd, whole
from poc.report.wording import arm_name, named, phrase, say, spoken
from poc.verdict import Contrast

MOST_TOOLS = 15
"""Tools of the mix that are listed, by their share in the log."""


def details(facts: Facts, language: Language) -> Section:
    """All figures of the comparison as tables."""
    return Section(
        "details",
        say("section.details", language),
        [
            *_arms(facts, language),
            *_endings(facts, language),
            *_primary(facts, language),
            *_secondary(facts, language),
            *_categories(facts, language),
            *_fidelity(facts, language),
        ],
    )


def _arms(facts: Facts, language: Language) -> list[Block]:
    arms = facts.verdict.comparison.arms
    lines: list[tuple[str, Callable[[Any], str], Callable[[Any], Any]]] = [
        ("tasks", whole, lambda arm: arm.tasks),
        ("trials", whole, lambda arm: arm.trials),
        ("failed", whole, lambda arm: arm.failed),
        ("ungraded", whole, lambda arm: arm.ungraded),
        ("outcome", _percent_1, lambda arm: arm.outcome.estimate),
        ("final_progress", _percent_1, lambda arm: arm.final_progress),
        ("turns", _two, lambda arm: arm.turns),
        ("steps", _two, lambda arm: arm.steps),
        ("errors", _two, lambda arm: arm.errors),
        ("repeated_steps", _two, lambda arm: arm.repeated_steps),
        ("irreversible_100", level_per_100, lambda arm: arm.repeated_irreversible),
        ("tokens_trial", whole, lambda arm: arm.tokens),
        ("context_tokens", whole, lambda arm: arm.context_tokens),
        ("cached_share", _percent_1, lambda arm: arm.cached_share),
        ("missing_usage", whole, lambda arm: arm.missing_usage),
        ("latency_trial", seconds, lambda arm: arm.latency_s),
        ("first_token", seconds, lambda arm: arm.first_token_s),
        ("retries", whole, lambda arm: arm.retries),
        ("backoff", seconds, lambda arm: arm.backoff_s),
        ("cost", usd, lambda arm: arm.cost_usd),
        ("cost_success", usd, lambda arm: arm.cost_per_success),
    ]
    rows: list[list[Cell | Badge]] = [
        [say("row." + key, language), *(number(read(arm), write, "verdict") for arm in arms)]
        for key, write, read in lines
    ]
    table = Table(
        say("table.arms", language),
        [say("head.measure", language), *(arm_name(arm.arm, language) for arm in arms)],
        rows,
        frozenset(range(1, len(arms) + 1)),
    )
    return [Heading(say("heading.arms", language)), table]


def _endings(facts: Facts, language: Language) -> list[Block]:
    if not facts.endings:
        return []
    arms = facts.plan.arms
    found = {(row["ending"], row["arm"]): row["trials"] for row in facts.endings}
    rows: list[list[Cell | Badge]] = [
        [
            named("ending", ending, language),
            *(number(found[ending, arm], whole, "endings") if (ending, arm) in found else "0" for arm in arms),
        ]
        for ending in dict.fromkeys(row["ending"] for row in facts.endings)
    ]
    head = [say("head.ending", language), *(arm_name(arm, language) for arm in arms)]
    return [
        Heading(say("heading.endings", language)),
        Table(say("table.endings", language), head, rows, frozenset(range(1, len(arms) + 1))),
    ]


def _primary(facts: Facts, language: Language) -> list[Block]:
    contrast = facts.verdict.comparison.primary
    rows: list[list[Cell | Badge]] = []
    for measure in contrast.measures():
        write, level = value_of(measure), level_of(measure)
        rows.append(
            [
                say("measure." + measure.name, language),
                number(measure.control, level, "verdict"),
                number(measure.treated, level, "verdict"),
                number(measure.interval.estimate, write, "verdict"),
                interval(measure.interval.low, measure.interval.high, write, "verdict", language),
                number(measure.interval.n, whole, "verdict"),
                number(measure.missing, whole, "verdict"),
            ]
        )
    heads = [say("head." + key, language) for key in ("difference", "interval", "tasks_used", "tasks_missing")]
    table = Table(
        say("table.primary", language, confidence=percent(facts.verdict.comparison.confidence)),
        [
            say("head.measure", language),
            arm_name(contrast.control, language),
            arm_name(contrast.treatment, language),
            *heads,
        ],
        rows,
        frozenset(range(1, 7)),
        say("note.primary", language),
    )
    counts = phrase(
        "text.pairs",
        language,
        tasks=number(contrast.tasks, whole, "verdict"),
        better=number(contrast.better, whole, "verdict"),
        worse=number(contrast.worse, whole, "verdict"),
        equal=number(contrast.equal, whole, "verdict"),
        unpaired=number(contrast.unpaired, whole, "verdict"),
        p=number(contrast.p_value, probability, "verdict"),
    )
    title = say("heading.primary", language, contrast=_title(contrast, language))
    blocks: list[Block] = [Heading(title), table, Text(counts)]
    if contrast.bounds is not None and contrast.bounds.trials:
        blocks.append(
            Text(
                phrase(
                    "text.bounds",
                    language,
                    trials=number(contrast.bounds.trials, whole, "verdict"),
                    low=number(contrast.bounds.low, points, "verdict"),
                    high=number(contrast.bounds.high, points, "verdict"),
                )
            )
        )
    return blocks


def _secondary(facts: Facts, language: Language) -> list[Block]:
    contrasts = facts.verdict.comparison.secondary
    if not contrasts:
        return []
    rows: list[list[Cell | Badge]] = []
    for contrast in contrasts:
        outcome = contrast.outcome
        rows.append(
            [
                _title(contrast, language),
                number(outcome.interval.estimate, points, "verdict"),
                interval(outcome.interval.low, outcome.interval.high, points, "verdict", language),
                number(contrast.p_value, probability, "verdict"),
                number(contrast.p_adjusted, probability, "verdict"),
                number(contrast.latency.interval.estimate, ratio, "verdict"),
                number(contrast.tokens.interval.estimate, ratio, "verdict"),
                number(contrast.tasks, whole, "verdict"),
            ]
        )
    keys = ("contrast", "outcome_points", "interval", "p", "p_holm", "latency_ratio", "tokens_ratio", "tasks")
    table = Table(
        say("table.secondary", language),
        [say("head." + key, language) for key in keys],
        rows,
        frozenset(range(1, 8)),
        say("note.secondary", language),
    )
    return [Heading(say("heading.secondary", language)), table]


def _categories(facts: Facts, language: Language) -> list[Block]:
    categories = facts.verdict.comparison.categories
    if not categories:
        return []
    treatment, control = facts.plan.primary
    rows: list[list[Cell | Badge]] = [
        [
            row.category,
            number(row.tasks, whole, "verdict"),
            number(row.control, _percent_1, "verdict"),
            number(row.treated, _percent_1, "verdict"),
            number(row.outcome.estimate, points, "verdict"),
            interval(row.outcome.low, row.outcome.high, points, "verdict", language),
            number(row.latency.estimate, ratio, "verdict"),
            number(row.tokens.estimate, ratio, "verdict"),
        ]
        for row in categories
    ]
    heads = [say("head." + key, language) for key in ("outcome_points", "interval", "latency_ratio", "tokens_ratio")]
    head = [
        say("head.category", language),
        say("head.tasks", language),
        arm_name(control, language),
        arm_name(treatment, language),
        *heads,
    ]
    return [
        Heading(say("heading.categories", language)),
        Text(say("text.categories", language), "open"),
        Table(say("table.categories", language), head, rows, frozenset(range(1, 8))),
    ]


def _fidelity(facts: Facts, language: Language) -> list[Block]:
    found = facts.verdict.comparison.fidelity
    gate = next((line for line in facts.verdict.criteria if line.criterion == "fidelity"), None)
    blocks: list[Block] = [Heading(say("heading.fidelity", language))]
    if gate is not None:
        tones: dict[str, Tone] = {"broken": "bad", "open": "open"}
        blocks.append(Text(spoken(gate.reason, "criteria", language), tones.get(gate.status, "plain")))
    if found.finding not in ("alike", "different"):
        return blocks
    rows: list[list[Cell | Badge]] = [
        [
            say("row.success_fidelity", language),
            number(found.logged_success, _percent_1, "verdict"),
            number(found.replayed_success, _percent_1, "verdict"),
            number(found.success.estimate, points, "verdict"),
            interval(found.success.low, found.success.high, points, "verdict", language),
        ],
        [
            say("row.steps_fidelity", language),
            number(found.logged_steps, _two, "verdict"),
            number(found.replayed_steps, _two, "verdict"),
            number(found.steps.estimate, _signed_two, "verdict"),
            interval(found.steps.low, found.steps.high, _signed_two, "verdict", language),
        ],
    ]
    keys = ("measure", "logged", "replayed", "difference_only", "interval")
    blocks.append(
        Table(
            say("table.fidelity", language, control=arm_name(facts.plan.primary[1], language)),
            [say("head." + key, language) for key in keys],
            rows,
            frozenset(range(1, 5)),
            phrase(
                "note.fidelity",
                language,
                tasks=number(found.tasks, whole, "verdict"),
                runs=number(found.logged_runs, whole, "verdict"),
                distance=number(found.tool_distance, _percent_1, "verdict"),
            ),
        )
    )
    tools = sorted(
        found.logged_tools.keys() | found.replayed_tools.keys(),
        key=lambda tool: (-found.logged_tools.get(tool, 0.0), tool),
    )

    def share(tool: str, mix: dict[str, float]) -> Cell:
        # A tool that is not in a mix was never called there: a known zero.
        return number(mix[tool], _percent_1, "verdict") if tool in mix else percent(0, 1)

    mix: list[list[Cell | Badge]] = [
        [tool, share(tool, found.logged_tools), share(tool, found.replayed_tools)] for tool in tools[:MOST_TOOLS]
    ]
    blocks.append(
        Table(
            say("table.tools", language),
            [say("head." + key, language) for key in ("tool", "logged", "replayed")],
            mix,
            frozenset({1, 2}),
            say("note.more_tools", language, shown=MOST_TOOLS, all=len(tools)) if len(tools) > MOST_TOOLS else None,
        )
    )
    return blocks


def _title(contrast: Contrast, language: Language) -> str:
    return say(
        "text.contrast",
        language,
        treatment=arm_name(contrast.treatment, language),
        control=arm_name(contrast.control, language),
    )


def _two(value: float | None) -> str:
    return decimal(value, 2)


def _signed_two(value: float | None) -> str:
    return decimal(value, 2, sign=True)


def _percent_1(value: float | None) -> str:
    return percent(value, 1)
