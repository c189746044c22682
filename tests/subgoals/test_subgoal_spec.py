"""Subgoal sets as people write them: what is taken, what is refused, and that errors name the line."""

import re
import textwrap

import pytest

import poc.subgoals.spec as spec_module
from poc.errors import PocError
from poc.subgoals import SpecError, SubgoalSet, load_sets, parse_set

GOOD = """\
category: refund
runs: all
subgoals:
  - id: found
    title: Find the order
    done_when:
      tool: get_order
"""


def refusal(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_set(textwrap.dedent(text), "sets/refund.yaml")
    return caught.value


def test_the_example_of_the_docstring_is_a_set():
    example = re.search(r"Example::\n\n(.*?)\n\n`runs`", spec_module.__doc__ or "", re.DOTALL)
    assert example is not None
    found = parse_set(textwrap.dedent(example[1]))
    assert [subgoal.id for subgoal in found.subgoals] == ["order_found", "refunded"]
    assert found.made_from.all_tasks == {"12", "13"}
    assert found.subgoals[1].after == ("order_found",)
    assert found.subgoals[0].done_when.status == ("ok",)


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("title: Find", "titel: Find"), 5, "Unknown key 'titel'. Did you mean \"title\"?"),
        (("tool: get_order", "tol: get_order"), 7, 'Did you mean "tool"?'),
        (("runs: all", "runs: {task_txt: x}"), 2, 'Did you mean "task_text"?'),
        (("tool: get_order", "status: okay"), 7, 'Did you mean "ok"?'),
        (("tool: get_order", "result: {$.a: {equal: 1}}"), 7, 'Did you mean "equals"?'),
        (("tool: get_order", "result: {order.id: {equals: 1}}"), 7, 'Did you mean "$.order.id"?'),
        (("tool: get_order", "result: {$..a: {equals: 1}}"), 7, "expected a key"),
        (("tool: get_order", "result: {$.a: {regex: '(?=x)'}}"), 7, "regular expression"),
        (("tool: get_order", "result: {$.a: {gt: [1]}}"), 7, "'gt' takes a number"),
        (("tool: get_order", "result: {$.a: {gt: 9007199254740993}}"), 7, "2^53"),
        (("tool: get_order", "result: {$.a: {equals: {b: 1}}}"), 7, "'equals' cannot compare with a mapping"),
        (("tool: get_order", "result: {$.a: {in: []}}"), 7, "'in' takes a list"),
        (("tool: get_order", "result: {$.a: {exists: false, gt: 1}}"), 7, "cannot stand beside"),
        (("tool: get_order", "result: {$.a: {}}"), 7, "no operator"),
        (("tool: get_order", "result: {$.a: 5}"), 7, "A mapping (key: value) is needed"),
        (("      tool: get_order", "      status: error"), 6, "at least one of"),
        (("id: found", "id: 1st"), 4, "cannot be an id"),
        (("title: Find the order", "title: 5"), 5, "A text is needed"),
        (("title: Find the order", "title: x\n    weight: 0"), 6, "greater than 0"),
        (("title: Find the order", "title: x\n    weight: true"), 6, "number"),
        (("title: Find the order", "title: x\n    required: false"), 3, "No subgoal is required"),
        (("title: Find the order", "title: x\n    after: [fond]"), 6, "no subgoal 'fond' to come after"),
        (("title: Find the order", "title: x\n    after: [found]"), 3, "wait for each other"),
        (("runs: all", "runs: all\ncategory: x"), 3, "given twice (first in line 1)"),
        (("runs: all", "runs:"), 2, "'runs' says nothing"),
        (("runs: all", "runs: {task_text: '['}"), 2, "regular expression"),
        (("runs: all", "runs: [a"), 3, "YAML cannot be read"),
        (("runs: all", "runs: &a [*a]"), 2, "alias"),
        (("runs: all", "runs: !!python/name:os.system x"), 2, "not allowed"),
        (("category: refund", "category: !!python/name:os.system x"), 1, "tag"),
        (("category: refund", "5: refund"), 1, "A key must be a text"),
        (("category: refund", 'category: "a\\0b"'), 1, "NUL"),
        (("category: refund\n", ""), 1, "'category' is missing"),
    ],
)
def test_what_is_refused_is_refused_with_its_line(change, line, words):
    assert change[0] in GOOD
    error = refusal(GOOD.replace(*change))
    text = str(error)
    assert words in text
    assert f"sets/refund.yaml, line {line}" in text, text


def test_all_problems_are_told_at_once():
    text = str(refusal(GOOD.replace("title: Find", "titel: Find").replace("runs: all", "runs: {tsk: 1}")))
    assert "3 problems" in text
    assert "line 2" in text
    assert "line 5" in text


def test_two_subgoals_with_one_id_are_refused():
    error = refusal(GOOD + "  - {id: found, title: Again, done_when: {tool: x}}\n")
    assert "line 8" in str(error)
    assert "Two subgoals have the id 'found'" in str(error)


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "just words", "a: 1\n---\nb: 2\n", "\x01"])
def test_what_is_no_mapping_is_refused(text):
    assert refusal(text).where is not None


def test_scalars_are_read_as_json_has_them():
    text = GOOD.replace(
        "tool: get_order",
        "result: {$.a: {in: [2024-05-20, yes, 12:30, 010, true, null, 5, 5.5, 1e3, -0.5, .inf]}}",
    )
    operands = parse_set(text).subgoals[0].done_when.result["$.a"]["in"]
    assert operands == ["2024-05-20", "yes", "12:30", "010", True, None, 5, 5.5, 1000.0, -0.5, ".inf"]
    assert [type(item) for item in operands[4:8]] == [bool, type(None), int, float]


def test_the_hash_is_of_the_content():
    one = parse_set(GOOD)
    spaced = parse_set("# a comment\n" + GOOD.replace("tool: get_order", "tool: [get_order]\n      status: ok"))
    other = parse_set(GOOD.replace("Find the order", "Find an order"))
    assert one.hash == spaced.hash != other.hash
    assert spaced.source_text is not None
    assert spaced.source_text.startswith("# a comment")
    assert SubgoalSet.model_validate_json(one.canonical).hash == one.hash


def test_without_a_rule_the_category_decides():
    assert parse_set(GOOD.replace("runs: all\n", "")).runs.category == ("refund",)
    assert parse_set(GOOD).runs.category is None


def test_task_keys_may_be_numbers():
    found = parse_set(GOOD.replace("runs: all", "runs: {task_key: [1, 2]}\nmade_from: {tasks: 7}"))
    assert found.runs.task_key == ("1", "2")
    assert found.made_from.all_tasks == {"7"}


def test_a_folder_is_read_by_file_name(tmp_path):
    (tmp_path / "b.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "a.yml").write_text(GOOD.replace("refund", "cancel"), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a set", encoding="utf-8")
    assert [each.category for each in load_sets(tmp_path)] == ["cancel", "refund"]
    (tmp_path / "c.yaml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(SpecError, match="two sets") as caught:
        load_sets(tmp_path)
    assert "b.yaml and" in str(caught.value.where)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(PocError, match="no such file"):
        load_sets(tmp_path / "absent.yaml")
    with pytest.raises(PocError, match=r"no \.yaml file"):
        load_sets(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"category: \xff\xfe")
    with pytest.raises(PocError, match="not UTF-8"):
        load_sets(tmp_path / "binary.yaml")


def test_more_subgoals_than_a_prompt_holds_are_refused():
    many = "".join(f"  - {{id: s{n}, title: t, done_when: {{tool: x}}}}\n" for n in range(61))
    assert "1 to 60" in str(refusal("category: a\nruns: all\nsubgoals:\n" + many))
    assert "1 to 60" in str(refusal("category: a\nruns: all\nsubgoals: []\n"))
