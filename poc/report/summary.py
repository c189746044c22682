"""The two minutes of a stakeholder: the verdict, four numbers, what to do, what it costs, what could go wrong.

Chooses and words what the stored verdict already holds; judges nothing itself.
"""

from __future__ import annotations

from poc.language import Language
from poc.report.document import Badge, Card, Panel, Summary, Text, Tone
from poc.report.facts import Facts
from poc.report.measures import Write, level_of, level_per_100, signed_per_100, value_of
from poc.report.numbers import (
    Cell,
    Number,
    decimal,
    interval,
    known,
    moment,
    number,
    percent,
    points,
    ratio,
    usd,
    whole,
)
from poc.report.wording import arm_name, named, phrase, say, spoken
from poc.verdict import Criterion
from poc.verdict.numbers import Measure

TONES: dict[str, Tone] = {"GO": "good", "NO-GO": "bad", "INCONCLUSIVE": "open"}
STATUS_TONES: dict[str, Tone] = {"met": "good", "broken": "bad", "open": "open", "off": "plain"}


def summary(facts: Facts, language: Language) -> Summary:
    """The head of the page."""
    verdict = facts.verdict
    word = say("verdict." + verdict.verdict, language)
    if verdict.simulated:
        word = say("verdict.simulated", language, verdict=word)
    return Summary(
        bands=_bands(facts, language),
        eyebrow=say(
            "page.eyebrow",
            language,
            name=facts.experiment["name"] or facts.experiment["experiment_id"],
            mode=named("mode", facts.plan.mode, language),
            date=moment(verdict.decided_at, language),
        ),
        verdict=Badge(word, "plain" if verdict.simulated else TONES[verdict.verdict]),
        sentence=_sentence(facts, language),
        reasons=_reasons(facts, language),
        cards=_cards(facts, language),
        panels=[
            Panel(say("panel.next", language), _next(facts, language)),
            Panel(say("panel.cost", language), _costs(facts, language)),
            Panel(say("panel.risks", language), _risks(facts, language)),
        ],
    )


def criterion_of(facts: Facts, name: str) -> Criterion | None:
    """The criterion on a measure, if the plan had one."""
    return next((line for line in facts.verdict.criteria if line.criterion == name), None)


def status_badge(status: str, language: Language) -> Badge:
    """A criterion's status, with its tone."""
    return Badge(say("status." + status, language), STATUS_TONES.get(status, "plain"))


def _bands(facts: Facts, language: Language) -> list[Text]:
    bands: list[Text] = []
    comparison = facts.verdict.comparison
    if facts.verdict.simulated:
        bands.append(Text(say("band.simulated.text", language), "bad", say("band.simulated.lead", language)))
    if not comparison.complete:
        text = phrase(
            "band.unfinished.text",
            language,
            stored=number(comparison.stored_trials, whole, "verdict"),
            planned=number(comparison.planned_trials, whole, "verdict"),
        )
        bands.append(Text(text, "open", say("band.unfinished.lead", language)))
    if facts.stale:
        bands.append(Text(say("band.stale.text", language), "open", say("band.stale.lead", language)))
    return bands


def _sentence(facts: Facts, language: Language) -> Cell:
    """The verdict's headline; a GO speaks of the arms by the names that this report uses."""
    headline = facts.verdict.reasons[0]
    if headline.key != "headline.go":
        return spoken(headline, "verdict", language)
    values = {
        **headline.values,
        **{part: arm_name(headline.values[part], language) for part in ("treatment", "control")},
    }
    return Number(say("headline.go", language, **values), None, "verdict")


def _reasons(facts: Facts, language: Language) -> list[Cell]:
    """What else keeps the verdict from being a GO; the criteria that are met stand in the evidence."""
    verdict = facts.verdict
    lines = [
        line for line in verdict.criteria if line.status == "broken" or (line.status == "open" and not line.is_gate)
    ]
    return [spoken(line.reason, "criteria", language) for line in lines if line.reason != verdict.reasons[0]]


def _cards(facts: Facts, language: Language) -> list[Card]:
    comparison = facts.verdict.comparison
    primary = comparison.primary
    cards = [
        _card(facts, primary.outcome, say("card." + primary.outcome.name, language), "unit.points_short", language),
        _card(facts, primary.latency, say("card.latency", language), None, language),
        _card(facts, primary.tokens, say("card.tokens", language), None, language),
    ]
    if facts.plan.mode == "closed_loop":
        label = say("card.irreversible", language)
        cards.append(_card(facts, primary.repeated_irreversible, label, None, language, per_100=True))
    else:
        cards.append(
            _card(facts, primary.repeated_steps, say("card.repeated_steps", language), "unit.number", language)
        )
    return cards


def _card(
    facts: Facts, measure: Measure, label: str, unit: str | None, language: Language, *, per_100: bool = False
) -> Card:
    """`per_100`: counts per trial are shown per 100 trials, since a rise of 0.02 is hard to read."""
    write: Write = signed_per_100 if per_100 else value_of(measure)
    level: Write = level_per_100 if per_100 else level_of(measure)
    criterion = criterion_of(facts, measure.name)
    lines: list[Cell] = [
        phrase(
            "card.interval",
            language,
            confidence=number(facts.verdict.comparison.confidence, percent, "verdict"),
            interval=interval(measure.interval.low, measure.interval.high, write, "verdict", language),
        ),
        phrase(
            "card.levels",
            language,
            control_name=arm_name(facts.plan.primary[1], language),
            control=number(measure.control, level, "verdict"),
            treatment_name=arm_name(facts.plan.primary[0], language),
            treatment=number(measure.treated, level, "verdict"),
        ),
    ]
    if criterion is not None and criterion.threshold is not None:
        if measure.unit == "share":
            worthwhile = number(facts.plan.thresholds.gain_worthwhile, write, "experiment")
            above = number(criterion.threshold, write, "criteria")
            lines.append(phrase("card.gain", language, above=above, worthwhile=worthwhile))
        else:
            lines.append(phrase("card.limit", language, threshold=number(criterion.threshold, write, "criteria")))
    return Card(
        label=label,
        value=number(measure.interval.estimate, write, "verdict"),
        unit=say(unit, language) if unit else "",
        lines=lines,
        badge=None if criterion is None else status_badge(criterion.status, language),
    )


def _next(facts: Facts, language: Language) -> list[Cell]:
    """The next step that the verdict names; a simulated one points to a real run as well."""
    verdict = facts.verdict
    items: list[Cell] = [say("next." + verdict.verdict, language, treatment=arm_name(facts.plan.primary[0], language))]
    items.append(spoken(verdict.next_step, "verdict", language))
    if verdict.simulated and verdict.next_step.key != "next.real_model":
        items.append(say("next.simulated", language))
    return items


def _costs(facts: Facts, language: Language) -> list[Cell]:
    """Per 1,000 tasks (one trial each), for both arms of the primary contrast."""
    treatment, control = facts.plan.primary
    rows = {arm: facts.costs.get(arm, {}) for arm in (control, treatment)}
    items: list[Cell] = []
    for arm, row in rows.items():
        price = row.get("usd_per_1000")
        tokens = number(row.get("tokens_per_1000"), whole, "costs")
        name = arm_name(arm, language)
        if price is None:
            items.append(phrase("cost.no_price", language, arm=name, tokens=tokens))
        else:
            items.append(phrase("cost.price", language, arm=name, usd=number(price, usd, "costs"), tokens=tokens))
    ratio_of = facts.verdict.comparison.primary.cost.interval
    if ratio_of.estimate is not None:
        shown = number(ratio_of.estimate, ratio, "verdict")
        if ratio_of.bounded:
            ends = interval(ratio_of.low, ratio_of.high, ratio, "verdict", language)
            items.append(phrase("cost.ratio", language, ratio=shown, interval=ends))
        else:
            items.append(phrase("cost.ratio_alone", language, ratio=shown))
    summaries = {row.arm: row for row in facts.verdict.comparison.arms}
    per_success = [summaries[arm].cost_per_success if arm in summaries else None for arm in (control, treatment)]
    if any(known(value) for value in per_success):
        items.append(
            phrase(
                "cost.per_success",
                language,
                control_name=arm_name(control, language),
                control=number(per_success[0], usd, "verdict"),
                treatment_name=arm_name(treatment, language),
                treatment=number(per_success[1], usd, "verdict"),
            )
        )
    items.append(
        phrase(
            "cost.hours",
            language,
            control_name=arm_name(control, language),
            treatment_name=arm_name(treatment, language),
            control=number(rows[control].get("hours_per_1000"), _hours, "costs"),
            treatment=number(rows[treatment].get("hours_per_1000"), _hours, "costs"),
        )
    )
    if facts.verdict.simulated:
        items.append(say("cost.simulated", language))
    return items


def _hours(value: float | None) -> str:
    return decimal(value, 1 if value is not None and abs(value) < 100 else 0)


def _risks(facts: Facts, language: Language) -> list[Cell]:
    """What could go wrong when the verdict is followed; at least one line."""
    comparison = facts.verdict.comparison
    primary = comparison.primary
    items: list[Cell] = []
    if facts.plan.readiness.override_reason:
        items.append(say("risk.override", language, level=named("level", facts.plan.readiness.level, language)))
    if comparison.fidelity.finding == "different":
        differs = say("list.comma", language).join(
            named("fidelity.in", key, language) for key in comparison.fidelity.differs_in
        )
        items.append(say("risk.fidelity", language, differs=differs))
    elif comparison.fidelity.finding == "unknown":
        items.append(say("risk.fidelity_unknown", language))
    rise = primary.repeated_irreversible.interval
    if rise.estimate is not None and rise.estimate > 0:
        items.append(
            phrase(
                "risk.irreversible",
                language,
                rise=number(rise.estimate, signed_per_100, "verdict"),
                interval=interval(rise.low, rise.high, signed_per_100, "verdict", language),
            )
        )
    if primary.worse:
        items.append(
            phrase(
                "risk.worse",
                language,
                worse=number(primary.worse, whole, "verdict"),
                better=number(primary.better, whole, "verdict"),
                tasks=number(primary.tasks, whole, "verdict"),
            )
        )
    harmed = [row.category for row in comparison.categories if row.outcome.below(0)]
    if harmed:
        items.append(say("risk.category", language, categories=say("list.comma", language).join(harmed)))
    if primary.bounds is not None and primary.bounds.trials:
        items.append(
            phrase(
                "risk.bounds",
                language,
                trials=number(primary.bounds.trials, whole, "verdict"),
                low=number(primary.bounds.low, points, "verdict"),
                high=number(primary.bounds.high, points, "verdict"),
            )
        )
    if not items:
        items.append(say("risk.none", language))
    return items
