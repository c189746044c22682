"""The evidence: criteria, success, tokens, latency and progress, each as a figure with the table of its numbers.

Draws what the stored verdict and the queries hold; computes no statistic.
"""

from __future__ import annotations

import pandas as pd

from poc.language import Language
from poc.report import plots
from poc.report.document import Badge, Block, Bullets, Heading, Plot, Section, Table
from poc.report.facts import Facts
from poc.report.measures import write_of
from poc.report.numbers import DASH, Cell, decimal, interval, number, percent, seconds, whole
from poc.report.summary import status_badge
from poc.report.wording import arm_name, named, phrase, say, spoken


def evidence(facts: Facts, language: Language) -> Section:
    """The section with all figures that this experiment has data for."""
    blocks: list[Block] = [
        *_criteria(facts, language),
        _success(facts, language),
        *_tokens(facts, language),
        *_latency(facts, language),
        *_progress(facts, language),
        *_judgements(facts, language),
    ]
    return Section("evidence", say("section.evidence", language), blocks)


def _criteria(facts: Facts, language: Language) -> list[Block]:
    lines = [line for line in facts.verdict.criteria if not line.is_gate]
    gates = [line for line in facts.verdict.criteria if line.is_gate]
    rows: list[list[Cell | Badge]] = []
    for line in lines:
        write = write_of(line)
        rows.append(
            [
                say("criterion." + line.criterion, language),
                number(line.value, write, "criteria"),
                interval(line.low, line.high, write, "criteria", language),
                number(line.threshold, write, "criteria"),
                say("unit." + line.unit, language),
                status_badge(line.status, language),
                spoken(line.reason, "criteria", language),
            ]
        )
    table = Table(
        say("table.criteria", language, confidence=percent(facts.verdict.comparison.confidence)),
        [
            say("head." + key, language)
            for key in ("criterion", "value", "interval", "threshold", "unit", "status", "reason")
        ],
        rows,
        frozenset({1, 2, 3}),
    )
    frame = pd.DataFrame(
        [
            {
                "label": say("criterion." + line.criterion, language), "value": line.value, "low": line.low,
                "high": line.high, "threshold": line.threshold, "unit": line.unit, "status": line.status,
            }
            for line in lines
        ]
    )  # fmt: skip
    alt = say("alt.criteria", language, n=whole(facts.verdict.comparison.primary.tasks))
    checks = Table(
        say("table.gates", language),
        [say("head.condition", language), say("head.status", language), say("head.reason", language)],
        [
            [
                say("criterion." + gate.criterion, language),
                status_badge(gate.status, language),
                spoken(gate.reason, "criteria", language),
            ]
            for gate in gates
        ],
    )
    plot = Plot("criteria", say("plot.criteria", language), plots.criteria_forest(frame, language), alt, table)
    return [plot, Heading(say("heading.gates", language)), checks]


def _success(facts: Facts, language: Language) -> Block:
    comparison = facts.verdict.comparison
    rows: list[list[Cell | Badge]] = [
        [
            arm_name(row.arm, language),
            number(row.outcome.estimate, _percent_1, "verdict"),
            interval(row.outcome.low, row.outcome.high, _percent_1, "verdict", language),
            number(row.tasks, whole, "verdict"),
            number(row.trials, whole, "verdict"),
            number(row.failed, whole, "verdict"),
            number(row.ungraded, whole, "verdict"),
        ]
        for row in comparison.arms
    ]
    outcome = say("outcome." + comparison.outcome, language)
    heads = [say("head." + key, language) for key in ("interval", "tasks", "trials", "failed", "ungraded")]
    table = Table(
        say("table.success", language, outcome=outcome),
        [say("head.arm", language), outcome, *heads],
        rows,
        frozenset(range(1, 7)),
    )
    alt = say(
        "alt.success",
        language,
        outcome=outcome,
        confidence=percent(comparison.confidence),
        arms=say("list.comma", language).join(
            f"{arm_name(row.arm, language)} {percent(row.outcome.estimate)}" for row in comparison.arms
        ),
    )
    note = None
    if comparison.expected_flips is not None:
        note = phrase("note.flips", language, share=number(comparison.expected_flips, percent, "verdict"))
    figure = plots.success_by_arm(comparison.arms_frame(), language)
    title = say("plot.success", language, outcome=outcome)
    return Plot("success", title, figure, alt, table, note)


def _tokens(facts: Facts, language: Language) -> list[Block]:
    split = facts.verdict.comparison.tokens
    if split is None:
        return [Heading(say("plot.tokens", language)), Bullets([say("missing.tokens", language)])]
    treatment, control = facts.plan.primary
    walk = [
        (arm_name(control, language), split.control, "absolute", "control"),
        (say("split.context", language), split.context, "relative", "context"),
        (say("split.turns", language), split.turns, "relative", "turns"),
        (say("split.length", language), split.length, "relative", "length"),
    ]
    rows: list[list[Cell | Badge]] = []
    for label, value, measure, key in walk:
        written = whole if measure == "absolute" else _signed_whole
        rows.append([label, number(value, written, "verdict"), say("split.explain." + key, language)])
    rows.append(
        [
            say("split.total", language),
            number(split.total, _signed_whole, "verdict"),
            say("split.explain.total", language),
        ]
    )
    parts = [(label, value, measure) for label, value, measure, _ in walk]
    parts.append((arm_name(treatment, language), split.control + split.total, "total"))
    table = Table(
        say("table.tokens", language),
        [say("head.part", language), say("head.tokens", language), say("head.meaning", language)],
        rows,
        frozenset({1}),
    )
    alt = say(
        "alt.tokens",
        language,
        tasks=whole(split.tasks),
        total=_signed_whole(split.total),
        context=_signed_whole(split.context),
        turns=_signed_whole(split.turns),
        length=_signed_whole(split.length),
    )
    note = say("note.tokens", language)
    return [Plot("tokens", say("plot.tokens", language), plots.token_split(parts, language), alt, table, note)]


def _latency(facts: Facts, language: Language) -> list[Block]:
    known = facts.latency.dropna(subset=["median"])
    if known.empty:
        return [Heading(say("plot.latency", language)), Bullets([say("missing.latency", language)])]
    rows: list[list[Cell | Badge]] = [
        [
            arm_name(row["arm"], language),
            number(int(row["n"]), whole, "latency"),
            *(number(row[name], seconds, "latency") for name in ("p05", "p25", "median", "p75", "p95")),
        ]
        for row in facts.latency.to_dict("records")
    ]
    table = Table(
        say("table.latency", language),
        [say("head." + key, language) for key in ("arm", "trials", "p05", "p25", "median", "p75", "p95")],
        rows,
        frozenset(range(1, 7)),
    )
    alt = say("alt.latency", language)
    return [Plot("latency", say("plot.latency", language), plots.latency_distribution(known, language), alt, table)]


def _progress(facts: Facts, language: Language) -> list[Block]:
    """Only where trials take several steps: a next-step replay has one."""
    frame = facts.progress_steps
    last = max((int(step) for step in frame["step"]), default=0)
    if facts.plan.mode == "next_step" or last < 1 or not any(value > 0 for value in frame["progress"]):
        return []
    chosen = sorted({max(1, round(last * part / 6)) for part in range(1, 7)})
    rows: list[list[Cell | Badge]] = []
    for arm in dict.fromkeys(frame["arm"]):
        of_arm = frame[frame["arm"] == arm].set_index("step")
        rows.append(
            [
                arm_name(arm, language),
                *(number(float(of_arm.loc[step, "progress"]), percent, "progress_steps") for step in chosen),
            ]
        )
    table = Table(
        say("table.progress", language),
        [say("head.arm", language), *(say("head.after", language, step=whole(step)) for step in chosen)],
        rows,
        frozenset(range(1, len(chosen) + 1)),
    )
    alt = say("alt.progress", language)
    figure = plots.progress_over_steps(frame, language)
    return [Plot("progress", say("plot.progress", language), figure, alt, table, say("note.progress", language))]


def _judgements(facts: Facts, language: Language) -> list[Block]:
    """What the judges of next steps said, per arm."""
    if not facts.judgements:
        return []
    arms = [arm for arm in facts.plan.arms if any(row["arm"] == arm for row in facts.judgements)]
    found = {(row["judge"], row["arm"]): row for row in facts.judgements}
    rows: list[list[Cell | Badge]] = []
    for judge in dict.fromkeys(row["judge"] for row in facts.judgements):
        cells: list[Cell | Badge] = [named("judge", judge, language)]
        for arm in arms:
            row = found.get((judge, arm))
            if row is None or not row["n"]:
                cells.append(DASH)
                continue
            share = number(row["share"], percent, "judgements")
            cells.append(phrase("cell.share_of", language, share=share, n=number(row["n"], whole, "judgements")))
        rows.append(cells)
    table = Table(
        say("table.judgements", language),
        [say("head.judge", language), *(arm_name(arm, language) for arm in arms)],
        rows,
        frozenset(range(1, len(arms) + 1)),
    )
    return [Heading(say("heading.judgements", language)), table]


def _percent_1(value: float | None) -> str:
    return percent(value, 1)


def _signed_whole(value: float | None) -> str:
    return decimal(value, 0, sign=True)
