"""CrewAI logs as JSON and as text: kickoffs, messages, values with quotes and line breaks."""

import json

import pytest

from poc.ingest import import_logs, iter_runs
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


def read(path):
    items = list(detect(Source(path)).reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def rows():
    def row(second, task, status, **more):
        return {
            "timestamp": f"2025-03-01 09:00:{second:02d}",
            "task_name": task,
            "task": f'Do the "{task}"\nand tell',
            "agent": f"agent of {task}",
            "status": status,
            **more,
        }

    return [
        row(1, "research", "started"),
        row(5, "research", "completed", output='three "facts", said'),
        row(6, "write", "started"),
        row(9, "write", "completed", output="a text\nof two lines"),
        row(20, "research", "started"),
    ]


def as_text(records):
    return "".join(
        f"{record['timestamp']}: "
        + ", ".join(f'{key}="{value}"' for key, value in record.items() if key != "timestamp")
        + "\n"
        for record in records
    )


@pytest.mark.parametrize("write_as", [json.dumps, as_text, lambda items: "".join(json.dumps(i) + "\n" for i in items)])
def test_kickoffs(workspace, write, write_as):
    path = write("crew.log", write_as(rows()))
    assert detect(Source(path)).format == "crewai"
    runs, rejects = read(path)
    assert rejects == []
    assert [(run.records, len(run.messages), len(run.steps)) for run in runs] == [(4, 4, 0), (1, 1, 0)]
    run = runs[0]
    assert [message.content for message in run.messages] == [
        'Do the "research"\nand tell',
        'three "facts", said',
        'Do the "write"\nand tell',
        "a text\nof two lines",
    ]
    assert [(message.role, message.name) for message in run.messages[:2]] == [
        ("user", "research"),
        ("assistant", "agent of research"),
    ]
    assert (run.duration_s, run.zone_in_log, run.outcome, run.task_text) == (
        8.0,
        False,
        None,
        'Do the "research"\nand tell',
    )
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.runs, result.steps) == (5, 5, 2, 0)
    assert len(list(iter_runs(workspace))) == 2


def test_damage(write):
    text = as_text(rows())
    runs, rejects = read(write("crew.txt", "hello\n" + text))
    assert ([run.records for run in runs], [(r.place, r.records) for r in rejects]) == ([4, 1], [("line 1", 0)])
    runs, rejects = read(write("crew.json", json.dumps([*rows(), 7])[:-1]))
    assert [run.records for run in runs] == [4, 1]
    assert [reject.reason.split(":")[0] for reject in rejects] == ["not a record of a task"] or len(rejects) == 2
