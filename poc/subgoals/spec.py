"""Subgoal sets as people write them: one YAML file holds the set of one category.

Example::

    category: refund
    title: Refund an order
    runs:                        # which runs belong; every rule that is given must hold
      task_text: "(?i)refund"
    made_from:                   # tasks looked at while writing; a replay leaves them out
      tasks: ["12", "13"]
    subgoals:
      - id: order_found
        title: Find the customer's order
        done_when:
          tool: get_order*
          result: {"$.status": {equals: delivered}}
      - id: refunded
        title: Refund the order
        weight: 2
        after: [order_found]     # counts only at a step after that one
        done_when:
          tool: refund_order
          arguments: {"$.amount": {gt: 0}}
        undone_when: {tool: cancel_refund}

`runs` judges the task, so that a replay knows the set before its first step:
`category` and `task_key` (globs on the log's own), `task_text` and `scenario`
(RE2; what the user asked, and the instructions of a simulated user). `tool`
(globs; some step of the agent called it) judges the run instead and is weaker:
of two runs of one task one may belong and the other not, and which one can
depend on how well it went. ``runs: all`` claims every run. Without `runs`,
those whose category fits this set's belong.

What conditions mean is in `predicate.py`, operators in `operators.py`, paths
in `paths.py`. A set is identified by the hash of its content; comments,
spacing and key order do not change it. Knows no table and no run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from poc.errors import PocError, did_you_mean
from poc.subgoals.operators import check_operators
from poc.subgoals.paths import parse_path
from poc.subgoals.patterns import regex
from poc.subgoals.problems import explained, located
from poc.subgoals.source import SpecError, parse_yaml
from poc.trajectory import Status

MOST_SUBGOALS = 60
"""More would neither fit a prompt nor a 64-bit mask."""


def _listed(value: Any) -> Any:
    """One item as a list of one, so that both spellings are welcome."""
    return value if isinstance(value, (list, tuple)) else [value]


def _names(value: Any) -> Any:
    """Task keys and the like are texts, also when YAML reads them as whole numbers."""
    return [str(item) if type(item) is int else item for item in _listed(value)]


Globs = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_names), Field(min_length=1)]
Names = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_names)]
Statuses = Annotated[tuple[Status, ...], BeforeValidator(_listed), Field(min_length=1)]
Title = Annotated[str, Field(min_length=1, max_length=200)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StepCondition(_Strict):
    """What one step must be like. At least one of tool, arguments and result is given."""

    tool: Globs | None = None
    status: Statuses = ("ok",)
    arguments: dict[str, dict[str, Any]] = Field(default_factory=dict)
    result: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("arguments", "result")
    @classmethod
    def _paths(cls, tests: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for path, checks in tests.items():
            try:
                parse_path(path)
                check_operators(checks)
            except PocError as error:
                raise located(error, path) from error
        return tests

    @model_validator(mode="after")
    def _says_something(self) -> StepCondition:
        if self.tool is None and not self.arguments and not self.result:
            raise ValueError("a condition needs at least one of: tool, arguments, result")
        return self


class Subgoal(_Strict):
    """A checkable condition on the steps so far, with a title that the model may see."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")
    title: Title
    weight: float = Field(default=1.0, gt=0, le=1e6, strict=True)
    required: bool = Field(default=True, strict=True)
    after: Names = ()
    done_when: StepCondition
    undone_when: StepCondition | None = None


def in_order(subgoals: Sequence[Subgoal]) -> list[list[int]]:
    """Positions of the subgoals in layers: each comes after earlier layers only. Refuses circles (`ValueError`)."""
    layers: list[list[int]] = []
    placed: set[str] = set()
    waiting = list(range(len(subgoals)))
    while waiting:
        layer = [index for index in waiting if set(subgoals[index].after) <= placed]
        if not layer:
            circle = ", ".join(f"'{subgoals[index].id}'" for index in waiting)
            raise ValueError(f"these subgoals wait for each other and could never be done: {circle}")
        layers.append(layer)
        placed.update(subgoals[index].id for index in layer)
        waiting = [index for index in waiting if index not in layer]
    return layers


class RunRule(_Strict):
    """Which runs belong to a set: every rule that is given must hold; all None means every run."""

    category: Globs | None = None
    task_key: Globs | None = None
    task_text: str | None = None
    scenario: str | None = None
    tool: Globs | None = None

    @field_validator("task_text", "scenario")
    @classmethod
    def _readable(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                regex(pattern)
            except PocError as error:
                raise located(error) from error
        return pattern

    @property
    def judges_task(self) -> bool:
        """Whether the rule depends on the task alone, not on what the run did."""
        return self.tool is None


class MadeFrom(_Strict):
    """Tasks that were looked at while the set was written or mined; they may not be replayed with it."""

    tasks: Names = ()
    reference_calls_of: Names = ()
    """Tasks whose own reference solution went into the subgoals."""

    @property
    def all_tasks(self) -> frozenset[str]:
        """Both together: the task keys that a replay leaves out."""
        return frozenset(self.tasks) | frozenset(self.reference_calls_of)


class SubgoalSet(_Strict):
    """The subgoals of one category."""

    category: str = Field(min_length=1, max_length=100)
    title: Title | None = None
    runs: RunRule
    made_from: MadeFrom = MadeFrom()
    subgoals: tuple[Subgoal, ...]

    _source_text: str | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _default_rule(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        rule = data.get("runs")
        if rule == "all":
            return {**data, "runs": {}}
        if "runs" not in data and isinstance(data.get("category"), str):
            return {**data, "runs": {"category": [data["category"]]}}
        return data

    @field_validator("subgoals")
    @classmethod
    def _consistent(cls, subgoals: tuple[Subgoal, ...]) -> tuple[Subgoal, ...]:
        if not 1 <= len(subgoals) <= MOST_SUBGOALS:
            raise ValueError(f"a set has 1 to {MOST_SUBGOALS} subgoals, not {len(subgoals)}")
        if not any(subgoal.required for subgoal in subgoals):
            raise ValueError("no subgoal is required, so the task would be done before it starts")
        ids = [subgoal.id for subgoal in subgoals]
        for index, subgoal in enumerate(subgoals):
            if subgoal.id in ids[:index]:
                raise located(SpecError(f"Two subgoals have the id '{subgoal.id}'.", todo="Rename one."), index, "id")
            for other in subgoal.after:
                if other not in ids:
                    what = f"There is no subgoal '{other}' to come after.{did_you_mean(other, ids)}"
                    raise located(SpecError(what), index, "after")
        _ = in_order(subgoals)
        return subgoals

    @property
    def canonical(self) -> str:
        """The content as JSON, the same text for the same set."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @property
    def hash(self) -> str:
        """SHA-256 of `canonical`, in hex."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @property
    def source_text(self) -> str | None:
        """The YAML as written, comments included; None for a set made in code."""
        return self._source_text

    @property
    def total_weight(self) -> float:
        """The weights added in order (not by `sum`, which rounds differently from SQL)."""
        total = 0.0
        for subgoal in self.subgoals:
            total += subgoal.weight
        return total


_KEYS = {
    "": tuple(SubgoalSet.model_fields),
    "runs": tuple(RunRule.model_fields),
    "made_from": tuple(MadeFrom.model_fields),
    "subgoals": tuple(Subgoal.model_fields),
    "done_when": tuple(StepCondition.model_fields),
    "undone_when": tuple(StepCondition.model_fields),
}


def parse_set(text: str, where: str = "subgoals.yaml") -> SubgoalSet:
    """One set from YAML text. Raises `SpecError` with file, line and field."""
    source = parse_yaml(text, where)
    if not isinstance(source.data, dict):
        raise source.error(
            "A subgoal set is a mapping with the keys category and subgoals.", (), "Start with: category: my_category"
        )
    if source.data.get("runs", "all") in ({}, None):
        raise source.error("'runs' says nothing.", ("runs",), "Give at least one rule, or write: runs: all")
    try:
        found = SubgoalSet.model_validate(source.data)
    except ValidationError as error:
        raise explained(error, source, _KEYS) from error
    found._source_text = text
    return found


def load_sets(path: str | Path) -> list[SubgoalSet]:
    """The set of a YAML file, or those of all ``*.yaml`` and ``*.yml`` files in a folder, by file name.

    Raises `SpecError` for the first file that cannot be used, or when two
    files hold the same category.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in (".yaml", ".yml") and file.is_file())
        if not files:
            raise SpecError("There is no .yaml file in this folder.", where=str(path), todo="Name a folder with sets.")
    sets: dict[str, tuple[SubgoalSet, Path]] = {}
    for file in files:
        found = parse_set(_text(file), str(file))
        if found.category in sets:
            raise SpecError(
                f"The category '{found.category}' has two sets.",
                where=f"{sets[found.category][1]} and {file}",
                todo="Merge them, or rename one category.",
            )
        sets[found.category] = (found, file)
    return [found for found, _ in sets.values()]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SpecError("There is no such file.", where=str(file), todo="Check the path.") from error
    except OSError as error:
        raise SpecError(f"The file cannot be read: {error.strerror}.", where=str(file)) from error
    except UnicodeDecodeError as error:
        raise SpecError(
            f"The file is not UTF-8 text (byte {error.start + 1}).", where=str(file), todo="Save it as UTF-8."
        ) from error
