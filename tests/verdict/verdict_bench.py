"""A workbench for verdicts: an experiment whose trials are written into the tables by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from poc.models.settings import ModelSettings
from poc.replay.experiment import EnvironmentSettings, Plan, PlannedTask, Readiness, Thresholds, TrialKey
from poc.workspace import Workspace

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SUCCESS_ONLY = Thresholds(latency_ratio_max=None, tokens_ratio_max=None, repeated_irreversible_rise_max=None)


class Bench:
    """Plans and hand-written trials in one workspace."""

    def __init__(self, path: Path) -> None:
        self.workspace = Workspace.open(path)
        self.plan: Plan
        self.experiment_id = "x1"

    def design(
        self, count: int = 4, *, simulated: bool | None = False, made_from: str = '["other"]', **options: Any
    ) -> Plan:
        """Store a plan of `count` tasks t0, t1, ... with one subgoal set that names its sources."""
        settings: dict[str, Any] = {
            "mode": "closed_loop",
            "tasks": tuple(
                PlannedTask(task_id=f"t{i}", task_key=f"k{i}", category="even" if i % 2 == 0 else "odd", set_hash="s")
                for i in range(count)
            ),
            "arms": ("none", "progress"),
            "model": ModelSettings(name="m"),
            "environment": EnvironmentSettings(kind="python", target="world.py:World"),
            "readiness": Readiness(level="READY"),
            **options,
        }
        self.plan = Plan(**settings)
        with self.workspace.write() as db:
            db.execute(
                "INSERT INTO experiments VALUES (?, 'hand-made', ?, ?, ?, ?, NULL, 'finished', ?, NULL)",
                [self.experiment_id, self.plan.canonical, self.plan.hash, self.plan.mode, NOW, simulated],
            )
            db.execute(
                "INSERT INTO subgoal_sets VALUES ('s', 'even', ?, NULL, true, ?)",
                [f'{{"made_from": {{"tasks": {made_from}}}}}', NOW],
            )
        return self.plan

    def fill(self, make: Callable[[TrialKey], dict[str, Any] | None]) -> None:
        """One row of `trials` (and one request) per planned trial; `make` gives what differs from the defaults.

        None leaves the trial out. `latency` sets the seconds of its only
        request (None: no request is stored), `tokens` its input tokens.
        """
        rows, calls = [], []
        for key in self.plan.trials():
            given = make(key)
            if given is None:
                continue
            latency = given.pop("latency", 1.0)
            tokens = given.pop("tokens", 90)
            row = {
                "trial_id": key.trial_id,
                "experiment_id": self.experiment_id,
                "task_id": key.task.task_id,
                "category": key.task.category,
                "arm": key.arm,
                "repeat": key.repeat,
                "cut_run_id": key.cut[0] if key.cut else None,
                "cut_turn": key.cut[1] if key.cut else None,
                "position": key.position,
                "attempt": 1,
                "status": "finished",
                "stop_reason": "answered",
                "success": 0.0,
                "success_provenance": "environment",
                "turns": 2,
                "steps": 2,
                "errors": 0,
                "repeated_steps": 0,
                "repeated_irreversible": 0,
                "input_tokens": tokens,
                "output_tokens": None if tokens is None else 10,
                "context_tokens": 0,
                **given,
            }
            rows.append(row)
            if latency is not None:
                calls.append(
                    {
                        "request_id": f"r{key.trial_id}",
                        "trial_id": key.trial_id,
                        "turn": 0,
                        "model": "m-1",
                        "http_status": 200,
                        "retries": 0,
                        "backoff_s": 0.0,
                        "first_token_s": latency / 2,
                        "total_s": latency,
                        "context_tokens": 0,
                        "sent_at": NOW,
                    }
                )
        self.insert("trials", rows)
        self.insert("requests", calls)

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Insert rows given as dictionaries of the same keys."""
        table_of_rows = pa.Table.from_pylist(rows)
        with self.workspace.write() as db:
            db.register("hand_made", table_of_rows)
            db.execute(f"INSERT INTO {table} BY NAME SELECT * FROM hand_made")
            db.unregister("hand_made")
