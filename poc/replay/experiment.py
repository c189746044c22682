"""A frozen design: tasks x arms x repeats, model, environment, thresholds.

A `Plan` is fixed and hashed before the first call; the same plan and seed
give the same trials in the same order on any machine. Knows no results.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from poc.context.place import Placement
from poc.models.settings import ModelSettings

Mode = Literal["closed_loop", "next_step"]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvironmentSettings(_Frozen):
    """What answers tool calls. `python`: ``module:Class`` or ``file.py:Class``; None in next-step mode."""

    kind: Literal["python", "none"] = "none"
    target: str | None = None


class ContextSettings(_Frozen):
    """How an arm's text is put into a request; alike in all arms."""

    placement: Placement = "tail"
    language: Literal["en", "ja"] = "en"
    token_budget: int = Field(default=400, gt=0)


class Limits(_Frozen):
    """Where a trial ends by force. Reaching one is a failure, not an exclusion."""

    max_turns: int = Field(default=30, gt=0)
    max_steps: int = Field(default=40, gt=0)
    trial_timeout_s: float = Field(default=600.0, gt=0)


class BudgetLimits(_Frozen):
    """Hard limits of the whole experiment. An unknown price demands `tokens`."""

    usd: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0)


class Thresholds(_Frozen):
    """What GO means, fixed before the first call. None switches a criterion off."""

    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    gain_above: float = 0.0
    """The interval of the success difference must lie wholly above this."""
    gain_worthwhile: float = 0.05
    """The estimate must reach this; an interval wholly below it is NO-GO."""
    latency_ratio_max: float | None = 1.10
    tokens_ratio_max: float | None = 1.15
    repeated_irreversible_rise_max: float | None = 0.0
    """Rise of repeated irreversible steps per trial that is still accepted."""


class PlannedTask(_Frozen):
    """A task in the plan. In next-step mode `cuts` names the logged turns to predict, per run."""

    task_id: str
    task_key: str | None = None
    category: str
    set_hash: str
    text: str | None = None
    cuts: tuple[tuple[str, int], ...] = ()


class Sampling(_Frozen):
    """How the tasks were chosen: facts only, so that they can be said in any language."""

    how: Literal["all", "random", "named"] = "all"
    frame: int | None = None
    """How many tasks could have been chosen."""
    categories: tuple[str, ...] = ()
    """The categories asked for; none: all with a subgoal set."""
    made_from: int = 0
    """Tasks left out because subgoals were made from them."""
    textless: int = 0
    """Tasks left out because their text is not in the log."""
    runs: int | None = None
    """Next-step: how many logged runs, of `runs_frame`, with at most `cuts_per_run` random turns each."""
    runs_frame: int | None = None
    cuts_per_run: int | None = None


class Readiness(_Frozen):
    """The level of the logs when the plan was made, and why it was overridden where it was."""

    level: Literal["READY", "PARTIAL", "NOT READY"]
    override_reason: str | None = None


class Plan(_Frozen):
    """Everything that decides what will be called and how it will be judged."""

    name: str = "experiment"
    mode: Mode
    tasks: tuple[PlannedTask, ...]
    sampling: Sampling = Sampling()
    arms: tuple[str, ...] = ("none", "plan", "progress")
    primary: tuple[str, str] = ("progress", "none")
    """Treatment and control of the one primary contrast."""
    repeats: int = Field(default=1, gt=0)
    seed: int = 0
    model: ModelSettings
    environment: EnvironmentSettings = EnvironmentSettings()
    context: ContextSettings = ContextSettings()
    limits: Limits = Limits()
    budget: BudgetLimits = BudgetLimits()
    thresholds: Thresholds = Thresholds()
    concurrency: int = Field(default=8, gt=0, le=256)
    redact: bool = True
    readiness: Readiness

    @model_validator(mode="after")
    def _consistent(self) -> Plan:
        for arm in self.primary:
            if arm not in self.arms:
                raise ValueError(f"the primary contrast names arm '{arm}', which is not among the arms {self.arms}")
        if self.primary[0] == self.primary[1]:
            raise ValueError("the primary contrast compares an arm with itself")
        if len(set(self.arms)) != len(self.arms):
            raise ValueError("an arm is named twice")
        if self.mode == "closed_loop" and self.environment.kind == "none":
            raise ValueError("a closed-loop replay needs an environment")
        if not self.tasks:
            raise ValueError("the plan holds no task")
        return self

    @property
    def canonical(self) -> str:
        """The plan as JSON, the same text for the same plan."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def hash(self) -> str:
        """SHA-256 of `canonical`, in hex."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def trials(self) -> list[TrialKey]:
        """All trials in the order in which they start: tasks shuffled, arms shuffled within task and repeat.

        Seeds are a pure function of the plan's seed and the trial, so any
        machine makes the same list. The environment's seed is the same in all
        arms; the model's seed differs, since draws must be independent.
        """
        order = random.Random(f"{self.seed}:order")
        blocks: list[tuple[PlannedTask, int, tuple[str, int] | None]] = []
        for repeat in range(self.repeats):
            for task in self.tasks:
                cuts: tuple[tuple[str, int] | None, ...] = task.cuts if self.mode == "next_step" else (None,)
                blocks.extend((task, repeat, cut) for cut in cuts)
        order.shuffle(blocks)
        keys: list[TrialKey] = []
        plan_hash = self.hash  # once: it spells out the whole plan
        for task, repeat, cut in blocks:
            arms = list(self.arms)
            order.shuffle(arms)
            for arm in arms:
                unit = f"{task.task_id}:{repeat}:{cut}"
                keys.append(
                    TrialKey(
                        trial_id=_digest(f"{plan_hash}:{unit}:{arm}"),
                        task=task,
                        arm=arm,
                        repeat=repeat,
                        cut=cut,
                        position=len(keys),
                        world_seed=_seed(f"{self.seed}:world:{unit}"),
                        model_seed=_seed(f"{self.seed}:model:{unit}:{arm}"),
                    )
                )
        return keys


class TrialKey(msgspec.Struct, frozen=True):
    """One trial of a plan. `cut` is (run_id, turn) in next-step mode."""

    trial_id: str
    task: PlannedTask
    arm: str
    repeat: int
    cut: tuple[str, int] | None
    position: int
    world_seed: int
    model_seed: int

    @property
    def nonce(self) -> str:
        """Eight hex digits for the head of the first message, so that arms never warm each other's prompt cache."""
        return self.trial_id[:8]


class Estimate(BaseModel):
    """What a plan will need, before anything is spent. Token figures are estimates (tiktoken)."""

    trials: int
    requests: int
    """Expected number of model calls."""
    input_tokens: int
    output_tokens: int
    context_tokens: int
    usd: float | None = None
    """None when the price is unknown."""
    seconds: float | None = None
    seconds_basis: str | None = None
    worst_tokens: int
    worst_usd: float | None = None
    hosts: tuple[str, ...]
    encoding: str
    detectable: float | None = None
    """Smallest success difference that this many tasks can show with 80 % power."""
    notes: tuple[dict[str, Any], ...] = ()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") & 0x7FFFFFFF
