"""Judging each criterion and gate by the frozen thresholds. Figures in, statuses and reasons out; stores nothing.

A criterion is *met*, *broken* or *open* by the whole interval, not by the
estimate; *off* when the plan switched it off. A gate says whether the
experiment can carry a GO at all; a broken gate caps the verdict.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from poc.language import Sentence
from poc.replay.experiment import Plan
from poc.verdict.numbers import Comparison, Measure

Status = Literal["met", "broken", "open", "off"]
CRITERIA = ("success", "next_step_quality", "latency", "tokens", "repeated_irreversible")
GATES = ("complete", "independent_outcome", "known_tools", "fidelity", "split_by_task")


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the verdict. `decisive`: when broken it makes NO-GO. For gates there are no figures.

    `unit` says how value, low, high and threshold are to be read: points
    (shares, 0.05 is 5 points), ratio, or number.
    """

    criterion: str
    decisive: bool
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None
    status: Status
    reason: Sentence

    @property
    def is_gate(self) -> bool:
        """Whether this is a condition of the experiment rather than a figure of the comparison."""
        return self.criterion in GATES

    @property
    def unit(self) -> Literal["points", "ratio", "number"]:
        """How the figures are to be read."""
        if self.criterion in ("success", "next_step_quality"):
            return "points"
        return "ratio" if self.criterion in ("latency", "tokens") else "number"


def points(share: float, *, signed: bool = True) -> str:
    """A share as percentage points for a sentence: +4.2."""
    text = f"{100 * share:+.1f}" if signed else f"{100 * share:.1f}"
    return text.replace("-", "\u2212") if float(text) else "0.0"


def figure(value: float, digits: int = 2, *, signed: bool = False) -> str:
    """A ratio or a count for a sentence."""
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text.replace("-", "\u2212") if float(text) else f"{0:.{digits}f}"


def judge(comparison: Comparison, plan: Plan) -> tuple[Criterion, ...]:
    """All criteria, then all gates, each with its reason."""
    thresholds = plan.thresholds
    costs_decide = plan.mode == "closed_loop"
    primary = comparison.primary
    return (
        _outcome(comparison, plan),
        _cost("latency", primary.latency, thresholds.latency_ratio_max, costs_decide),
        _cost("tokens", primary.tokens, thresholds.tokens_ratio_max, costs_decide),
        _irreversible(primary.repeated_irreversible, thresholds.repeated_irreversible_rise_max, costs_decide),
        _complete(comparison),
        _independent(comparison, plan),
        _known_tools(comparison),
        _fidelity(comparison),
        _split(comparison),
    )


def _outcome(comparison: Comparison, plan: Plan) -> Criterion:
    """Met: wholly above `gain_above` and the estimate at least `gain_worthwhile`. Broken: wholly below the latter."""
    name, interval = comparison.outcome, comparison.primary.outcome.interval
    above, worthwhile = plan.thresholds.gain_above, plan.thresholds.gain_worthwhile
    status: Status = "open"
    reason = Sentence(f"{name}.none")
    if interval.estimate is not None and interval.low is not None and interval.high is not None:
        shown = interval.above(above)
        if shown and interval.estimate >= worthwhile - 1e-12:
            status, key = "met", "met"
        elif interval.below(worthwhile):
            status, key = "broken", "broken"
        else:
            key = "small" if shown else "open"
        reason = Sentence(
            f"{name}.{key}",
            {
                "gain": points(interval.estimate, signed=key in ("broken", "open")),
                "low": points(interval.low),
                "high": points(interval.high),
                "tasks": interval.n,
                "worthwhile": points(worthwhile, signed=False),
                **({} if key in ("broken", "small") else {"above": points(above, signed=False)}),
            },
        )
    return Criterion(
        criterion=name,
        decisive=True,
        value=interval.estimate,
        low=interval.low,
        high=interval.high,
        threshold=above,
        status=status,
        reason=reason,
    )


def _cost(name: str, measure: Measure, limit: float | None, decisive: bool) -> Criterion:
    """Met: wholly at or below the limit. Broken: wholly above.

    Not decisive in next-step mode: one call cannot show that fewer turns make up for a longer prompt.
    """
    interval = measure.interval
    status: Status
    if limit is None:
        status, reason = "off", Sentence(f"{name}.off")
    elif interval.estimate is None or interval.low is None or interval.high is None:
        status = "open"
        if measure.constant and interval.estimate is not None:
            values = {"ratio": figure(interval.estimate), "tasks": interval.n, "limit": figure(limit)}
            reason = Sentence(f"{name}.constant", values)
        else:
            reason = Sentence(f"{name}.unknown", {"known": interval.n, "tasks": interval.n + measure.missing})
    else:
        status = "met" if interval.within(limit) else "broken" if interval.above(limit) else "open"
        reason = Sentence(
            f"{name}.{status}",
            {
                "ratio": figure(interval.estimate),
                "low": figure(interval.low),
                "high": figure(interval.high),
                "limit": figure(limit),
            },
        )
    return _line(name, measure, limit, status, reason, decisive)


def _irreversible(measure: Measure, limit: float | None, decisive: bool) -> Criterion:
    """Met: no more than the limit was seen. Broken: the interval lies wholly above it.

    Unlike a ratio it is met by its estimate: with a limit of 0 and no repeated
    step at all, no interval could ever lie wholly at or below 0. The reason
    states the bounds, so that few tasks cannot pass for proof of safety.
    """
    interval = measure.interval
    name = "repeated_irreversible"
    status: Status
    if limit is None:
        status, reason = "off", Sentence(f"{name}.off")
    elif interval.estimate is None or interval.low is None or interval.high is None:
        status, reason = "open", Sentence(f"{name}.unknown")
    else:
        status = "met" if interval.estimate <= limit + 1e-12 else "broken" if interval.above(limit) else "open"
        reason = Sentence(
            f"{name}.{status}",
            {
                "change": figure(interval.estimate, signed=True),
                "low": figure(interval.low, signed=True),
                "high": figure(interval.high, signed=True),
                "limit": figure(limit),
            },
        )
    return _line(name, measure, limit, status, reason, decisive)


def _line(
    name: str, measure: Measure, limit: float | None, status: Status, reason: Sentence, decisive: bool
) -> Criterion:
    interval = measure.interval
    return Criterion(
        criterion=name,
        decisive=decisive and limit is not None,
        value=interval.estimate,
        low=interval.low,
        high=interval.high,
        threshold=limit,
        status=status,
        reason=reason,
    )


def _gate(name: str, status: Status, key: str, **values: object) -> Criterion:
    return Criterion(
        criterion=name,
        decisive=False,
        value=None,
        low=None,
        high=None,
        threshold=None,
        status=status,
        reason=Sentence(f"{name}.{key}", dict(values)),
    )


def _complete(comparison: Comparison) -> Criterion:
    planned, stored = comparison.planned_trials, comparison.stored_trials
    if comparison.complete:
        return _gate("complete", "met", "met", planned=planned)
    return _gate("complete", "broken", "broken", stored=stored, planned=planned)


def _independent(comparison: Comparison, plan: Plan) -> Criterion:
    name = "independent_outcome"
    if comparison.mode == "next_step" or "next_step_quality" in comparison.provenance:
        return _gate(name, "broken", "next_step")
    if "subgoals" in comparison.provenance:
        return _gate(name, "broken", "subgoals")
    if "environment" not in comparison.provenance:
        return _gate(name, "broken", "unjudged")
    bounds = comparison.primary.bounds
    if bounds is not None and bounds.ungraded and bounds.ungraded_low < plan.thresholds.gain_worthwhile:
        return _gate(name, "broken", "ungraded", trials=bounds.ungraded, low=points(bounds.ungraded_low))
    return _gate(name, "met", "met")


def _known_tools(comparison: Comparison) -> Criterion:
    return _gate("known_tools", *(("met", "met") if comparison.tools_known else ("broken", "broken")))


def _fidelity(comparison: Comparison) -> Criterion:
    found = comparison.fidelity
    if found.finding == "not_applicable":
        return _gate("fidelity", "off", "off")
    if found.finding == "unknown":
        return _gate("fidelity", "open", "open")
    status: Status = "broken" if found.finding == "different" else "open"
    where = found.differs_in or found.unclear_in
    prefix = "" if found.differs_in else "unclear_"
    if "success" in where:
        return _gate(
            "fidelity",
            status,
            f"{prefix}success",
            replayed=figure(100 * (found.replayed_success or 0), 0),
            logged=figure(100 * (found.logged_success or 0), 0),
        )
    if "steps" in where:
        return _gate(
            "fidelity",
            status,
            f"{prefix}steps",
            replayed=figure(found.replayed_steps or 0, 1),
            logged=figure(found.logged_steps or 0, 1),
        )
    if "tools" in where:
        return _gate("fidelity", status, "tools", share=figure(100 * (found.tool_distance or 0), 0))
    return _gate("fidelity", "met", "met", tasks=found.tasks)


def _split(comparison: Comparison) -> Criterion:
    found = comparison.split
    if found.overlapping:
        return _gate("split_by_task", "broken", "broken", tasks=len(found.overlapping))
    if found.silent_sets:
        return _gate("split_by_task", "open", "open", sets=found.silent_sets)
    return _gate("split_by_task", "met", "met")
