"""A small experiment written into the tables by hand, and a reader of the report's HTML."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa

from poc.models.settings import ModelSettings
from poc.replay.experiment import EnvironmentSettings, Plan, PlannedTask, Readiness, TrialKey
from poc.workspace import Workspace

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SUCCESS = {  # task -> successes of the two repeats in none, plan, progress
    "t0": ((0, 1), (1, 1), (1, 1)),
    "t1": ((0, 0), (0, 0), (1, 0)),
    "t2": ((1, 1), (1, 1), (1, 1)),
    "t3": ((0, 0), (0, 1), (0, 0)),
}
ARMS = ("none", "plan", "progress")
Change = Callable[[TrialKey, dict[str, Any]], dict[str, Any] | None]


class Bench:
    """One workspace with a log of eight runs, one subgoal set and one experiment `x1`."""

    def __init__(self, path: Path) -> None:
        self.workspace = Workspace.open(path)
        self.plan: Plan

    def build(
        self,
        *,
        simulated: bool | None = False,
        change: Change | None = None,
        category: str = "orders",
        titles: tuple[str, ...] = ("Order found", "Refund paid"),
        tool: str = "refund",
        name: str = "by hand",
        log: bool = True,
        **options: Any,
    ) -> Bench:
        """Write everything. `change` gives a trial's row, changed; None leaves the trial out."""
        settings: dict[str, Any] = {
            "name": name,
            "mode": "closed_loop",
            "tasks": tuple(
                PlannedTask(task_id=task, task_key=task, category=category, set_hash="s" * 64, text="Please help.")
                for task in SUCCESS
            ),
            "arms": ARMS,
            "repeats": 2,
            "seed": 7,
            "model": ModelSettings(name="model-asked", base_url="http://localhost:1/v1"),
            "environment": EnvironmentSettings(kind="python", target="world:World"),
            "readiness": Readiness(level="PARTIAL"),
            **options,
        }
        self.plan = Plan(**settings)
        spec = {
            "category": category,
            "made_from": {"tasks": ["another"]},
            "subgoals": [
                {"id": f"g{place}", "title": title, "weight": 1.0 + place, "required": place > 0}
                for place, title in enumerate(titles)
            ],
        }
        estimate = {
            "trials": 24, "requests": 50, "input_tokens": 4321, "output_tokens": 321, "context_tokens": 99, "usd": 0.5,
            "seconds": 60.0, "worst_tokens": 99999, "hosts": ["host.example"], "encoding": "o200k_base",
        }  # fmt: skip
        with self.workspace.write() as db:
            db.execute(
                "INSERT INTO experiments VALUES ('x1', ?, ?, ?, ?, ?, ?, 'finished', ?, ?)",
                [
                    self.plan.name, self.plan.canonical, self.plan.hash, self.plan.mode, NOW,
                    json.dumps(estimate), simulated, NOW,
                ],
            )  # fmt: skip
            db.execute(
                "INSERT INTO subgoal_sets VALUES (?, ?, ?, NULL, true, ?)", ["s" * 64, category, json.dumps(spec), NOW]
            )
        if log:
            self._log(category, tool)
        self._trials(change or (lambda key, row: row), tool)
        return self

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Rows given as dictionaries of the same keys."""
        if not rows:
            return
        found = pa.Table.from_pylist(rows)
        with self.workspace.write() as db:
            db.register("hand_made", found)
            db.execute(f"INSERT INTO {table} BY NAME SELECT * FROM hand_made")
            db.unregister("hand_made")

    def _log(self, category: str, tool: str) -> None:
        """Two logged runs a task: the first succeeds with full progress, the second fails at a third of it."""
        runs, steps, progress, claims = [], [], [], []
        for task in SUCCESS:
            for place, (outcome, high) in enumerate(((1.0, 1.0), (0.0, 1 / 3))):
                run = f"{task}-{place}"
                runs.append(
                    {"run_id": run, "source_id": "f", "place": str(place), "task_id": task, "category": category}
                    | {"outcome": outcome, "outcome_provenance": "log"}
                )
                claims.append({"run_id": run, "set_hash": "s" * 64})
                for step in range(2):
                    steps.append(
                        {"run_id": run, "step": step, "turn": step, "ordinal": 0, "tool": tool, "caller": "agent"}
                        | {"arguments_status": "parsed", "status": "ok", "status_evidence": "result"}
                    )
                progress.append(
                    {"run_id": run, "set_hash": "s" * 64, "step": 0, "current": high, "high_water": high, "gain": high}
                )
        self.insert("runs", runs)
        self.insert("assignments", claims)
        self.insert("steps", steps)
        self.insert("progress", progress)

    def _trials(self, change: Change, tool: str) -> None:
        rows, requests, steps, judgements = [], [], [], []
        for key in self.plan.trials():
            arm, more = ARMS.index(key.arm), key.arm == "progress"
            row = change(
                key,
                {
                    "trial_id": key.trial_id, "experiment_id": "x1", "task_id": key.task.task_id,
                    "category": key.task.category, "arm": key.arm, "repeat": key.repeat,
                    "cut_run_id": key.cut[0] if key.cut else None, "cut_turn": key.cut[1] if key.cut else None,
                    "position": key.position, "attempt": 1, "status": "finished", "stop_reason": "answered",
                    "success": float(SUCCESS[key.task.task_id][arm][key.repeat]), "success_provenance": "environment",
                    "final_progress": 1.0 if more else 0.5, "turns": 2, "steps": 2, "errors": 0, "repeated_steps": 0,
                    "repeated_irreversible": int(more and key.task.task_id == "t3"),
                    "input_tokens": 1300 if more else 1200, "output_tokens": 34, "cached_tokens": 120,
                    "reasoning_tokens": 4, "context_tokens": 90 if more else 0, "cost_usd": 0.02 if more else 0.016,
                    "model_latency_s": 2.2 if more else 2.0, "first_token_s": 0.5,
                    "started_at": NOW + timedelta(seconds=key.position),
                    "ended_at": NOW + timedelta(seconds=key.position + 3),
                },
            )  # fmt: skip
            if row is None:
                continue
            rows.append(row)
            requests.append(
                {
                    "request_id": key.trial_id, "trial_id": key.trial_id, "turn": 0, "model": "model-reported",
                    "http_status": 200, "retries": int(key.position == 0), "backoff_s": 1.5 * (key.position == 0),
                    "first_token_s": 0.5, "total_s": row["model_latency_s"], "input_tokens": row["input_tokens"],
                    "output_tokens": row["output_tokens"], "cached_tokens": row["cached_tokens"],
                    "reasoning_tokens": row["reasoning_tokens"], "context_tokens": row["context_tokens"],
                    "cost_usd": row["cost_usd"], "sent_at": NOW + timedelta(seconds=key.position),
                }
            )  # fmt: skip
            for step in range(2):
                steps.append(
                    {"trial_id": key.trial_id, "step": step, "turn": step, "ordinal": 0, "tool": tool, "status": "ok"}
                    | {"progress": (step + 1) / 2 if more else step / 2}
                )
            if self.plan.mode == "next_step":
                judgements.append({"trial_id": key.trial_id, "judge": "advances", "value": bool(row["success"])})
        self.insert("trials", rows)
        self.insert("requests", requests)
        self.insert("replay_steps", steps)
        self.insert("judgements", judgements)


class Page(HTMLParser):
    """A report, read strictly: every tag is closed in order; remembers what tests ask for."""

    VOID = frozenset({"meta", "br", "img", "link", "hr", "input"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.numbers: list[tuple[str, str, str]] = []
        """(source, stored value, text) of every number."""
        self.rows: list[list[str]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.styles = ""
        self.headings: list[tuple[int, str]] = []
        self._text: list[str] = []
        self.feed(html)
        self.close()
        assert self.stack == [], f"not closed: {self.stack}"

    @property
    def text(self) -> str:
        """What a reader sees."""
        return " ".join("".join(self._text).split())

    def row(self, first: str) -> list[str]:
        """The cells of the table row that begins with this cell."""
        return next(row for row in self.rows if row[0] == first)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.tags.append((tag, known))
        if tag in self.VOID:
            return
        self.stack.append(tag)
        if tag in ("script",):
            self.scripts.append((known, ""))
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag in ("h1", "h2", "h3", "h4"):
            self.headings.append((int(tag[1]), ""))
        if "data-source" in known:
            self.numbers.append((known["data-source"], known["data-value"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack[-1] == tag, f"</{tag}> closes <{self.stack[-1]}>"
        self.stack.pop()
        self._text.append(" ")

    def handle_data(self, data: str) -> None:
        inside = self.stack[-1] if self.stack else ""
        if inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
            return
        if inside == "style":
            self.styles += data
            return
        self._text.append(data)
        if "td" in self.stack or "th" in self.stack:
            self.rows[-1][-1] += data
        if self.headings and self.stack and self.stack[-1] in ("h1", "h2", "h3", "h4"):
            level, said = self.headings[-1]
            self.headings[-1] = (level, said + data)
        if inside == "span" and self.numbers and self.numbers[-1][2] == "":
            self.numbers[-1] = (*self.numbers[-1][:2], data)
