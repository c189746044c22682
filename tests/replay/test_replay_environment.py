"""A user's own class as an environment: loading, contract, errors, time limits."""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

import pytest
import replay_bench as bench

from poc.errors import InputError
from poc.replay.environments import Environment, EnvironmentTask
from poc.replay.environments.loading import absolute_target
from poc.replay.environments.python import PythonEnvironments

TASK = EnvironmentTask(task_id="t", task_key="t", text="Paint item 1 in red")
WHOLE = """
class World:
    def tools(self): return [{tools}]
    def instructions(self): return "Hello"
    async def reset(self, task, seed): self.n = seed
    def call(self, name, arguments): {call}
    def outcome(self): return {outcome}
    def close(self): pass
"""


def write(folder: Path, *, tools: str = "", call: str = "return 'ok'", outcome: str = "None", name: str = "w") -> str:
    path = folder / f"{name}.py"
    text = WHOLE.replace("{tools}", tools).replace("{call}", call).replace("{outcome}", outcome)
    path.write_text(text)
    return f"{path}:World"


def test_the_desk_keeps_the_contract():
    async def work():
        environment = PythonEnvironments(bench.DESK).new()
        assert isinstance(environment, Environment)
        assert [tool.name for tool in environment.tools()] == ["look_up", "paint", "send", "explode"]
        assert environment.instructions() == "You work at a paint desk."
        await environment.reset(TASK, 7)
        looked = await environment.call("look_up", {"item": "1"})
        assert looked.content == '{"item": "1", "colour": "white", "owner": "ann1@example.com"}'
        assert (await environment.call("explode", {})).content == "Error: RuntimeError: boom"
        assert (await environment.call("explode", {})).is_error
        await environment.call("paint", {"item": "1", "colour": "red"})
        await environment.call("send", {"item": "1"})
        outcome = await environment.outcome()
        await environment.close()
        await environment.close()
        return outcome

    outcome = asyncio.run(work())
    assert outcome is not None
    assert outcome.value == 1.0


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("nonsense", "does not name an environment"),
        ("no_such_module_at_all:World", "There is no module 'no_such_module_at_all'"),
        ("nowhere/at_all.py:World", "There is no such file"),
        ("poc.tokens:counted", "Known|There is no"),
        ("poc.tokens:FALLBACK", "no class and no function"),
    ],
)
def test_a_target_that_cannot_be_found(target, told):
    with pytest.raises(InputError, match=told):
        PythonEnvironments(target)


def test_a_near_miss_is_suggested(tmp_path):
    with pytest.raises(InputError, match='Did you mean "World"'):
        PythonEnvironments(write(tmp_path).replace(":World", ":Wrld"))


@pytest.mark.parametrize(
    ("text", "told", "where"),
    [
        ("x = (\n", "SyntaxError", "line 1"),
        ("import json\nimport surely_not_there\n", "ModuleNotFoundError", "line 2"),
        ("\n\n1 / 0\n", "ZeroDivisionError", "line 3"),
    ],
)
def test_a_module_that_fails_is_told_with_its_line(tmp_path, text, told, where):
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        PythonEnvironments(f"{path}:World")
    assert where in str(caught.value.where)


def test_missing_methods_are_named(tmp_path):
    path = tmp_path / "half.py"
    path.write_text("class World:\n    def tools(self): return []\n    def close(self): pass\n")
    with pytest.raises(InputError, match=r"instructions\(\), reset\(\), call\(\), outcome\(\)"):
        PythonEnvironments(f"{path}:World")
    path2 = tmp_path / "made.py"
    path2.write_text("def make():\n    return object()\n")
    with pytest.raises(InputError, match=r"lacks: tools\(\)"):
        PythonEnvironments(f"{path2}:make").new()


@pytest.mark.parametrize(
    ("tools", "told"),
    [("3", "no tool"), ('{"name": "a", "effect": "huge"}', "huge"), ('{"name": "a"}, {"name": "a"}', "twice: a")],
)
def test_bad_tools(tmp_path, tools, told):
    with pytest.raises(InputError, match=told):
        PythonEnvironments(write(tmp_path, tools=tools)).new().tools()


def test_tools_as_the_api_takes_them(tmp_path):
    function = '{"name": "a", "description": "d", "parameters": {"type": "object"}}'
    tools = f'{{"type": "function", "function": {function}, "effect": "read"}}'
    tool = PythonEnvironments(write(tmp_path, tools=tools)).new().tools()[0]
    assert (tool.name, tool.description, tool.parameters, tool.effect) == ("a", "d", {"type": "object"}, "read")


@pytest.mark.parametrize(
    ("outcome", "value"), [("True", 1.0), ("0.25", 0.25), ("None", None), ("2", InputError), ("'yes'", InputError)]
)
def test_outcomes(tmp_path, outcome, value):
    environment = PythonEnvironments(write(tmp_path, outcome=outcome)).new()
    if value is InputError:
        with pytest.raises(InputError, match=r"must be 0\.\.1"):
            asyncio.run(environment.outcome())
        return
    found = asyncio.run(environment.outcome())
    assert (None if found is None else found.value) == value


def test_a_call_that_takes_too_long_may_still_take_effect(tmp_path):
    target = write(tmp_path, call="import time; time.sleep(30)")
    started = time.monotonic()
    environment = PythonEnvironments(target, call_timeout_s=0.1).new()
    result = asyncio.run(environment.call("a", {}))
    assert time.monotonic() - started < 20
    assert (result.is_error, result.effect_unknown) == (True, True)
    assert "may still take effect" in result.content


def test_a_timeout_of_the_tools_own_is_an_ordinary_error(tmp_path):
    target = write(tmp_path, call="raise TimeoutError('upstream')")
    result = asyncio.run(PythonEnvironments(target).new().call("a", {}))
    assert (result.content, result.effect_unknown) == ("Error: TimeoutError: upstream", False)


def test_plain_methods_of_one_trial_share_a_thread(tmp_path):
    """SQLite connections know only the thread that opened them."""
    path = tmp_path / "db_world.py"
    path.write_text(
        """
import sqlite3, threading
class World:
    def __init__(self): self.db = sqlite3.connect(":memory:"); self.made_in = threading.get_ident()
    def tools(self): return []
    def instructions(self): return ""
    def reset(self, task, seed): self.db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    def call(self, name, arguments):
        self.db.execute("INSERT INTO t VALUES (1)")
        same = threading.get_ident() == self.made_in
        return {"rows": self.db.execute("SELECT count(*) FROM t").fetchone()[0], "same": same}
    def outcome(self): return self.db.execute("SELECT count(*) FROM t").fetchone()[0] == 2
    def close(self): self.db.close()
"""
    )

    async def work():
        environments = PythonEnvironments(f"{path}:World")
        one, other = environments.new(), environments.new()
        await one.reset(TASK, 0)
        await other.reset(TASK, 0)
        assert (await one.call("a", {})).content == '{"rows": 1, "same": true}'
        assert (await one.call("a", {})).content == '{"rows": 2, "same": true}'
        outcomes = [await one.outcome(), await other.outcome()]
        await one.close()
        await other.close()
        return [outcome.value for outcome in outcomes if outcome]

    assert asyncio.run(work()) == [1.0, 0.0]
    assert sqlite3.threadsafety >= 1
    assert not [thread for thread in threading.enumerate() if thread.name == "poc-environment" and not thread.daemon]


def test_a_slow_tool_does_not_hold_up_other_trials(tmp_path):
    """Both calls wait for each other: they end only when they run at the same time."""
    path = tmp_path / "meeting.py"
    path.write_text(
        """
import threading
MEETING = threading.Barrier(2, timeout=20)
class World:
    def tools(self): return []
    def instructions(self): return ""
    def reset(self, task, seed): pass
    def call(self, name, arguments): MEETING.wait(); return "met"
    def outcome(self): return None
    def close(self): pass
"""
    )

    async def work():
        environments = PythonEnvironments(f"{path}:World")
        both = [environments.new(), environments.new()]
        return await asyncio.gather(*(one.call("a", {}) for one in both))

    assert [result.content for result in asyncio.run(work())] == ["met", "met"]


def test_file_targets_become_absolute(monkeypatch):
    path = Path(bench.desk_world.__file__)
    monkeypatch.chdir(path.parent)
    assert absolute_target("desk_world.py:Desk") == bench.DESK
    assert absolute_target("poc.sample.world:World") == "poc.sample.world:World"
