"""Every figure of a comparison, as one typed record that is stored with the verdict.

`Comparison` is what `compare` returns, what the verdict is judged on, and
what report and pages show. Shares are 0..1, differences are treated minus
control, durations are seconds of model time, costs US dollars. None means
that the stored trials do not tell. Computes nothing and knows no tables.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pandas as pd

from poc.stats import Interval

Outcome = Literal["success", "next_step_quality"]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of a contrast.

    `treated` and `control` are means over the tasks used: arithmetic for
    differences, geometric for ratios. `interval` holds the difference or the
    ratio; its `n` is the number of tasks used. `missing` counts paired tasks
    that could not be used because the value is unknown in either arm.
    `spread` is the standard deviation of the per-task differences (of log
    ratios for ratios): what the number of tasks is planned with.
    """

    name: str
    kind: Literal["difference", "ratio"]
    unit: Literal["share", "seconds", "tokens", "usd", "count"]
    treated: float | None
    control: float | None
    interval: Interval
    missing: int
    spread: float | None

    @property
    def constant(self) -> bool:
        """Whether several tasks gave one and the same ratio, so that nothing says how far it could move."""
        return self.kind == "ratio" and not self.missing and self.spread is not None and self.spread < 1e-9


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How far the outcome difference could move if trials nobody could judge had gone otherwise.

    `trials`: trials of either arm that failed to finish or got no judgement
    (all counted as failures); `low`: if they all had failed in the treated
    arm and succeeded in the control; `high`: the other way round.
    `ungraded` counts those that finished and got no judgement, and
    `ungraded_low` is the worst case for these alone.
    """

    trials: int
    low: float
    high: float
    ungraded: int
    ungraded_low: float


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms on the same tasks. `pairs` are (task, repeat) units with a trial in both arms, `unpaired` the rest."""

    treatment: str
    control: str
    tasks: int
    pairs: int
    unpaired: int
    better: int
    """Tasks with a higher outcome in the treated arm."""
    worse: int
    equal: int
    p_value: float | None
    """Of the outcome, by the sign-flip test over tasks."""
    p_adjusted: float | None
    """After Holm, among the secondary contrasts; None for the primary one."""
    test: str | None
    outcome: Measure
    latency: Measure
    first_token: Measure
    tokens: Measure
    cost: Measure
    turns: Measure
    steps: Measure
    errors: Measure
    repeated_steps: Measure
    repeated_irreversible: Measure
    bounds: Bounds | None
    """None without paired tasks."""

    def measures(self) -> tuple[Measure, ...]:
        """All measures in reading order."""
        return (
            self.outcome, self.latency, self.first_token, self.tokens, self.cost, self.turns,
            self.steps, self.errors, self.repeated_steps, self.repeated_irreversible,
        )  # fmt: skip


class ArmSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One arm by itself, over all its trials. Means are means of task means; totals are sums over trials."""

    arm: str
    tasks: int
    trials: int
    failed: int
    """Trials that did not finish; they count as failures."""
    ungraded: int
    """Trials that finished and got no judgement; they count as failures too."""
    outcome: Interval
    successes: float
    """Sum of the outcomes."""
    turns: float | None
    steps: float | None
    errors: float | None
    repeated_steps: float | None
    repeated_irreversible: float | None
    final_progress: float | None
    tokens: float | None
    """Mean of input plus output tokens per trial, over trials with known usage."""
    context_tokens: float | None
    """Mean of the added text per trial, an estimate."""
    cached_share: float | None
    """Cached part of all input tokens, 0..1."""
    missing_usage: int
    """Trials whose tokens are unknown."""
    latency_s: float | None
    first_token_s: float | None
    retries: int
    backoff_s: float
    cost_usd: float | None
    """Sum over trials; None when the cost of any trial is unknown."""
    cost_per_success: float | None
    """None when the cost is unknown or nothing succeeded."""


class TokenSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Where the change of tokens per trial comes from; the three parts sum to `total`. See `poc.verdict.tokens`."""

    tasks: int
    control: float
    """Mean tokens per trial of the control arm."""
    total: float
    """Change of the mean tokens per trial."""
    context: float
    """Text that the arm added (an estimate, counted locally)."""
    turns: float
    """More or fewer turns."""
    length: float
    """Longer or shorter turns, without the added text."""


class CategoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """The primary contrast within one category; exploratory, not corrected."""

    category: str
    tasks: int
    treated: float | None
    control: float | None
    outcome: Interval
    latency: Interval
    tokens: Interval


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the control arm behaves like the logged agent on the same tasks. See `poc.verdict.fidelity`."""

    finding: Literal["alike", "different", "unknown", "not_applicable"]
    """`alike` means that no large difference was shown."""
    differs_in: tuple[str, ...]
    """Where a large difference was shown: among success, steps, tools."""
    unclear_in: tuple[str, ...]
    """Where the difference is large but could be chance: among success, steps."""
    tasks: int
    """Tasks of the plan with a logged run."""
    logged_runs: int
    logged_success: float | None
    replayed_success: float | None
    success: Interval
    """Replayed minus logged."""
    logged_steps: float | None
    replayed_steps: float | None
    steps: Interval
    """Replayed minus logged, per run."""
    tool_distance: float | None
    """Total variation distance of the tool mixes: 0 the same shares, 1 no tool in common."""
    logged_tools: dict[str, float]
    replayed_tools: dict[str, float]


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Whether subgoals were made from other tasks than those replayed."""

    overlapping: tuple[str, ...]
    """Keys of planned tasks that went into their own subgoal set."""
    silent_sets: int
    """Sets in the plan that do not say which tasks they were made from."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of one experiment, from its stored trials alone."""

    experiment_id: str
    plan_hash: str
    mode: Literal["closed_loop", "next_step"]
    simulated: bool
    models: tuple[str, ...]
    """As the server reported them."""
    outcome: Outcome
    provenance: tuple[str, ...]
    """Who judged the trials that finished: environment, next_step_quality, subgoals."""
    confidence: float
    repeats: int
    planned_tasks: int
    planned_trials: int
    stored_trials: int
    foreign_trials: int
    """Stored under this experiment without being in its plan; left out."""
    primary: Contrast
    secondary: tuple[Contrast, ...]
    arms: tuple[ArmSummary, ...]
    tokens: TokenSplit | None
    """None when usage is known for no pair."""
    categories: tuple[CategoryRow, ...]
    fidelity: Fidelity
    split: Split
    expected_flips: float | None
    """Share of tasks in which two trials of the control arm would end differently by chance alone (an A/A run)."""
    detectable: float | None
    """Smallest true difference of the outcome that these tasks show with 80 % power, by the spread seen."""
    tools_known: bool
    """False when the simulated model had to answer for tools that it does not know."""

    @property
    def complete(self) -> bool:
        """Whether every planned trial is stored."""
        return self.stored_trials == self.planned_trials

    def contrasts_frame(self) -> pd.DataFrame:
        """One row a measure of a contrast: treatment, control, primary, measure, kind, unit, treated_value,
        control_value, value, low, high, tasks, missing, p_value, p_adjusted, method.
        """
        rows: list[dict[str, Any]] = []
        for contrast in (self.primary, *self.secondary):
            for measure in contrast.measures():
                is_outcome = measure is contrast.outcome
                rows.append(
                    {
                        "treatment": contrast.treatment,
                        "control": contrast.control,
                        "primary": contrast is self.primary,
                        "measure": measure.name,
                        "kind": measure.kind,
                        "unit": measure.unit,
                        "treated_value": measure.treated,
                        "control_value": measure.control,
                        "value": measure.interval.estimate,
                        "low": measure.interval.low,
                        "high": measure.interval.high,
                        "tasks": measure.interval.n,
                        "missing": measure.missing,
                        "p_value": contrast.p_value if is_outcome else None,
                        "p_adjusted": contrast.p_adjusted if is_outcome else None,
                        "method": measure.interval.method,
                    }
                )
        return pd.DataFrame(rows)

    def arms_frame(self) -> pd.DataFrame:
        """One row an arm: arm, success (0..1), low, high, and the other fields of `ArmSummary`."""
        rows: list[dict[str, Any]] = []
        for summary in self.arms:
            fields = {name: getattr(summary, name) for name in summary.__struct_fields__}
            share: Interval = fields.pop("outcome")
            rows.append(
                {"arm": fields.pop("arm"), "success": share.estimate, "low": share.low, "high": share.high, **fields}
            )
        return pd.DataFrame(rows)

    def categories_frame(self) -> pd.DataFrame:
        """One row a category: category, tasks, treated, control, difference, low, high, latency_ratio, tokens_ratio."""
        return pd.DataFrame(
            [
                {
                    "category": row.category,
                    "tasks": row.tasks,
                    "treated": row.treated,
                    "control": row.control,
                    "difference": row.outcome.estimate,
                    "low": row.outcome.low,
                    "high": row.outcome.high,
                    "latency_ratio": row.latency.estimate,
                    "tokens_ratio": row.tokens.estimate,
                }
                for row in self.categories
            ],
            columns=[
                "category", "tasks", "treated", "control", "difference", "low", "high", "latency_ratio", "tokens_ratio",
            ],
        )  # fmt: skip
