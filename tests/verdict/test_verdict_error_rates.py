"""A small, fast version of the benchmark of error rates, on the benchmark's own code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from poc.stats import clopper_pearson

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "verdict_error_rates.py"


@pytest.fixture(scope="module")
def rates() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verdict_error_rates", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_false_go_stays_below_its_level_and_intervals_cover(rates: ModuleType) -> None:
    rows = list(rates.success_rows(400, [(30, 1), (100, 3)], seed=7))
    assert len(rows) == 6
    for row in rows:
        for name in ("same", "mixed"):
            # Nominal 2.5 %; with 400 draws an upper bound beyond 5 % would mean a real excess.
            assert row[f"go {name} upper"] <= 0.05, row
            assert row[f"cover {name}"] >= 0.92, row
        assert row["cover +10"] >= 0.91, row
    well_sized = [row for row in rows if row["base"] == 0.5 and row["tasks"] == 100]
    assert well_sized[0]["go +20"] >= 0.95


def test_whole_decision_agrees_with_the_criterion_and_finds_a_large_effect(rates: ModuleType) -> None:
    rng = np.random.default_rng(11)
    none = [rates.full_verdict(rng, 40, 1, rates.rates(rng, 40, 0.5, 0.4, 0.0, False)) for _ in range(60)]
    large = [rates.full_verdict(rng, 40, 1, rates.rates(rng, 40, 0.5, 0.4, 0.35, False)) for _ in range(30)]
    assert all((verdict == "GO") == go for verdict, go in none + large)
    false = clopper_pearson(sum(verdict == "GO" for verdict, _ in none), 60)
    assert (false.low or 0) <= 0.025
    assert sum(verdict == "GO" for verdict, _ in large) >= 24


def test_other_intervals_cover(rates: ModuleType) -> None:
    row = next(iter(rates.other_rows(300, seed=5)))
    assert row["ratio 1.08"] >= 0.91
    assert row["auroc 0.76"] >= 0.90
    assert row["auroc 0.5"] >= 0.90
