"""ReAct transcripts: the real file against counts by regular expressions, and the other dialects by hand."""

import re
from collections import Counter

import pytest

from poc.ingest import import_logs, iter_runs
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


def read(path):
    items = list(detect(Source(path)).reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def test_hotpotqa(workspace, shared_log):
    path = shared_log("react_text/reflexion_hotpotqa_base_react_thought_log.txt")
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"^Action \d+: (\w+)\[(.*)\]$", text, re.MULTILINE)
    assert (len(re.findall(r"^Question: ", text, re.MULTILINE)), len(actions)) == (102, 369)
    correct, incorrect, halted = (
        part.count("\nQuestion: ") for part in re.split(r"-+ BEGIN \w+ AGENTS -+\n", text)[1:]
    )
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected) == (102, 102, 0)
    assert (result.runs, result.steps) == (102, 369)
    runs = [run for _, run in iter_runs(workspace)]
    assert Counter(run.outcome.value for run in runs) == {1.0: correct, 0.0: incorrect + halted}
    # Two of the halted agents did answer, wrongly, with their last action.
    answered = text.count(": Answer is CORRECT\n") + text.count(": Answer is INCORRECT\n")
    assert (answered, halted) == (92, 12)
    assert Counter(run.outcome.provenance for run in runs) == {"log:Answer is": 92, "log:section HALTED": 10}
    steps = [step for run in runs for step in run.steps]
    assert Counter((step.tool, step.arguments_raw) for step in steps) == Counter(actions)
    observations = re.findall(
        r"^Observation \d+: (.*?)\n(?=Thought|Action|Question|\n(?:Question|---)|\n*\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert len(observations) == 369
    assert Counter(step.result for step in steps) == Counter(found.strip() for found in observations)
    assert {step.arguments_json for step in steps} == {None}


def test_places_thoughts_and_trials(write):
    text = (
        "\n####################\nBEGIN TRIAL 2\nTrial summary: Correct: 1\n###################\n"
        "------------- BEGIN HALTED AGENTS -------------\n\nQuestion: who?\nThought 1: look\nAction 1: Search[who\n"
        "is it]\nObservation 1: a line\n\n> a quotation\n-----------\nmore\nThought 2: again, and much more of it than"
        " before\nAction 2: Lookup[x]\n\nQuestion: what?\nAction 1: Finish[y]\nObservation 1: Answer is CORRECT\n"
        "Correct answer: y\n\n------------------\n3\n"
    )
    runs, rejects = read(write("log.txt", text))
    assert [reject.reason for reject in rejects] == ["text without any action"]
    assert {reject.records for reject in rejects} == {0}
    assert [(run.place, run.trial, run.outcome.value) for run in runs] == [("line 8", "2", 0.0), ("line 20", "2", 1.0)]
    first, second = runs[0].steps
    assert (first.arguments_raw, first.result) == ("who\nis it", "a line\n\n> a quotation\n-----------\nmore")
    assert (second.tool, second.status, second.result) == ("Lookup", "no_result", None)
    assert runs[1].metadata == {"correct_answer": "y", "section": "HALTED"}
    assert runs[0].messages[1].content == "look\nSearch[who\nis it]"


WEBSHOP = """Action: reset
Observation:
WebShop
Instruction:
i need a red mug, price lower than 10.00 dollars
[Search]

Action: think[I should search]
Observation: OK.

Action: search[red mug]
Observation:
[Back to Search]
Page 1 (Total results: 50)

Action: click[No Such]
Observation: Invalid action!

Action: click[Buy Now]
Observation: Your score (min 0.0, max 1.0): 0.75

-----------------
1
Action: reset
Observation:
Instruction:
i need tea

Action: search[tea]
"""


def test_webshop(write):
    path = write("shop.log", WEBSHOP)
    assert detect(Source(path)).format == "react_text"
    runs, rejects = read(path)
    assert rejects == []
    assert [(run.outcome and run.outcome.value, len(run.steps)) for run in runs] == [(0.75, 3), (None, 1)]
    assert [(step.tool, step.arguments_raw, step.status, step.status_evidence) for step in runs[0].steps] == [
        ("search", "red mug", "ok", "result"),
        ("click", "No Such", "error", "text_rule"),
        ("click", "Buy Now", "ok", "result"),
    ]
    assert runs[0].task_text == "i need a red mug, price lower than 10.00 dollars"
    assert runs[1].steps[0].status == "no_result"
    assert runs[0].steps[2].result == "Your score (min 0.0, max 1.0): 0.75"


ALFWORLD = """
#####

Environment #0:
Interact with a household to solve a task. Here are two examples.
You are in the middle of a room. Looking quickly around you, you see a desk 1.
Your task is to: put some mug on desk.
> go to desk 9
Example.

Here is the task:
You are in the middle of a room. Looking quickly around you, you see a shelf 1.
Your task is to: put a book on shelf.
> think: find a book
OK.
> go to shelf 1
On the shelf 1, you see a book 1.
> take book 1 from shelf 1
Nothing happens.
> inventory

STATUS: FAIL

#####

#####

Environment #1: Success

#####

#####

Environment #2:
Your task is to: look.
> look
You see it.
> look
You won.

STATUS: OK

#####
"""


def test_alfworld(write):
    path = write("trial_0.log", ALFWORLD)
    assert detect(Source(path)).format == "react_text"
    runs, rejects = read(path)
    assert [reject for reject in rejects if reject.records] == []
    assert [(run.task_key, run.outcome.value, run.task_text) for run in runs] == [
        ("0", 0.0, "put a book on shelf."),
        ("2", 1.0, "look."),
    ]
    assert [(step.tool, step.arguments_raw, step.result) for step in runs[0].steps] == [
        ("go to", "shelf 1", "On the shelf 1, you see a book 1."),
        ("take", "book 1 from shelf 1", "Nothing happens."),
        ("inventory", None, None),
    ]
    assert runs[0].messages[0].role == "system"
    assert "go to desk 9" not in [step.tool for step in runs[0].steps]
    assert "think: find a book\ngo to shelf 1" in [message.content for message in runs[0].messages]


def test_langchain(write):
    text = (
        'Question: 2+2?\nThought: compute\nAction: calculator\nAction Input: {"a": 2}\n'
        "Observation: 4\nThought: done\nFinal Answer: 4\n"
    )
    ((run,), _) = read(write("chain.txt", text))
    (step,) = run.steps
    assert (step.tool, step.arguments_json, step.result) == ("calculator", '{"a": 2}', "4")
    assert (run.outcome, run.messages[-1].content) == (None, "done\nFinal Answer: 4")


def test_invalid_utf8_is_noted(write):
    runs, rejects = read(write("log.txt", b"Question: q\nAction 1: Search[caf\xe9]\nObservation 1: x\n"))
    assert (runs[0].steps[0].arguments_raw, rejects[0].place, rejects[0].records) == ("caf\ufffd", "line 2", 0)


@pytest.mark.parametrize("text", ["Dear all,\n\nAction: please answer.\n", "a,b\n1,2\n", '{"Action": "Observation:"}'])
def test_other_texts_are_not_claimed(write, text):
    from poc.ingest.readers import react_text

    assert react_text.sniff(text.encode(), "x.txt") == 0.0
