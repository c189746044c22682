"""How often the whole line says GO for the simulated agent: when it ignores status text, and when it heeds it.

Each experiment is a real one: a frozen plan of the sample's replay tasks in
the arms `none` and `progress`, run over loopback through the SDK, journaled,
merged and decided, with a seed of its own and the thresholds other than
success switched off. Printed: the GO rate with its exact 95 % interval
(Clopper & Pearson 1934).

    python tests/benchmarks/simulated_go_rate.py                     # 200 experiments that ignore, 50 that heed
    python tests/benchmarks/simulated_go_rate.py --ignoring 20 --heeding 5
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import tempfile
import time
from pathlib import Path

from poc.ingest import import_logs
from poc.models.settings import ModelSettings
from poc.progress import score
from poc.replay import Plan, Thresholds, estimate, make_plan, run
from poc.replay.store import insert_experiment
from poc.sample import data_dir, running_server
from poc.stats import clopper_pearson
from poc.subgoals import load_sets, store_sets
from poc.verdict import decide
from poc.workspace import Workspace

SUCCESS_ONLY = Thresholds(latency_ratio_max=None, tokens_ratio_max=None, repeated_irreversible_rise_max=None)


def ready_workspace(path: Path) -> Workspace:
    """The sample's logs and subgoal sets, scored."""
    workspace, data = Workspace.open(path), data_dir()
    import_logs(workspace, [data / "logs" / "orders.jsonl"])
    store_sets(workspace, load_sets(data / "subgoals"))
    score(workspace)
    return workspace


def verdicts(workspace: Workspace, plan: Plan, experiments: int) -> collections.Counter[str]:
    """The verdicts of as many experiments, alike but for their seeds."""
    found: collections.Counter[str] = collections.Counter()
    expected = estimate(workspace, plan, {}).estimate
    for seed in range(experiments):
        one = plan.model_copy(update={"seed": seed})
        experiment_id = insert_experiment(workspace, one, expected).experiment_id
        asyncio.run(run(workspace, experiment_id))
        found[decide(workspace, experiment_id).verdict] += 1
    return found


def main() -> None:
    """Run both kinds and print their rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ignoring", type=int, default=200, help="experiments with the dial at 0")
    parser.add_argument("--heeding", type=int, default=50, help="experiments with the dial at 1")
    parser.add_argument("--tasks", type=int, default=36)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_server() as base_url:
        workspace = ready_workspace(Path(folder) / "rates.duckdb")
        for heed, experiments in ((0, options.ignoring), (1, options.heeding)):
            if not experiments:
                continue
            plan = make_plan(
                workspace,
                mode="closed_loop",
                environment="poc.sample.world:World",
                model=ModelSettings(name=f"simulated-agent@heed={heed}", base_url=base_url),
                arms=("none", "progress"),
                tasks=options.tasks,
                thresholds=SUCCESS_ONLY,
                concurrency=16,
                redact=False,  # nothing leaves the machine, and the text is not what is measured here
            )
            started = time.perf_counter()
            found = verdicts(workspace, plan, experiments)
            rate = clopper_pearson(found["GO"], experiments)
            print(
                f"heed {heed}: {experiments} experiments of {len(plan.tasks)} tasks, GO {found['GO']}, "
                f"NO-GO {found['NO-GO']}, INCONCLUSIVE {found['INCONCLUSIVE']}; GO rate {rate.estimate:.3f} "
                f"[{rate.low:.3f}, {rate.high:.3f}]; {time.perf_counter() - started:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
