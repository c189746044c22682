"""What the experiment stood on and what was run: the log, readiness, subgoal sets, plan, spending.

Shows stored facts; judges nothing.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from poc.language import Language
from poc.readiness import describe
from poc.report.document import Badge, Block, Bullets, Heading, Section, Table, Text, Tone
from poc.report.document import Facts as Items
from poc.report.facts import Facts
from poc.report.numbers import (
    DASH,
    Cell,
    Number,
    decimal,
    interval,
    moment,
    number,
    percent,
    points,
    ratio,
    seconds,
    usd,
    whole,
)  # fmt: skip
from poc.report.wording import arm_name, named, phrase, say
from poc.verdict import sampling_sentences, speak

LEVEL_TONES: dict[str, Tone] = {"ok": "good", "gap": "open", "missing": "bad"}
READY_TONES: dict[str, Tone] = {"READY": "good", "PARTIAL": "open", "NOT READY": "bad"}


def readiness(facts: Facts, language: Language) -> Section:
    """The log and how good it was when the plan was made."""
    state = facts.plan.readiness
    log = facts.log
    blocks: list[Block] = [
        Items(
            [
                (
                    say("fact.readiness", language),
                    Badge(named("level", state.level, language), READY_TONES[state.level]),
                ),
                (say("fact.log_runs", language), number(log["runs"], whole, "log")),
                (say("fact.log_steps", language), number(log["steps"], whole, "log")),
                (say("fact.log_tasks", language), number(log["tasks"], whole, "log")),
                (say("fact.log_outcomes", language), number(log["outcomes"], whole, "log")),
                (say("fact.log_rejects", language), number(log["rejects"], whole, "log")),
            ]
        )
    ]
    if state.override_reason:
        blocks.append(Text(state.override_reason, "bad", say("text.override", language)))
    if facts.readiness is None:
        blocks.append(Text(say("missing.findings", language)))
        return Section("readiness", say("section.readiness", language), blocks)
    rows: list[list[Cell | Badge]] = []
    for check, words in zip(facts.readiness.checks, describe(facts.readiness, language), strict=True):
        effect = " ".join(part for part in (words.blocks, words.remedy) if part)
        rows.append(
            [
                words.title,
                phrase(
                    "cell.present",
                    language,
                    present=number(check.present, whole, "findings"),
                    total=number(check.total, whole, "findings"),
                    unit=named("units", check.unit, language),
                ),
                Badge(words.level, LEVEL_TONES[check.level]),
                effect or DASH,
            ]
        )
    blocks.append(
        Table(
            say("table.findings", language),
            [say("head." + key, language) for key in ("check", "present", "level", "blocks")],
            rows,
            frozenset({1}),
            phrase("note.assessed", language, date=moment(facts.readiness.assessed_at, language)),
        )
    )
    return Section("readiness", say("section.readiness", language), blocks)


def subgoals(facts: Facts, language: Language) -> Section:
    """Which sets were used, and whether their progress goes with success in the log."""
    if not facts.sets:
        return Section("subgoals", say("section.subgoals", language), [Text(say("missing.sets", language))])
    planned: dict[str, int] = {}
    for task in facts.plan.tasks:
        planned[task.set_hash] = planned.get(task.set_hash, 0) + 1
    rows: list[list[Cell | Badge]] = []
    for row in facts.sets:
        found = facts.validity.get(row["category"]) if row["runs"] else None
        area = None if found is None else found.auroc
        if area is not None:
            spread = interval(area.low, area.high, _two, "validity", language)
        else:
            spread = DASH if found is None else found.reason(language) or DASH
        rows.append(
            [
                row["category"],
                number(row["subgoals"], whole, "sets"),
                whole(planned.get(row["set_hash"])),
                number(row["runs"], whole, "sets"),
                DASH if area is None else number(area.estimate, _two, "validity"),
                spread,
                Number(row["set_hash"][:12], row["set_hash"], "sets"),
            ]
        )
    keys = ("category", "subgoals", "tasks", "log_runs", "auroc", "interval", "hash")
    blocks: list[Block] = [
        Table(
            say("table.sets", language),
            [say("head." + key, language) for key in keys],
            rows,
            frozenset(range(1, 6)),
            say("note.auroc", language),
        )
    ]
    for row in facts.sets:
        blocks.append(Heading(say("heading.set", language, category=row["category"])))
        spec: dict[str, Any] = json.loads(row["spec"])
        blocks.append(Bullets([_subgoal(goal, language) for goal in spec["subgoals"]]))
    return Section("subgoals", say("section.subgoals", language), blocks)


def _subgoal(goal: dict[str, Any], language: Language) -> Cell:
    weight = goal.get("weight")
    note = (
        say("cell.weight", language, weight=decimal(weight, 0 if float(weight).is_integer() else 2)) if weight else ""
    )
    optional = say("cell.optional", language) if goal.get("required") is False else ""
    extra = say("list.comma", language).join(part for part in (note, optional) if part)
    return f"{goal['title']} ({extra})" if extra else str(goal["title"])


def run(facts: Facts, language: Language) -> Section:
    """Model, dates, hashes, counts, spending, estimate against actual, thresholds."""
    plan, totals, requests, experiment = facts.plan, facts.totals, facts.requests, facts.experiment
    hosts = (facts.estimate or {}).get("hosts") or []
    models = facts.verdict.comparison.models
    wall = None
    if totals["started_at"] is not None and totals["ended_at"] is not None:
        wall = (totals["ended_at"] - totals["started_at"]).total_seconds()

    def experiment_value(value: Any) -> Number:
        return Number(DASH if value is None else str(value), value, "experiment")

    pause = say("list.comma", language)
    text_limits = say(
        "text.limits",
        language,
        turns=whole(plan.limits.max_turns),
        steps=whole(plan.limits.max_steps),
        timeout=seconds(plan.limits.trial_timeout_s),
    )
    primary = say(
        "text.contrast",
        language,
        treatment=arm_name(plan.primary[0], language),
        control=arm_name(plan.primary[1], language),
    )
    values: dict[str, Cell | Badge] = {
        "experiment": experiment_value(experiment["experiment_id"]),
        "status": named("state", experiment["status"], language),
        "mode": named("mode", plan.mode, language),
        "model": experiment_value(plan.model.name),
        "reported": pause.join(models) or DASH,
        "host": pause.join(hosts) or plan.model.base_url or DASH,
        "simulated": say("yes" if facts.verdict.simulated else "no", language),
        "environment": plan.environment.target or say("environment.none", language),
        "arms": pause.join(arm_name(arm, language) for arm in plan.arms),
        "primary": primary,
        "placement": named("placement", plan.context.placement, language),
        "tasks": number(facts.verdict.comparison.planned_tasks, whole, "verdict"),
        "sampling": " ".join(speak(one, language) for one in sampling_sentences(plan)),
        "repeats": experiment_value(plan.repeats),
        "seed": experiment_value(plan.seed),
        "temperature": experiment_value(plan.model.temperature),
        "limits": text_limits,
        "created": _when(experiment["created_at"], "experiment", language),
        "started": _when(totals["started_at"], "totals", language),
        "ended": _when(totals["ended_at"], "totals", language),
        "decided": _when(facts.verdict.decided_at, "verdict", language),
        "plan_hash": experiment_value(experiment["plan_hash"]),
        "verdict_hash": Number(facts.verdict.verdict_hash, facts.verdict.verdict_hash, "verdict"),
    }
    items = [(say("fact." + key, language), value) for key, value in values.items()]
    counts: list[tuple[str, Cell | Badge]] = [
        (say("fact.planned", language), number(facts.verdict.comparison.planned_trials, whole, "verdict")),
        (say("fact.trials", language), number(totals["trials"], whole, "totals")),
        (say("fact.finished", language), number(totals["finished"], whole, "totals")),
        (say("fact.failed", language), number(totals["failed"], whole, "totals")),
        (say("fact.restarts", language), number(totals["restarts"], whole, "totals")),
        (say("fact.requests", language), number(requests["requests"], whole, "requests")),
        (say("fact.requests_failed", language), number(requests["failed"], whole, "requests")),
        (say("fact.retries", language), number(requests["retries"], whole, "requests")),
        (say("fact.backoff", language), number(requests["backoff_s"], seconds, "requests")),
        (say("fact.without_usage", language), number(requests["without_usage"], whole, "requests")),
        (say("fact.input_tokens", language), number(requests["input_tokens"], whole, "requests")),
        (say("fact.cached_tokens", language), number(requests["cached_tokens"], whole, "requests")),
        (say("fact.output_tokens", language), number(requests["output_tokens"], whole, "requests")),
        (say("fact.reasoning_tokens", language), number(requests["reasoning_tokens"], whole, "requests")),
        (say("fact.context_tokens", language), number(requests["context_tokens"], whole, "requests")),
        (say("fact.cost", language), number(totals["cost_usd"], usd, "totals")),
        (say("fact.priced", language), number(totals["priced"], whole, "totals")),
    ]
    return Section(
        "run",
        say("section.run", language),
        [
            Items(items),
            Heading(say("heading.counts", language)),
            Items(counts),
            *_estimate(facts, wall, language),
            *_thresholds(facts, language),
        ],
    )


def _when(value: datetime | None, source: str, language: Language) -> Number:
    return Number(moment(value, language), None if value is None else value.isoformat(), source)


def _estimate(facts: Facts, wall: float | None, language: Language) -> list[Block]:
    if facts.estimate is None:
        return []
    estimate, requests, totals = facts.estimate, facts.requests, facts.totals

    def row(key: str, write: Any, actual: Any, source: str) -> list[Cell | Badge]:
        return [
            say("estimate." + key, language),
            number(estimate.get(key), write, "experiment"),
            number(actual, write, source),
        ]

    rows = [
        row("trials", whole, totals["trials"], "totals"),
        row("requests", whole, requests["requests"], "requests"),
        row("input_tokens", whole, requests["input_tokens"], "requests"),
        row("output_tokens", whole, requests["output_tokens"], "requests"),
        row("context_tokens", whole, requests["context_tokens"], "requests"),
        row("usd", usd, totals["cost_usd"], "totals"),
        [
            say("estimate.seconds", language),
            number(estimate.get("seconds"), seconds, "experiment"),
            seconds(wall),
        ],
    ]
    return [
        Heading(say("heading.estimate", language)),
        Table(
            say("table.estimate", language, encoding=estimate.get("encoding") or DASH),
            [say("head." + key, language) for key in ("quantity", "estimated", "actual")],
            rows,
            frozenset({1, 2}),
        ),
    ]


def _thresholds(facts: Facts, language: Language) -> list[Block]:
    limits = facts.plan.thresholds
    lines: list[tuple[str, float | None, Any]] = [
        ("confidence", limits.confidence, percent),
        ("gain_above", limits.gain_above, points),
        ("gain_worthwhile", limits.gain_worthwhile, points),
        ("latency_ratio_max", limits.latency_ratio_max, ratio),
        ("tokens_ratio_max", limits.tokens_ratio_max, ratio),
        ("repeated_irreversible_rise_max", limits.repeated_irreversible_rise_max, _two),
    ]
    rows: list[list[Cell | Badge]] = [
        [
            say("threshold." + key, language),
            say("threshold.off", language) if value is None else number(value, write, "experiment"),
            say("threshold.explain." + key, language),
        ]
        for key, value, write in lines
    ]
    return [
        Heading(say("heading.thresholds", language)),
        Table(
            say("table.thresholds", language),
            [say("head." + key, language) for key in ("threshold", "value", "meaning")],
            rows,
            frozenset({1}),
        ),
    ]


def _two(value: float | None) -> str:
    return decimal(value, 2)
