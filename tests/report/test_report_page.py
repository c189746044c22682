"""The page itself: well-formed, self-contained, deaf to hostile logs, in both languages, honest about gaps."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re

import pytest
from report_bench import NOW, Bench, Page

from poc.errors import InputError
from poc.readiness import assess
from poc.replay.experiment import EnvironmentSettings, PlannedTask, Readiness, Sampling
from poc.report import build_report
from poc.report.wording import WORDS
from poc.verdict import decide

HOSTILE = (
    "</script><script>alert('x')</script><img src=\"http://evil.example/x\" onerror=alert(1)>\u202egnp.exe&'\"{{7*7}}"
)


def test_structure(english: Page) -> None:
    assert dict(english.tags)["html"]["lang"] == "en"
    levels = [level for level, _ in english.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = [attributes["id"] for _, attributes in english.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"] for tag, attributes in english.tags if tag == "a"]
    assert targets
    assert all(target[0] == "#" and target[1:] in ids for target in targets)
    names = [tag for tag, _ in english.tags]
    assert names.count("caption") == names.count("table") > 10
    assert all("scope" in attributes for tag, attributes in english.tags if tag == "th")
    plots = [attributes for _, attributes in english.tags if attributes.get("class") == "plot"]
    assert len(plots) == 5
    assert all(plot["role"] == "img" and len(plot["aria-label"]) > 40 for plot in plots)


def test_nothing_is_loaded_from_anywhere(english: Page) -> None:
    for tag, attributes in english.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in english.styles
    assert "@import" not in english.styles
    assert len(english.html) < 5_500_000


def test_the_policy_names_exactly_the_scripts_of_the_page(english: Page) -> None:
    policy = next(a["content"] for _, a in english.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    running = [text for attributes, text in english.scripts if "type" not in attributes]
    assert len(running) == 2
    for text in running:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]


@pytest.mark.parametrize("language", ["en", "ja"])
def test_hostile_log_content_stays_text(bench: Bench, language: str) -> None:
    bench.build(
        category=HOSTILE,
        titles=(HOSTILE, "fine"),
        tool=HOSTILE,
        name=HOSTILE,
        readiness=Readiness(level="NOT READY", override_reason=HOSTILE),
        environment=EnvironmentSettings(kind="python", target=HOSTILE),
        sampling=Sampling(categories=(HOSTILE,)),
    )
    assess(bench.workspace)
    decide(bench.workspace, "x1")
    page = Page(build_report(bench.workspace, "x1", language))  # type: ignore[arg-type]
    assert len(page.scripts) == 3
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.text.count("</script><script>alert('x')</script>") >= 6
    assert "{{7*7}}" in page.text
    assert "\u202e" not in page.html
    assert "[U+202E]gnp.exe" in page.text
    figures = json.loads(next(text for attributes, text in page.scripts if attributes.get("id") == "figures"))
    assert set(figures) == {"criteria", "success", "tokens", "latency", "progress"}


def test_first_line_of_a_simulated_report(bench: Bench) -> None:
    bench.build(simulated=True, environment=EnvironmentSettings(kind="python", target="poc.sample.world:World"))
    decide(bench.workspace, "x1")

    def page_of(language: str) -> str:
        return Page(build_report(bench.workspace, "x1", language)).text  # type: ignore[arg-type]

    for language, first in (
        ("en", "Simulated: this is not evidence."),
        ("ja", "シミュレーション：これは証拠ではありません。"),
    ):
        page = Page(build_report(bench.workspace, "x1", language))
        body = page.html[page.html.index("<body>") :]
        assert re.sub(r"<[^>]+>", "", body).strip().startswith(first)
    assert "simulated GO" in page_of("en") or "simulated INCONCLUSIVE" in page_of("en")


def test_real_results_carry_no_simulated_band(english: Page) -> None:
    assert "this is not evidence" not in english.text
    assert "built-in simulated agent" not in english.text.split("Glossary")[0]


def test_no_language_leaks_into_the_other(english: Page, japanese: Page) -> None:
    assert not re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", english.text)
    for key, entry in WORDS.table.items():
        for part in re.split(r"\{\w+\}", entry["en"]):
            if entry["en"] != entry["ja"] and len(re.findall(r"[A-Za-z]{3,}", part)) >= 3:
                assert part.strip() not in japanese.text, key
    # What is left in Latin letters is data, names, SQL or a term of the field.
    prose = japanese.text.split(WORDS.say("section.sources", "ja"))[-2]
    words = set(re.findall(r"[A-Za-z]{4,}", prose))
    data = {
        "Order", "Refund", "found", "paid", "World", "hand", "model", "asked", "reported", "host", "example", "world",
        "orders", "refund", "AUROC", "Holm", "PARTIAL", "READY", "INCONCLUSIVE", "localhost", "base", "ssssssssssss",
    }  # fmt: skip
    words -= {word for word in words if re.fullmatch("[0-9a-f]+", word)}
    assert words <= data | {"Error", "error"}, words - data


def test_the_same_numbers_in_both_languages(english: Page, japanese: Page) -> None:
    # Sorted, since the languages put "3 of 5" in different orders.
    both = [sorted((source, value) for source, value, _ in page.numbers) for page in (english, japanese)]
    assert both[0] == both[1]


def test_the_same_report_each_time(decided: Bench, english: Page) -> None:
    assert build_report(decided.workspace, "x1") == english.html


def test_override_reason_is_printed(bench: Bench) -> None:
    bench.build(readiness=Readiness(level="NOT READY", override_reason="The pilot starts on Monday."))
    decide(bench.workspace, "x1")
    page = Page(build_report(bench.workspace, "x1"))
    assert "The stated reason: The pilot starts on Monday." in page.text
    assert "The logs were NOT READY, and the check was overridden." in page.text


def test_unfinished_experiment_says_so(bench: Bench) -> None:
    bench.build(change=lambda key, row: None if key.position >= 20 else row)
    decide(bench.workspace, "x1")
    page = Page(build_report(bench.workspace, "x1"))
    assert "Not finished. 20 of 24 planned trials are in these figures." in page.text
    assert "INCONCLUSIVE The experiment is not finished" in page.text


def test_trials_after_the_verdict_say_so(bench: Bench) -> None:
    bench.build()
    decide(bench.workspace, "x1")
    assert "Out of date." not in Page(build_report(bench.workspace, "x1")).text
    with bench.workspace.write() as db:
        db.execute("UPDATE experiments SET merged_at = ?", [NOW.replace(year=2999)])
    assert "Out of date. Trials were stored after this verdict." in Page(build_report(bench.workspace, "x1")).text


def test_no_verdict_is_a_clear_error(bench: Bench) -> None:
    bench.build()
    with pytest.raises(InputError) as error:
        build_report(bench.workspace, "x1")
    assert "no verdict yet" in str(error.value)
    assert "poc decide" in str(error.value)


def test_no_trial_is_a_clear_error(bench: Bench) -> None:
    bench.build(change=lambda key, row: None)
    with pytest.raises(InputError, match="no finished trial yet"):
        build_report(bench.workspace, "x1")


def test_unknown_experiment_is_a_clear_error(decided: Bench) -> None:
    with pytest.raises(InputError, match=r"There is no experiment 'x2' in this workspace\. Known: x1"):
        build_report(decided.workspace, "x2")


def test_next_step_report_speaks_of_next_steps(bench: Bench) -> None:
    tasks = tuple(
        PlannedTask(task_id=task, task_key=task, category="orders", set_hash="s" * 64, cuts=((f"{task}-0", 1),))
        for task in ("t0", "t1", "t2", "t3")
    )
    bench.build(
        mode="next_step",
        tasks=tasks,
        environment=EnvironmentSettings(),
        change=lambda key, row: row | {"success_provenance": "next_step_quality", "stop_reason": "judged"},
    )
    assess(bench.workspace)
    decide(bench.workspace, "x1")
    page = Page(build_report(bench.workspace, "x1"))
    assert "Change in next-step quality" in page.text
    assert "Next-step quality by arm" in page.text
    assert page.row("advances an open subgoal")[1:] == ["38% of 8", "62% of 8", "62% of 8"]
    assert "Progress as steps are taken" not in page.text
    assert "Only the quality of next steps was measured" in page.text
    assert "Change in success" not in page.text


def test_few_tasks_and_their_limits_are_named(english: Page) -> None:
    assert "Only 4 tasks were compared." in english.text
    assert "The result holds for model-reported at the time of the run." in english.text
    assert "Tools were answered by the environment world:World." in english.text
