"""Each page through Streamlit's own test harness: full, empty, broken, in both languages."""

import re
import threading
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from poc import api, jobs

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("start", "data", "readiness", "subgoals", "progress", "replay", "decision")
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


def open_page(name: str = "start", *, language: str = "en", **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.query_params["lang"] = language
    for key, value in address.items():
        app.query_params[key] = value
    app.run()
    if name != "start":
        app.switch_page(f"poc/ui/pages/{name}.py")
        for key, value in address.items():
            app.query_params[key] = value
        app.run()
    return app


def texts(app: AppTest) -> str:
    kinds = (
        app.title,
        app.subheader,
        app.markdown,
        app.caption,
        app.text,
        app.info,
        app.success,
        app.warning,
        app.error,
    )
    return "\n".join(str(element.value) for kind in kinds for element in kind).replace("\\", "")


def fine(app: AppTest) -> AppTest:
    assert [element.value for element in app.exception] == []
    assert [element.value for element in app.error] == []
    return app


def until(condition) -> None:
    tick = threading.Event()
    for _ in range(3000):
        if condition():
            return
        tick.wait(0.03)
    pytest.fail("did not happen in time")


def finished(workspace: api.Workspace, verb: str) -> jobs.Job:
    until(lambda: (job := jobs.latest(workspace, verb)) is not None and not job.running)
    job = jobs.latest(workspace, verb)
    assert job is not None
    assert job.state == "done", job.error
    return job


EXPECTED = {
    "start": "Logs alone",
    "data": "read single runs",
    "readiness": "Tools and what they do to the world",
    "subgoals": "Valid: category",
    "progress": "Final progress against the outcome",
    "replay": "Finished",
    "decision": "this is not evidence",
}


@pytest.mark.parametrize("name", PAGES)
def test_page_shows_an_evaluated_workspace(evaluated, name):
    app = fine(open_page(name))
    assert EXPECTED[name] in texts(app)


@pytest.mark.parametrize("name", PAGES)
def test_page_in_japanese_leaves_no_label_untranslated(evaluated, name):
    app = fine(open_page(name, language="ja"))
    assert JAPANESE.search(app.title[0].value)
    kinds = (app.button, app.text_input, app.selectbox, app.multiselect, app.text_area, app.number_input, app.expander)
    # What comes from the data (tool names, ids, arms) stays as it is.
    labels = [element.label for kind in kinds for element in kind if element.label.strip()]
    own = [label for label in labels if not re.match(r":(green|red|orange)\[", label)]
    assert [label for label in own if not JAPANESE.search(label)] == []


@pytest.mark.parametrize("name", PAGES)
def test_page_on_an_empty_workspace_says_what_to_do(fresh, name):
    app = fine(open_page(name))
    assert any(word in texts(app) for word in ("yet", "empty", "first", "needs"))


def test_sidebar_names_each_stage_and_the_next_thing(fresh, evaluated, monkeypatch):
    app = fine(open_page())
    listed = "\n".join(element.value for element in app.sidebar.markdown)
    for name in PAGES[1:]:
        assert name.capitalize() in listed
    monkeypatch.setenv("POC_WORKSPACE", str(fresh))
    assert "import your logs" in "".join(element.label for element in open_page().sidebar.get("page_link"))


def test_a_missing_file_is_offered_to_be_created(tmp_path, monkeypatch):
    path = tmp_path / "new.duckdb"
    monkeypatch.setenv("POC_WORKSPACE", str(path))
    app = fine(open_page("data"))
    assert not path.exists()
    next(button for button in app.button if button.label == "Create it here").click().run()
    fine(app)
    assert path.exists()
    assert "No runs yet" in texts(app)


def test_a_file_that_is_no_workspace_is_an_error_in_words(tmp_path, monkeypatch):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at" * 200)
    monkeypatch.setenv("POC_WORKSPACE", str(path))
    app = open_page("data")
    assert not app.exception
    assert "not a DuckDB database" in app.error[0].value
    assert "What to do" in app.error[0].value
    assert path.read_text().startswith("not a database")


def test_a_link_cannot_make_a_file(evaluated, tmp_path):
    ghost = tmp_path / "ghost.duckdb"
    app = fine(open_page(workspace=str(ghost)))
    assert not ghost.exists()
    assert app.session_state["workspace"] == str(evaluated)


def test_a_run_is_read_by_its_link(evaluated):
    workspace = api.open(evaluated)
    runs = api.frames.runs(workspace, limit=1)
    run_id, native_id = runs["run_id"].iloc[0], runs["native_id"].iloc[0]
    app = fine(open_page("data", run=run_id))
    assert f"Run {native_id}" in texts(app)
    steps = api.frames.steps(workspace, run_id)
    opened = [box.label for box in app.expander]
    for tool in steps["tool"]:
        assert any(tool in label.replace("\\", "") for label in opened)


def test_an_unknown_run_in_a_link_is_an_error_in_words(evaluated):
    app = open_page("data", run="nowhere")
    assert not app.exception
    assert "no run" in app.error[0].value


def test_bad_yaml_names_its_line_and_cannot_be_stored(evaluated):
    app = fine(open_page("subgoals"))
    editor = app.text_area[0]
    editor.set_value(editor.value.replace("subgoals:", "subgoal:", 1)).run()
    assert "line" in app.error[0].value
    assert not [button for button in app.button if button.label == "Store and score"]


def test_a_changed_set_is_stored_and_scored(evaluated):
    workspace = api.open(evaluated)
    app = fine(open_page("subgoals"))
    editor = app.text_area[0]
    editor.set_value(editor.value.replace("title: Order found and read", "title: Order looked up", 1)).run()
    fine(app)
    next(button for button in app.button if button.label == "Store and score").click().run()
    fine(app)
    finished(workspace, "score")
    assert "Order looked up" in set(api.frames.subgoal_counts(workspace)["title"])


def test_the_report_waits_for_nobody_and_speaks_both_languages(evaluated):
    app = fine(open_page("decision"))
    labels = [element.label for element in app.get("download_button")]
    assert labels == ["Download the report (English)", "Download the report (日本語)"]


def test_an_undecided_experiment_is_decided_on_request(evaluated):
    workspace = api.open(evaluated)
    with workspace.write() as db:
        db.execute("DELETE FROM verdicts")
        db.execute("DELETE FROM criteria")
    app = fine(open_page("decision"))
    next(button for button in app.button if button.label == "Decide").click().run()
    assert "this is not evidence" in texts(fine(app))
    assert api.load_verdict(workspace, api.latest_experiment(workspace)) is not None


def test_from_the_sample_one_gets_to_a_workspace_of_ones_own(evaluated, tmp_path, monkeypatch):
    monkeypatch.setattr("poc.ui.own.SAMPLE", tmp_path / "workspaces" / "sample.duckdb")
    with api.open(evaluated).write() as db:
        db.execute("INSERT INTO meta VALUES ('sample', '1')")
    app = fine(open_page())
    assert "simulated agent" in texts(app)
    next(box for box in app.text_input if box.label == "Name of the new workspace").set_value("../escape")
    create = next(button for button in app.button if button.label == "Create and open")
    create.click().run()
    assert "letters" in app.warning[0].value
    next(box for box in app.text_input if box.label == "Name of the new workspace").set_value("team-a")
    next(button for button in app.button if button.label == "Create and open").click().run()
    assert (tmp_path / "workspaces" / "team-a.duckdb").is_file()
    assert "No runs yet" in texts(fine(app))


def test_logs_do_not_go_into_the_sample(evaluated):
    with api.open(evaluated).write() as db:
        db.execute("INSERT INTO meta VALUES ('sample', '1')")
    app = fine(open_page("data"))
    assert not [button for button in app.button if button.label == "Import"]


def test_log_content_is_text_not_markup(evaluated):
    workspace = api.open(evaluated)
    run_id = api.frames.runs(workspace, limit=1)["run_id"].iloc[0]
    with workspace.write() as db:
        db.execute("UPDATE runs SET native_id = '**bold** <b>x</b> :red[y] $a$' WHERE run_id = ?", [run_id])
    app = fine(open_page("data", run=run_id))
    shown = next(element.value for element in app.subheader if element.value.startswith("Run"))
    assert "\\*\\*bold\\*\\*" in shown
    assert "\\$a\\$" in shown
    assert "\\[y\\]" in shown


def test_the_first_start_builds_the_sample_and_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.delenv("POC_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    app = fine(open_page())
    assert "Building the sample workspace" in texts(app)
    assert "sample" in "".join(element.value for element in app.sidebar.markdown)
    workspace = api.Workspace(tmp_path / "workspaces" / "sample.duckdb")
    job = jobs.latest(workspace, "sample")
    assert job is not None
    # A second tab, or a reload, watches the same work.
    assert "Building the sample workspace" in texts(open_page())
    assert len(jobs.jobs(workspace)) == 1
    jobs.cancel(job, force=True)
    until(lambda: not job.running)
    app = open_page()
    assert "not finished" in app.error[0].value
    assert [button.label for button in app.main.button] == ["Build it again"]


def test_a_table_is_imported_with_a_mapping_that_was_corrected(fresh, tmp_path):
    table = tmp_path / "own.csv"
    table.write_text(
        "session,what_was_called,args,answer\n"
        'a,get_order,"{""id"": 1}",ok\n'
        'a,cancel_order,"{""id"": 1}",done\n'
        'b,get_order,"{""id"": 2}",ok\n'
    )
    app = fine(open_page("data"))
    app.text_area(key="log-paths").set_value(str(table)).run()
    assert "Columns of the table own.csv" in texts(fine(app))
    assert app.selectbox(key="map-own.csv-arguments").value == "args"
    assert app.selectbox(key="map-own.csv-tool").value == ""
    for field, column in {"tool": "what_was_called", "result": "answer", "run_id": "session"}.items():
        app.selectbox(key=f"map-own.csv-{field}").set_value(column)
    app.run()
    # The first rows show what was chosen; the mapping can be kept as it stands.
    (shown,) = (element.value for element in app.dataframe)
    assert list(shown.columns) == ["Tool name", "Arguments", "Result", "Run (session, trace)"]
    assert shown["Tool name"].tolist() == ["get_order", "cancel_order", "get_order"]
    assert app.get("download_button")[0].proto.label == "Save this mapping"
    next(button for button in app.button if button.label == "Import").click().run()
    workspace = api.open(fresh)
    job = finished(workspace, "import")
    assert job.result is not None
    assert (job.result["read"], job.result["runs"], job.result["steps"]) == (3, 2, 3)
    assert "Import finished: 2 runs with 3 steps" in texts(fine(app.run()))


def test_a_table_without_run_ids_is_cut_where_it_falls_silent(fresh, tmp_path):
    table = tmp_path / "silent.csv"
    rows = ["10:00:00", "10:05:00", "10:50:00", "13:00:00"]
    table.write_text("tool,result,started_at\n" + "".join(f"look,ok,2026-11-30T{time}Z\n" for time in rows))
    app = fine(open_page("data"))
    app.text_area(key="log-paths").set_value(str(table)).run()
    minutes = app.number_input(key="map-gap-silent.csv")
    assert minutes.value == 30.0  # as suggested
    minutes.set_value(60.0).run()
    next(button for button in app.button if button.label == "Import").click().run()
    job = finished(api.open(fresh), "import")
    assert job.result is not None
    assert (job.result["runs"], job.result["steps"]) == (2, 4)


def test_a_path_that_is_not_there_is_an_error_in_words(fresh):
    app = fine(open_page("data"))
    app.text_area(key="log-paths").set_value("/nowhere/log.jsonl").run()
    next(button for button in app.button if button.label == "Import").click().run()
    job = jobs.latest(api.open(fresh), "import")
    assert job is not None
    until(lambda: not job.running)
    app.run()
    assert not app.exception
    assert "/nowhere/log.jsonl" in app.error[0].value.replace("\\", "")


def test_rejects_are_browsed_by_reason(fresh, tmp_path):
    log = tmp_path / "log.jsonl"
    good = '{"messages": [{"role": "user", "content": "hi"}]}'
    log.write_text("\n".join([good, "broken", '{"messages": []}', good, "{", *["[]"] * 60]))
    api.import_logs(api.open(fresh), log)
    app = fine(open_page("data"))
    assert "Every record" in texts(app) or app.selectbox(key="reject-reason-").value == ""
    reason = app.selectbox(key="reject-reason-")
    empty = next(option for option in reason.options if option.startswith("an empty list"))
    reason.set_value(empty).run()
    shown = next(element.value for element in app.dataframe if "place" in element.value.columns)
    assert set(shown["reason"].str.startswith("an empty list")) == {True}
    assert len(shown) == 50  # a page of 60


def test_a_finding_shows_the_steps_behind_it(fresh, tmp_path):
    log = tmp_path / "calls.jsonl"
    log.write_text(
        "".join(
            f'{{"run_id": "r{n // 4}", "tool": "look", "args": {{"n": 1}}, "output": "ok", "question": "q"}}\n'
            for n in range(8)
        )
    )
    api.import_logs(api.open(fresh), log)
    app = fine(open_page("readiness"))
    labels = [button.proto.label for button in app.get("download_button")]
    assert labels[:2] == ["To-do list (Markdown)", "To-do list (CSV)"]
    app.toggle(key="cases-repeat_at_once").set_value(True).run()
    cases = next(element.value for element in fine(app).dataframe if "excerpt" in element.value.columns)
    assert cases["step"].tolist() == [1, 2, 3, 1, 2, 3]
    assert set(cases["excerpt"]) == {'{"n": 1}'}
