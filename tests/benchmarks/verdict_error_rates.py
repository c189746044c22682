"""How often the verdict errs: false GO, power and coverage, by simulation.

Run from the top of the repository::

    python tests/benchmarks/verdict_error_rates.py                 # about three minutes, prints the tables
    python tests/benchmarks/verdict_error_rates.py --draws 500     # a quick look

Each simulated experiment has tasks with success rates of their own (a beta
distribution with a given mean and consistency, the intraclass correlation),
and yes/no trials at those rates in both arms, so the arms are correlated
through the task. Scenarios at zero effect: `same` (every task keeps its rate),
`mixed` (a third of the tasks draws a new rate from the same distribution: the
effect differs between tasks and is 0 on average). With an effect, each task's
failures are turned into successes with one chance, so the mean effect is
exact. Thresholds other than success are switched off, as in the plan
defaults otherwise: GO when the 95 % interval lies above 0 and the estimate
reaches 5 points. A two-sided 95 % interval should err upwards in 2.5 %.

Knows no model: it measures the statistics and the decision alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from poc.models.settings import ModelSettings
from poc.replay.experiment import EnvironmentSettings, Plan, PlannedTask, Readiness, Thresholds
from poc.stats import Interval, auroc, clopper_pearson, mean_difference, ratio_of_geometric_means
from poc.verdict.compare import comparison_of
from poc.verdict.decide import verdict_of
from poc.verdict.fidelity import no_fidelity
from poc.verdict.numbers import Split
from poc.verdict.trials import Stored, Trial

SIZES = [(tasks, repeats) for tasks in (30, 100, 300) for repeats in (1, 3)]
BASES = [(0.5, 0.4), (0.9, 0.4), (0.03, 0.2)]
"""Mean success and consistency of the control arm."""
THRESHOLDS = Thresholds(latency_ratio_max=None, tokens_ratio_max=None, repeated_irreversible_rise_max=None)

Rates = tuple[np.ndarray, np.ndarray]


def rates(rng: np.random.Generator, tasks: int, base: float, consistency: float, effect: float, mixed: bool) -> Rates:
    """Success rates of each task, (treated, control)."""
    size = 1 / consistency - 1
    control = rng.beta(base * size, (1 - base) * size, tasks)
    treated = control.copy()
    if mixed:
        renewed = rng.random(tasks) < 1 / 3
        treated[renewed] = rng.beta(base * size, (1 - base) * size, int(renewed.sum()))
    return treated + (1 - treated) * (effect / (1 - base)), control


def outcomes(rng: np.random.Generator, both: Rates, repeats: int) -> Rates:
    """Yes/no outcomes as arrays of (tasks, repeats)."""
    treated, control = (rng.random((len(rate), repeats)) < rate[:, None] for rate in both)
    return treated.astype(float), control.astype(float)


def is_go(interval: Interval, thresholds: Thresholds = THRESHOLDS) -> bool:
    """The success criterion by itself; `full_verdict` shows that the whole decision agrees."""
    assert interval.estimate is not None
    return interval.above(thresholds.gain_above) and interval.estimate >= thresholds.gain_worthwhile - 1e-12


def success_rows(draws: int, sizes: list[tuple[int, int]], seed: int) -> Iterator[dict[str, float | str]]:
    """One row per size and base: GO rates and coverage with no effect and with 10 and 20 points."""
    for base, consistency in BASES:
        for tasks, repeats in sizes:
            rng = np.random.default_rng([seed, tasks, repeats, int(base * 100)])
            row: dict[str, float | str] = {"base": base, "tasks": tasks, "repeats": repeats}
            for name, effect, mixed in (
                ("same", 0.0, False),
                ("mixed", 0.0, True),
                ("+10", 0.1, False),
                ("+20", 0.2, False),
            ):
                if effect > 1 - base + 1e-9:
                    continue
                go = covered = plain = 0
                for _ in range(draws):
                    treated, control = outcomes(rng, rates(rng, tasks, base, consistency, effect, mixed), repeats)
                    differences = treated.mean(axis=1) - control.mean(axis=1)
                    interval = mean_difference(differences)
                    assert interval.low is not None
                    assert interval.high is not None
                    go += is_go(interval)
                    covered += interval.low <= effect <= interval.high
                    plain += _plain_t_covers(differences, effect)
                row[f"go {name}"] = go / draws
                row[f"cover {name}"] = covered / draws
                row[f"plain t {name}"] = plain / draws
                if effect == 0.0:
                    row[f"go {name} upper"] = clopper_pearson(go, draws).high or 0.0
            yield row


def _plain_t_covers(differences: np.ndarray, effect: float) -> bool:
    from scipy import stats

    n = len(differences)
    half = stats.t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return bool(abs(differences.mean() - effect) <= half)


def other_rows(draws: int, seed: int) -> Iterator[dict[str, float | str]]:
    """Coverage of the ratio (skewed times, a true ratio of 1.08) and of the clustered AUROC (true 0.76 or 0.5)."""
    for tasks in (30, 100, 300):
        rng = np.random.default_rng([seed, tasks])
        ratio = normal = chance = usable = 0
        for _ in range(draws):
            own = rng.normal(0, 0.5, tasks)
            noise = rng.gamma(2.0, 0.5, (2, tasks)) + 0.2
            noise[0] *= 1.08
            found = ratio_of_geometric_means(np.exp(own) * noise[0], np.exp(own) * noise[1])
            assert found.low is not None
            assert found.high is not None
            ratio += found.low <= 1.08 <= found.high
        for _ in range(max(200, draws // 5)):
            for shift in (1.0, 0.0):
                task = np.repeat(np.arange(tasks), 4)
                chances = np.repeat(rng.beta(1.0, 1.5, tasks), 4)
                hit = rng.random(tasks * 4) < chances
                per_task = np.repeat(rng.normal(0, 0.6, tasks), 4)
                score = shift * hit + per_task + rng.normal(0, 0.8, tasks * 4)
                # The two scores differ by N(shift, 2 * (0.36 + 0.64)).
                true = 0.7602499389 if shift else 0.5
                area = auroc(score, hit, task.tolist())
                assert area.low is not None
                assert area.high is not None
                inside = area.low <= true <= area.high
                normal, chance = (normal + inside, chance) if shift else (normal, chance + inside)
                usable += 1
        yield {
            "tasks": tasks,
            "ratio 1.08": ratio / draws,
            "auroc 0.76": 2 * normal / usable,
            "auroc 0.5": 2 * chance / usable,
        }


def full_verdict(rng: np.random.Generator, tasks: int, repeats: int, both: Rates) -> tuple[str, bool]:
    """The verdict of the real decision on one simulated experiment, and what `is_go` says of it."""
    plan = _plan(tasks, repeats)
    treated, control = outcomes(rng, both, repeats)
    trials = tuple(
        _trial(f"t{task}", arm, repeat, values[task, repeat])
        for arm, values in (("progress", treated), ("none", control))
        for task in range(tasks)
        for repeat in range(repeats)
    )
    stored = Stored("x", plan, False, True, (), trials, len(trials), 0)
    found = comparison_of(stored, no_fidelity("unknown"), Split(overlapping=(), silent_sets=0))
    return verdict_of(found, plan).verdict, is_go(found.primary.outcome.interval)


def _plan(tasks: int, repeats: int) -> Plan:
    return Plan(
        mode="closed_loop",
        tasks=tuple(PlannedTask(task_id=f"t{i}", category="c", set_hash="s") for i in range(tasks)),
        arms=("none", "progress"),
        repeats=repeats,
        model=ModelSettings(name="m"),
        environment=EnvironmentSettings(kind="python", target="world.py:World"),
        thresholds=THRESHOLDS,
        readiness=Readiness(level="READY"),
    )


def _trial(task: str, arm: str, repeat: int, success: float) -> Trial:
    return Trial(
        trial_id=f"{task}.{arm}.{repeat}", task_id=task, category="c", arm=arm, unit=(repeat, "", -1), failed=False,
        success=float(success), provenance="environment", final_progress=None, turns=1, steps=1, errors=0,
        repeated_steps=0, repeated_irreversible=0, input_tokens=1, output_tokens=1, cached_tokens=None,
        context_tokens=0, cost_usd=None, latency_s=1.0, first_token_s=1.0,
    )  # fmt: skip


def table(rows: list[dict[str, float | str]]) -> str:
    """Rows as aligned text; shares with three decimals, a dash where a scenario does not exist."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name), name) for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def _cell(value: float | str | None, name: str) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, str) or name in ("base", "tasks", "repeats") else f"{value:.3f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000, help="simulated experiments per cell")
    parser.add_argument("--seed", type=int, default=20260101)
    chosen = parser.parse_args()
    rows = list(success_rows(chosen.draws, SIZES, chosen.seed))
    print(f"Success criterion, {chosen.draws} experiments per cell (upper: 95 % Clopper-Pearson)\n")
    gos = [{k: v for k, v in row.items() if not k.startswith(("cover", "plain"))} for row in rows]
    covers = [{k: v for k, v in row.items() if not k.startswith("go")} for row in rows]
    print(table(gos), "\n")
    print("Coverage of the 95 % interval, beside that of the plain paired t\n")
    print(table(covers), "\n")
    print("Coverage of the other 95 % intervals\n")
    print(table(list(other_rows(chosen.draws, chosen.seed))), "\n")
    rng = np.random.default_rng(chosen.seed)
    for effect in (0.0, 0.2):
        found = [full_verdict(rng, 60, 2, rates(rng, 60, 0.5, 0.4, effect, False)) for _ in range(200)]
        assert all((verdict == "GO") == go for verdict, go in found), "the whole decision and the criterion disagree"
        go = sum(verdict == "GO" for verdict, _ in found)
        ends = clopper_pearson(go, 200)
        counts = ", ".join(f"{name} {sum(v == name for v, _ in found)}" for name in ("GO", "INCONCLUSIVE", "NO-GO"))
        print(
            f"Whole decision, 200 experiments of 60 tasks x 2, effect {effect:+.2f}: {counts}; "
            f"GO rate {go / 200:.3f} ({ends.low:.3f} to {ends.high:.3f})"
        )


if __name__ == "__main__":
    main()
