"""What comes out of the workspace is what the reader put in."""

import pytest

from poc.errors import InputError
from poc.ingest import import_logs, iter_runs, load_run
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Run

NOT_STORED = ("records", "native_id_is_global", "tools")


def as_read(path):
    source = Source(path)
    return [item for item in detect(source).reader.read(source) if isinstance(item, Run)]


@pytest.mark.parametrize(
    "name",
    [
        "openai_chat/invariant_sample_data.jsonl",
        "openai_chat/invariant_webarena.jsonl",
        "openai_chat/sap_single_trace_toolsandbox.json",
        "openai_chat/taubench_single_run_airline.json",
        "tau2/tau2_20260531-184109.json",
        "tau2/tau2_airline_gpt-4.1-mini_20260601-033543.json",
        "own_tables/shaft_tool_calls_minimal.jsonl",
    ],
)
def test_a_stored_run_equals_the_run_that_was_read(workspace, shared_log, name):
    path = shared_log(name)
    import_logs(workspace, path)
    stored = {run.place: run for _, run in iter_runs(workspace)}
    read = as_read(path)
    assert len(stored) == len(read)
    for run in read:
        # In memory the text of a result stands in the step alone; stored runs have it in both places.
        results = {step.result_seq: step.result for step in run.steps if step.result_seq is not None}
        for message in run.messages:
            if message.seq in results:
                assert message.content is None
                message.content = results[message.seq]
        twin = stored[run.place]
        assert twin.steps == run.steps
        assert twin.messages == run.messages
        for field in Run.__struct_fields__:
            if field not in NOT_STORED:
                assert getattr(twin, field) == getattr(run, field), field


def test_some_runs_by_a_condition(workspace, shared_log):
    import_logs(workspace, shared_log("openai_chat/taubench_gpt-4o-airline.json"))
    found = list(iter_runs(workspace, where="trial = ? AND outcome = 1", parameters=["2"], messages=False))
    assert len(found) == workspace.value("SELECT count(*) FROM runs WHERE trial = '2' AND outcome = 1") > 0
    assert all(run.trial == "2" and run.messages == [] for _, run in found)
    assert [run_id for run_id, _ in found] == sorted(run_id for run_id, _ in found)
    run_id, run = found[0]
    assert load_run(workspace, run_id).steps == run.steps
    with pytest.raises(InputError, match="There is no run"):
        load_run(workspace, "nothing")
