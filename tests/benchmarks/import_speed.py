"""How fast a large chat log is imported, held against hand-written SQL, other tools, and its own growth.

The log is written by ``make_chat_log.py`` and the SQL is ``import_baseline.py``
of the folder ``../shared/bench`` (``--bench`` names another); the SQL does the
bare minimum: no rejects, no checks, no identities, one file. Each round runs
the commands one after the other, each in a process of its own, so that both
see the same machine; printed are wall times, their ratios round by round, and
the peak memory (resident, summed over the process and its children).

    python tests/benchmarks/import_speed.py                    # 180 000 runs, 580 MB, 3 rounds
    python tests/benchmarks/import_speed.py --runs 20000       # quick
    python tests/benchmarks/import_speed.py --growth           # memory and time at 1x, 2x and 4x
    python tests/benchmarks/import_speed.py --peers --runs 20000   # beside pandas.json_normalize
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
OURS = """
import sys
from poc.ingest import import_logs
from poc.workspace import Workspace
if __name__ == "__main__":
    done = import_logs(Workspace.open(sys.argv[2]), sys.argv[1])
    print(f"{done.messages} messages, {done.steps} steps, {done.rejected} rejected")
"""
PANDAS = """
import json, sys
import duckdb, pandas
with open(sys.argv[1], encoding="utf-8") as file:
    runs = [json.loads(line) for line in file]
messages = pandas.json_normalize(runs, "traj", ["task_id", "reward"])
calls = messages[messages["tool_calls"].notna()].explode("tool_calls", ignore_index=True)
calls = pandas.concat([calls[["task_id"]], pandas.json_normalize(calls["tool_calls"].tolist())], axis=1)
results = messages.loc[messages["role"] == "tool", ["task_id", "tool_call_id", "content"]]
steps = calls.merge(results, how="left", left_on=["task_id", "id"], right_on=["task_id", "tool_call_id"])
with duckdb.connect(sys.argv[2]) as db:
    messages = messages.drop(columns="tool_calls")
    db.execute("CREATE TABLE messages AS SELECT * FROM messages")
    db.execute("CREATE TABLE steps AS SELECT * FROM steps")
print(f"{len(messages)} messages, {len(steps)} steps")
"""


class Measured(NamedTuple):
    """One command: wall time in seconds, peak resident memory in MiB (None off Linux), what it printed."""

    seconds: float
    mebibytes: float | None
    said: str


def measure(command: list[str]) -> Measured:
    """Run a command and watch its memory."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    peak = 0
    while True:
        try:
            said, _ = process.communicate(timeout=0.05)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, resident(process.pid))
    if process.returncode:
        sys.exit(f"failed: {' '.join(command)[:200]}")
    return Measured(time.perf_counter() - started, peak / 2**20 if peak else None, said.strip())


def resident(pid: int) -> int:
    """Resident bytes of a process and its children; 0 where ``/proc`` does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0
    return pages * 4096 + sum(resident(int(child)) for child in children)


def say(name: str, found: Measured) -> None:
    """One line of the report."""
    memory = "" if found.mebibytes is None else f", peak {found.mebibytes:,.0f} MiB"
    print(f"  {name:28} {found.seconds:7.2f} s{memory}   ({found.said})", flush=True)


def rounds(log: Path, folder: Path, baseline: Path, count: int, peers: bool) -> None:
    """Ours, the SQL and the peers, round by round."""
    commands = {
        "ours": [sys.executable, "-c", OURS],
        "hand-written SQL": [sys.executable, str(baseline)],
        **({"pandas json_normalize": [sys.executable, "-c", PANDAS]} if peers else {}),
    }
    seen: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(count):
        print(f"round {number + 1}")
        for name, command in commands.items():
            target = folder / "target.duckdb"
            found = measure([*command, str(log), str(target)])
            say(name, found)
            seen[name].append(found.seconds)
            target.unlink()
    for name in list(commands)[1:]:
        ratios = [ours / other for ours, other in zip(seen["ours"], seen[name], strict=True)]
        listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"ours / {name}: median {statistics.median(ratios):.2f} (rounds: {listed})")


def growth(folder: Path, maker: Path, runs: int) -> None:
    """Time and memory as the file grows."""
    for times in (1, 2, 4):
        log = write(folder, maker, runs * times)
        found = measure([sys.executable, "-c", OURS, str(log), str(folder / "target.duckdb")])
        say(f"{times}x, {log.stat().st_size / 1e6:,.0f} MB", found)
        (folder / "target.duckdb").unlink()
        log.unlink()


def write(folder: Path, maker: Path, runs: int) -> Path:
    """The log of so many runs."""
    log = folder / f"chat-{runs}.jsonl"
    subprocess.run([sys.executable, str(maker), str(runs), str(log)], check=True)
    return log


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=180_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--bench", type=Path, default=ROOT.parent / "shared" / "bench")
    options = parser.parse_args()
    maker, baseline = options.bench / "make_chat_log.py", options.bench / "import_baseline.py"
    if not (maker.exists() and baseline.exists()):
        sys.exit(f"{options.bench} does not hold make_chat_log.py and import_baseline.py; name their folder: --bench")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.growth:
            growth(folder, maker, options.runs)
        else:
            rounds(write(folder, maker, options.runs), folder, baseline, options.rounds, options.peers)


if __name__ == "__main__":
    main()
