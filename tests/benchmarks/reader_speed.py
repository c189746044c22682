"""How fast each reader is, held against plain JSON parsing of the same file.

For each format its real files (``../shared/logs``; ``--logs`` names another
folder), and small made ones where there is no real one, are grown to some
20 MB: elements of a list, lines, or whole objects one a line, with ids and
wordings of their own. What cannot be grown so that the reader finds as many
runs more (or as much longer a run) is read many times over instead. Each round
reads with our reader (opening, first look, reading; nothing stored), then
parses with the standard library's `json`, then with msgspec, so that all three
see the same machine. Printed are the medians in MB per second of processor
time, and how many times slower the reader is. **The goal is to be within 4
times the standard library's `json`**; the ratio to msgspec is printed beside
it. Files that are no JSON (text, CSV, databases) have no ratio.

    python tests/benchmarks/reader_speed.py                       # all formats, 20 MB, 5 rounds
    python tests/benchmarks/reader_speed.py --format otel_genai --format langfuse --mb 5
    python tests/benchmarks/reader_speed.py --format mlflow --profile   # where the time goes
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from poc.errors import PocError
from poc.ingest.detect import detect
from poc.ingest.readers import READERS
from poc.ingest.sources import Source
from poc.trajectory import Run

LOGS = Path(__file__).resolve().parents[3] / "shared" / "logs"
GOAL = 4.0
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{6}(?=[0-9a-f]{26}(?![0-9a-f])|[0-9a-f]{2}-[0-9a-f]{4}-[0-9a-f]{4}-)")
"""The beginning of an id of 32 hex digits or of a UUID."""
_WORD = re.compile(rb" (the|a|to|of|is|and|you|for|in|I) ")


class Grown(NamedTuple):
    """A file of about the wanted size, or a small one that is to be read `times`."""

    path: Path
    how: str
    times: int = 1


class Speed(NamedTuple):
    """MB/s of the reader, of `json` and of msgspec (None for what is no JSON)."""

    reader: float
    stdlib: float | None
    msgspec: float | None

    @property
    def ratio(self) -> float | None:
        """How many times slower than the standard library's parser."""
        return None if self.stdlib is None else self.stdlib / self.reader


# Growing files -------------------------------------------------------------------------------------------


def copies(text: bytes, count: int) -> Iterator[bytes]:
    """Copies of a text, each with ids and wordings of its own: no reader may gain by what it has seen before."""
    for number in range(count):
        yield _WORD.sub(rb" \1 %d " % number, _ID.sub(b"%06x" % number, text))


def as_list(raw: bytes, count: int) -> bytes | None:
    """A list with as many times the elements."""
    inner = raw.strip()
    return (
        b"[" + b",".join(copies(inner[1:-1], count)) + b"]" if inner[:1] == b"[" and len(documents(raw)) == 1 else None
    )


def as_lines(raw: bytes, count: int) -> bytes | None:
    """The lines, or the one object on a line of its own, as many times."""
    found = documents(raw)
    if len(found) == 1 and isinstance(found[0], dict):
        raw = json.dumps(found[0], ensure_ascii=False).encode()
    elif len(found) < 2:
        return None
    return b"\n".join(copies(raw.strip(), count)) + b"\n"


def as_members(raw: bytes, count: int) -> bytes | None:
    """An object whose longest list has as many times the elements."""
    found = documents(raw)
    if len(found) != 1 or not isinstance(found[0], dict):
        return None
    lists = {key: json.dumps(value) for key, value in found[0].items() if isinstance(value, list) and value}
    if not lists:
        return None
    key = max(lists, key=lambda name: len(lists[name]))
    rest = json.dumps({name: value for name, value in found[0].items() if name != key})[:-1]
    inner = b",".join(copies(lists[key][1:-1].encode(), count))
    return f"{rest}{', ' if len(rest) > 1 else ''}{json.dumps(key)}: [".encode() + inner + b"]}"


def as_text(raw: bytes, count: int) -> bytes | None:
    """Text of any kind, as many times."""
    return b"\n".join([raw.strip()] * count) + b"\n" if not documents(raw) else None


WAYS: dict[str, Callable[[bytes, int], bytes | None]] = {
    "list": as_list,
    "lines": as_lines,
    "members": as_members,
    "text": as_text,
}


def documents(raw: bytes) -> list[Any]:
    """The JSON values of a file that is one value, or has one on each line; nothing for other files."""
    try:
        return [json.loads(raw)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in raw.splitlines() if line.strip()]
    except ValueError:
        return []


def grow(path: Path, name: str, size: int, folder: Path) -> Grown:
    """A larger file of the same kind, or the file itself, to be read many times."""
    raw = path.read_bytes()
    base = found(path, name)
    for how, way in WAYS.items():
        three = way(raw, 3)
        trial = folder / path.name
        if three is None:
            continue
        trial.write_bytes(three)
        if detected(trial) != name:
            continue
        runs, parts = found(trial, name)
        if parts == 3 * base[1] and runs in (3 * base[0], base[0]):
            trial.write_bytes(way(raw, max(1, size // max(1, len(three) // 3))) or b"")
            return Grown(trial, how if runs > base[0] else f"{how}, one run")
    return Grown(path, "file by file", max(1, size // len(raw)))


def detected(path: Path) -> str | None:
    """The format that a file is told as."""
    try:
        return detect(Source(path)).format
    except PocError:
        return None


def found(path: Path, name: str) -> tuple[int, int]:
    """How many runs the reader finds, and how many steps and messages in them."""
    runs = [item for item in READERS[name].read(Source(path)) if isinstance(item, Run)]
    return len(runs), sum(len(run.steps) + len(run.messages) for run in runs)


# Measuring -----------------------------------------------------------------------------------------------


def read(path: Path, times: int, name: str) -> None:
    """Our reader, from opening to the last run."""
    for _ in range(times):
        for _ in READERS[name].read(Source(path)):
            pass


def measure(grown: Grown, name: str, rounds: int) -> Speed:
    """Medians of as many rounds, all contestants in each."""
    whole = grown.path.read_bytes()
    values = len(documents(whole))
    is_json, lines = values > 0, values > 1
    contestants: dict[str, Callable[[], None]] = {"reader": lambda: read(grown.path, grown.times, name)}
    if is_json:
        for label, loads in (("stdlib", json.loads), ("msgspec", msgspec.json.decode)):
            contestants[label] = lambda loads=loads: plainly(grown, lines, loads)
    size = len(whole) * grown.times / 1e6
    taken: dict[str, list[float]] = {label: [] for label in contestants}
    for _ in range(rounds):
        for label, contestant in contestants.items():
            gc.collect()
            begun = time.process_time()
            contestant()
            taken[label].append(time.process_time() - begun)
    speeds = {label: size / statistics.median(times) for label, times in taken.items()}
    return Speed(speeds["reader"], speeds.get("stdlib"), speeds.get("msgspec"))


def plainly(grown: Grown, lines: bool, loads: Callable[[bytes], Any]) -> None:
    """What anybody would write to parse the file."""
    for _ in range(grown.times):
        if lines:
            with grown.path.open("rb") as file:
                for line in file:
                    if line.strip():
                        loads(line)
        else:
            loads(grown.path.read_bytes())


# Made samples, for formats of which there is no real file ------------------------------------------------

TALK = "The quick brown fox jumps over the lazy dog. 東京の天気は晴れ。 " * 12


def made() -> dict[str, bytes]:
    """A file of each format that has no real one, by name."""
    trace = "0af7651916cd43dd8448eb211c80319c"

    def lines(values: list[Any]) -> bytes:
        return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values).encode()

    def weave(number: int, parent: int | None, op: str, given: Any, output: Any) -> dict[str, Any]:
        at = f"2026-02-03T04:05:{number:02d}.000Z"
        ids = {"id": f"c{number}", "trace_id": trace, "parent_id": None if parent is None else f"c{parent}"}
        told = {"inputs": given, "output": output, "summary": {"weave": {"status": "success"}}}
        return {**ids, "op_name": f"weave:///a/b/op/{op}:1", "started_at": at, "ended_at": at, **told}

    answer = {"choices": [{"message": {"role": "assistant", "content": TALK}}]}
    asked = {"model": "m", "messages": [{"role": "user", "content": TALK}]}
    call = {"name": "look", "arguments": {"city": "東京"}}
    step = {"step_id": 1, "timestamp": "2026-02-03T04:05:06Z", "source": "agent", "message": TALK}
    tool = {"tool_call_id": "c1", "function_name": "look", "arguments": {"cmd": TALK}}
    seen = {"results": [{"source_call_id": "c1", "content": TALK}]}
    steps = [step, {**step, "step_id": 2, "tool_calls": [tool], "observation": seen}]
    crew = {"timestamp": "2025-03-01 09:00:00", "task_name": "t", "task": TALK, "agent": "a", "output": TALK}
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    tell = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": TALK}]}}
    item = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'}
    response = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TALK}]},
        item,
        {"type": "function_call_output", "call_id": "c1", "output": TALK},
    ]
    parts = [{"type": "step-start"}, {"type": "text", "text": TALK}]
    parts += [{"type": "tool-look", "toolCallId": "c1", "state": "output-available", "input": {"a": 1}, "output": TALK}]
    chat = {
        "id": "x",
        "messages": [
            {"id": "m", "role": "user", "parts": parts[1:2]},
            {"id": "n", "role": "assistant", "parts": parts},
        ],
    }
    return {
        "weave.jsonl": lines(
            [
                weave(1, None, "main", {"q": TALK}, TALK),
                weave(2, 1, "openai.chat.completions.create", asked, answer),
                weave(3, 1, "look_tool", {"a": 1}, TALK),
            ]
        ),
        "atif.json": lines(
            [{"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a"}, "steps": steps}]
        ),
        "bfcl.json": lines(
            [
                {
                    "id": "simple_1",
                    "result": [{"look": json.dumps({"city": TALK})}],
                    "input_token_count": 9,
                    "output_token_count": 9,
                }
            ]
            * 3
        ),
        "crewai.json": json.dumps([{**crew, "status": "started"}, {**crew, "status": "completed"}]).encode(),
        "mcp.jsonl": lines(
            [{"direction": "client_to_server", "message": ask}, {"direction": "server_to_client", "message": tell}]
        ),
        "responses.json": lines([{"input": response, "model": "m"}] * 2),
        "ui-messages.jsonl": lines([chat, chat]),
    }


def candidates(logs: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Files and their formats: the real ones that are no binaries, then made ones."""
    for path in sorted(logs.glob("*/*")) if logs.is_dir() else ():
        name = detected(path)
        if name is not None and Source(path).magic is None:
            yield name, path
    for file, raw in made().items():
        path = folder / f"made-{file}"
        path.write_bytes(raw)
        name = detected(path)
        if name is None:
            raise SystemExit(f"no reader knows the made sample {file}")
        yield name, path


def main() -> None:
    """Measure and print, the slowest last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", action="append", choices=READERS, help="only this one (may be given again)")
    parser.add_argument("--file", help="only files whose name holds this")
    parser.add_argument("--mb", type=float, default=20.0, help="size that files are grown to")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--logs", type=Path, default=LOGS, help="folder of real logs")
    parser.add_argument("--profile", action="store_true", help="one reading of each under cProfile instead")
    options = parser.parse_args()
    ratios: list[tuple[float, str]] = []
    print(f"{'format':18} {'file':44} {'grown by':16} {'MB/s':>7} {'json':>7} {'msgspec':>8}  json/ours msgspec/ours")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, path in candidates(options.logs, folder):
            if (options.format and name not in options.format) or (options.file and options.file not in path.name):
                continue
            grown = grow(path, name, int(options.mb * 1e6), folder)
            if options.profile:
                profile(grown, name)
                continue
            speed = measure(grown, name, options.rounds)
            line = f"{name:18} {path.name[-44:]:44} {grown.how:16} {speed.reader:7.1f}"
            if speed.ratio is not None and speed.stdlib and speed.msgspec:
                beside = speed.msgspec / speed.reader
                line += f" {speed.stdlib:7.1f} {speed.msgspec:8.1f}  {speed.ratio:5.2f} {beside:6.2f}"
                line += "" if speed.ratio <= GOAL else "   over the goal"
                ratios.append((speed.ratio, f"{name}, {path.name}"))
            print(line, flush=True)
    if ratios:
        ratio, which = max(ratios)
        print(f"\nThe slowest: {ratio:.2f} times slower than json ({which}); the goal is {GOAL:.0f}.")


def profile(grown: Grown, name: str) -> None:
    """Where one reading spends its time."""
    profiler = cProfile.Profile()
    profiler.runcall(read, grown.path, grown.times, name)
    print(f"== {name}, {grown.path.name}, {grown.how}")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
