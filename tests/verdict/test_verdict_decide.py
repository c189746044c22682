from __future__ import annotations

import random
import string
from typing import Any

import pytest
from test_verdict_compare import log_runs, replay_steps
from verdict_bench import SUCCESS_ONLY, Bench

import poc.verdict
from poc.language import LANGUAGES
from poc.replay.experiment import PlannedTask, Readiness, Sampling, Thresholds
from poc.verdict import Verdict, decide, exit_code, load_verdict
from poc.verdict.decide import WORDS


def status(verdict: Verdict) -> dict[str, str]:
    return {line.criterion: line.status for line in verdict.criteria}


def keys(verdict: Verdict) -> list[str]:
    return [reason.key for reason in verdict.reasons]


def wobble(key, size: float = 0.02) -> float:
    """A little spread, so that ratios have an interval: depends on the trial alone, not on its plan."""
    return 1 + size * random.Random(f"{key.task.task_id}:{key.repeat}:{key.arm}").randint(-3, 3)


def gaining(share: int = 2):
    """The progress arm succeeds in every task, the control in every `share`-th; costs about alike."""

    def make(key) -> dict[str, Any]:
        won = key.arm == "progress" or int(key.task.task_id[1:]) % share == 0
        return {"success": float(won), "latency": wobble(key), "tokens": round(1000 * wobble(key))}

    return make


def level(key) -> dict[str, Any]:
    """No difference between the arms."""
    return {
        "success": float(int(key.task.task_id[1:]) % 2),
        "latency": wobble(key),
        "tokens": round(1000 * wobble(key)),
    }


def test_go(bench: Bench) -> None:
    bench.design(40)
    bench.fill(gaining())
    log_runs(bench, ["find"] * 2, 0.5, 40)
    replay_steps(bench, ["find"] * 2)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "GO"
    assert set(status(verdict).values()) == {"met"}
    assert exit_code(verdict) == 0
    assert keys(verdict)[0] == "headline.go"
    assert keys(verdict)[-1] == "next.canary"
    assert verdict.sentence().startswith("GO: arm progress raises success over arm none by 50.0 points (+")
    assert "40 tasks" in verdict.sentence()
    assert verdict.sentence("ja").startswith("GO：アームprogress")


def test_no_gain_in_many_tasks_is_no_go(bench: Bench) -> None:
    bench.design(80)
    bench.fill(level)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "NO-GO"
    assert exit_code(verdict) == 3
    assert keys(verdict)[0] == "success.broken"
    assert keys(verdict)[-1] == "next.leave"


def test_too_few_tasks_are_inconclusive_and_say_how_many_would_do(bench: Bench) -> None:
    bench.design(10, thresholds=SUCCESS_ONLY)
    bench.fill(lambda key: {"success": float(key.arm == "progress" and key.task.task_id in ("t0", "t1"))})
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert exit_code(verdict) == 4
    assert keys(verdict)[-1] == "next.tasks"
    # Differences 1, 1, eight 0 and the imagined +-1: variance (4 - 12/36) / 11 = 1/3. To show 5 points with 80 %
    # power: (1.96 + 0.8416)^2 / 3 / 0.05^2 = 1046.5, a little more by Student's t.
    assert verdict.tasks_needed in (1048, 1049)
    assert "this experiment had 10" in verdict.lines()[-1]


@pytest.mark.parametrize(
    ("figure", "criterion"),
    [
        ({"latency": 1.5}, "latency"),
        ({"tokens": 1800}, "tokens"),
        ({"repeated_irreversible": 1}, "repeated_irreversible"),
    ],
)
def test_a_cost_limit_surely_broken_is_no_go_despite_the_gain(bench: Bench, figure: dict, criterion: str) -> None:
    bench.design(40)

    def make(key):
        row = gaining()(key)
        if key.arm == "progress":
            row |= {name: value * wobble(key) if name == "latency" else value for name, value in figure.items()}
        return row

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "NO-GO"
    assert status(verdict)["success"] == "met"
    assert status(verdict)[criterion] == "broken"
    assert keys(verdict)[0] == f"{criterion}.broken"


def test_a_limit_switched_off_cannot_break(bench: Bench) -> None:
    bench.design(40, thresholds=SUCCESS_ONLY)

    def make(key):
        cost = {"latency": 9 * wobble(key), "repeated_irreversible": 3} if key.arm == "progress" else {}
        return {**gaining()(key), **cost}

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "GO"
    assert status(verdict)["latency"] == "off"


def test_a_limit_inside_the_interval_is_open(bench: Bench) -> None:
    bench.design(40, thresholds=Thresholds(latency_ratio_max=1.10, tokens_ratio_max=None))

    def make(key):
        factor = 1.08 if key.arm == "progress" else 1.0
        return {**gaining()(key), "latency": factor * wobble(key, 0.2)}

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "latency.open"
    assert keys(verdict)[-1] == "next.cost_tasks.latency"
    assert (verdict.tasks_needed or 0) > 40


def test_unknown_usage_is_open_and_asks_for_it(bench: Bench) -> None:
    bench.design(40)
    bench.fill(lambda key: {**gaining()(key), "tokens": None})
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert "tokens.unknown" in keys(verdict)
    assert keys(verdict)[-1] == "next.usage.tokens"
    assert verdict.comparison.tokens is None


def test_a_cost_that_never_varies_has_no_interval_and_says_so(bench: Bench) -> None:
    bench.design(40)
    bench.fill(lambda key: {**gaining()(key), "tokens": 1090 if key.arm == "progress" else 990})
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.reasons[0].values == {"ratio": "1.10", "tasks": 40, "limit": "1.15"}
    assert keys(verdict)[-1] == "next.constant.tokens"


def test_a_rise_that_could_be_chance_is_open(bench: Bench) -> None:
    bench.design(40)
    risky = ("t3",)

    def make(key):
        rise = int(key.arm == "progress" and key.task.task_id in risky)
        return {**gaining()(key), "repeated_irreversible": rise}

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "repeated_irreversible.open"


def test_an_unfinished_experiment_is_inconclusive_and_says_so(bench: Bench) -> None:
    bench.design(40)
    bench.fill(lambda key: None if key.position == 17 else gaining()(key))
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.sentence() == (
        "INCONCLUSIVE: The experiment is not finished: 79 of 80 planned trials are stored, "
        "and a verdict on a part would be a peek."
    )
    assert keys(verdict)[-1] == "next.resume"
    assert exit_code(verdict) == 4


def test_an_unfinished_experiment_is_no_no_go_either(bench: Bench) -> None:
    bench.design(80)
    bench.fill(lambda key: None if key.position == 0 else level(key))
    assert decide(bench.workspace, "x1").verdict == "INCONCLUSIVE"


def test_a_planned_experiment_without_a_trial(bench: Bench) -> None:
    bench.design(5, simulated=None)
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "complete.broken"
    assert load_verdict(bench.workspace, "x1") == verdict


def test_next_step_quality_cannot_give_go(bench: Bench) -> None:
    tasks = tuple(PlannedTask(task_id=f"t{i}", category="c", set_hash="s", cuts=((f"r{i}", 1),)) for i in range(40))
    bench.design(mode="next_step", tasks=tasks, thresholds=SUCCESS_ONLY)
    bench.fill(lambda key: {**gaining()(key), "success_provenance": "next_step_quality"})
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict)["next_step_quality"] == "met"
    assert keys(verdict)[0] == "independent_outcome.next_step"
    assert keys(verdict)[-1] == "next.environment"
    assert "note.next_step" in keys(verdict)


def test_next_step_costs_decide_nothing(bench: Bench) -> None:
    tasks = tuple(PlannedTask(task_id=f"t{i}", category="c", set_hash="s", cuts=((f"r{i}", 1),)) for i in range(40))
    bench.design(mode="next_step", tasks=tasks)

    def make(key):
        tokens = round((3000 if key.arm == "progress" else 1000) * wobble(key))
        return {**gaining()(key), "tokens": tokens, "success_provenance": "next_step_quality"}

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert status(verdict)["tokens"] == "broken"
    assert verdict.verdict == "INCONCLUSIVE"


def test_subgoals_as_judge_cannot_give_go(bench: Bench) -> None:
    bench.design(40)
    bench.fill(lambda key: {**gaining()(key), "success_provenance": "subgoals"})
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "independent_outcome.subgoals"


def test_failed_trials_do_not_say_who_judged(bench: Bench) -> None:
    bench.design(40)

    def make(key):
        if key.position < 2:
            return {**gaining()(key), "success": 0.0, "status": "failed", "success_provenance": "subgoals"}
        return gaining()(key)

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert verdict.comparison.provenance == ("environment",)
    assert status(verdict)["independent_outcome"] == "met"


def test_when_every_trial_failed_nobody_judged(bench: Bench) -> None:
    bench.design(40)
    bench.fill(lambda key: {**level(key), "status": "failed"})
    verdict = decide(bench.workspace, "x1")
    assert "independent_outcome.unjudged" in keys(verdict)


def test_unjudged_trials_that_could_undo_the_gain_forbid_go(bench: Bench) -> None:
    bench.design(40)

    def make(key):
        row = gaining()(key)
        if key.arm == "none" and int(key.task.task_id[1:]) % 2 == 1:
            row |= {"success": None, "success_provenance": None}
        return row

    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert status(verdict)["success"] == "met"
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "independent_outcome.ungraded"
    assert keys(verdict)[-1] == "next.judge"


def test_another_agent_than_the_logged_one_is_inconclusive(bench: Bench) -> None:
    bench.design(40)
    bench.fill(gaining())
    log_runs(bench, ["find", "find"], 1.0, 40)
    replay_steps(bench, ["find", "find"])
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.reasons[0].values == {"replayed": "50", "logged": "100"}
    assert keys(verdict)[-1] == "next.fidelity"


def test_a_large_difference_that_could_be_chance_is_open_and_forbids_nothing(bench: Bench) -> None:
    bench.design(40)
    bench.fill(gaining())
    log_runs(bench, ["find", "find"], 1.0, 3)  # three tasks, one of which the control fails
    replay_steps(bench, ["find", "find"])
    verdict = decide(bench.workspace, "x1")
    assert verdict.comparison.fidelity.unclear_in == ("success",)
    assert status(verdict)["fidelity"] == "open"
    assert "fidelity.unclear_success" in keys(verdict)
    assert verdict.verdict == "GO"


def test_subgoals_made_from_the_replayed_tasks_forbid_go(bench: Bench) -> None:
    bench.design(40, made_from='["k3"]')
    bench.fill(gaining())
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "split_by_task.broken"
    assert keys(verdict)[-1] == "next.split"


def test_sets_that_do_not_name_their_sources_are_mentioned(bench: Bench) -> None:
    bench.design(40, made_from="[]")
    bench.fill(gaining())
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "GO"
    assert status(verdict)["split_by_task"] == "open"
    assert "split_by_task.open" in keys(verdict)


@pytest.mark.parametrize(("make", "word"), [(gaining(), "GO"), (level, "NO-GO")])
def test_simulated_is_marked_and_has_an_exit_code_of_its_own(bench: Bench, make, word: str) -> None:
    bench.design(80, simulated=True)
    bench.fill(make)
    verdict = decide(bench.workspace, "x1")
    assert (verdict.verdict, verdict.simulated, exit_code(verdict)) == (word, True, 5)
    assert verdict.sentence().startswith(f"simulated {word}: ")
    assert verdict.sentence("ja").startswith(f"シミュレーションでの{word}：")
    assert "note.simulated" in keys(verdict)


def test_a_simulated_model_that_does_not_know_the_tools_decides_nothing(bench: Bench) -> None:
    bench.design(80, simulated=True)
    bench.fill(level)
    mark = {"trial_id": bench.plan.trials()[5].trial_id, "judge": "simulated_unknown_tools", "value": True}
    bench.insert("judgements", [mark])
    verdict = decide(bench.workspace, "x1")
    assert verdict.verdict == "INCONCLUSIVE"
    assert keys(verdict)[0] == "known_tools.broken"
    assert exit_code(verdict) == 5


def test_override_floor_and_sampling_are_printed(bench: Bench) -> None:
    bench.design(
        40,
        sampling=Sampling(how="random", frame=90),
        readiness=Readiness(level="NOT READY", override_reason="pilot {braces} <b>"),
    )
    bench.fill(lambda key: {"success": 0.0, "latency": wobble(key)})
    verdict = decide(bench.workspace, "x1")
    lines = verdict.lines()
    assert any("NOT READY" in line and "pilot {braces} <b>" in line for line in lines)
    assert any("succeeds in 0% only" in line for line in lines)
    assert any("40 of 90 tasks" in line for line in lines)


def test_same_trials_same_hash_and_text_and_one_stored_row(bench: Bench) -> None:
    bench.design(20)
    bench.fill(gaining())
    one = decide(bench.workspace, "x1")
    two = decide(bench.workspace, "x1")
    assert one.verdict_hash == two.verdict_hash
    assert (one.sentence(), one.lines("ja")) == (two.sentence(), two.lines("ja"))
    assert bench.workspace.value("SELECT count(*) FROM verdicts") == 1
    assert bench.workspace.value("SELECT count(*) FROM criteria") == len(one.criteria)
    with bench.workspace.write() as db:
        db.execute("UPDATE trials SET success = 0 WHERE position = 3")
    three = decide(bench.workspace, "x1")
    assert three.verdict_hash != one.verdict_hash
    assert bench.workspace.value("SELECT count(*) FROM verdicts") == 2
    assert load_verdict(bench.workspace, "x1") == three


def test_what_is_stored_comes_back_whole(bench: Bench) -> None:
    bench.design(12)
    assert load_verdict(bench.workspace, "x1") is None
    bench.fill(gaining())
    verdict = decide(bench.workspace, "x1")
    assert load_verdict(bench.workspace, "x1") == verdict
    row = bench.workspace.rows("SELECT * FROM criteria WHERE criterion = 'success'")[0]
    assert row["value"] == verdict.comparison.primary.outcome.interval.estimate
    assert row["low"] == verdict.comparison.primary.outcome.interval.low
    stored = bench.workspace.value("SELECT (numbers->>'$.primary.outcome.interval.estimate')::DOUBLE FROM verdicts")
    assert stored == row["value"]


def test_criteria_frame_speaks(bench: Bench) -> None:
    bench.design(12)
    bench.fill(gaining())
    verdict = decide(bench.workspace, "x1")
    frame = verdict.criteria_frame("ja")
    assert list(frame["criterion"])[:4] == ["success", "latency", "tokens", "repeated_irreversible"]
    assert list(frame["unit"])[:4] == ["points", "ratio", "ratio", "number"]
    assert list(frame["gate"]) == [False] * 4 + [True] * 5
    assert "成功率" in frame["reason"][0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_can_be_spoken(language) -> None:
    for key, entry in WORDS.table.items():
        places = {name: "x" for _, name, _, _ in string.Formatter().parse(entry["en"]) if name}
        spoken = WORDS.say(key, language, **places)
        assert "{" not in spoken
        assert spoken.strip() == spoken
        assert entry["en"] != entry["ja"]


def test_public_names_are_listed() -> None:
    assert len(set(poc.verdict.__all__)) == len(poc.verdict.__all__)
    assert all(hasattr(poc.verdict, name) for name in poc.verdict.__all__)
