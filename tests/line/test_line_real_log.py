"""A real airline-desk log (tau-bench, 200 runs) from import to report, through the shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poc.workspace import Workspace

Shell = Callable[..., tuple[int, dict[str, Any]]]

SETS = Path(__file__).resolve().parents[1] / "data" / "airline"


def test_a_real_log_goes_the_whole_line(tmp_path: Path, real_logs: Path, shell: Shell, simulated: str) -> None:
    log = real_logs / "openai_chat" / "taubench_gpt-4o-airline.json"
    at = ("--workspace", tmp_path / "airline.duckdb")

    code, done = shell("import", log, *at)
    assert code == 0
    assert {k: done[k] for k in ("read", "imported", "rejected", "skipped", "runs", "steps")} == {
        "read": 200, "imported": 200, "rejected": 0, "skipped": 0, "runs": 200, "steps": 1164,
    }  # fmt: skip
    workspace = Workspace.open(tmp_path / "airline.duckdb")
    assert workspace.value("SELECT count(*) FROM outcomes WHERE outcome = 1") == 84

    code, done = shell("import", log, *at)
    assert (code, done["imported"], done["skipped"]) == (0, 0, 200)
    assert workspace.value("SELECT count(*) FROM steps") == 1164

    code, done = shell("readiness", *at)
    assert (code, done["level"]) == (0, "PARTIAL")

    code, done = shell("subgoals", "check", SETS, *at)
    assert code == 0
    assert len(done["sets"]) >= 2
    assert shell("subgoals", "load", SETS, *at)[0] == 0

    code, done = shell("score", *at)
    assert code == 0
    assert done["score"]["scored"] + done["score"]["unassigned"] == 200

    code, done = shell(
        "replay", "plan", "--mode", "next_step", "--base-url", simulated, "--runs", "20",
        "--arms", "none,plan,progress", "--budget-tokens", "3000000", *at,
    )  # fmt: skip
    assert code == 0
    estimate = done["experiment"]["estimate"]
    planned_runs = {cut[0] for task in done["experiment"]["plan"]["tasks"] for cut in task["cuts"]}
    assert len(planned_runs) == 20
    assert estimate["usd"] is None  # the price of the simulated model is unknown, not zero
    assert done["preview"]["hosts"] == [simulated.removeprefix("http://").removesuffix("/v1")]

    code, done = shell("replay", "run", *at)
    assert (code, done["state"], done["done"], done["total"]) == (0, "finished", estimate["trials"], estimate["trials"])
    assert shell("replay", "resume", *at)[1]["requests"] == done["requests"]
    assert workspace.value("SELECT count(*) FROM requests") == done["requests"]
    assert workspace.value("SELECT sum(input_tokens + output_tokens) FROM requests") == done["tokens"]

    code, status = shell("replay", "status", *at)
    assert (code, status["state"], status["tokens"]) == (0, "finished", done["tokens"])

    code, verdict = shell("decide", *at)
    assert code == 5
    assert verdict["simulated"] is True
    assert verdict["verdict"] == "INCONCLUSIVE"  # next steps only, and tools that the simulated model does not know
    assert verdict["sentence"].startswith("simulated INCONCLUSIVE")
    again = shell("decide", *at)[1]
    assert again["verdict_hash"] == verdict["verdict_hash"]

    for language in ("en", "ja"):
        code, done = shell("report", "--output", tmp_path / f"{language}.html", "--language", language, *at)
        assert code == 0
        assert (tmp_path / f"{language}.html").stat().st_size == done["bytes"]


@pytest.mark.parametrize("name", ["taubench_single_run_airline.json", "invariant_sample_data.jsonl"])
def test_small_real_logs_can_be_judged(tmp_path: Path, real_logs: Path, shell: Shell, name: str) -> None:
    at = ("--workspace", tmp_path / "w.duckdb")
    assert shell("import", real_logs / "openai_chat" / name, *at)[0] == 0
    code, done = shell("readiness", *at)
    assert code in (0, 6)
    assert all(check["title"] for check in done["checks"])
