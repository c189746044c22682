"""A team's own Python class as an environment.

The target is ``module:Class`` or ``path/to/file.py:Class``; the class is
called without arguments, once a trial. Methods may be plain or `async`;
plain ones of one trial all run in one thread of their own, so that a class
may hold a connection that knows only its thread (SQLite) and a slow call
does not hold up other trials.

An exception in a tool is told to the model as an error, as a tool server
would. A call that takes too long comes back as an error whose effect is
unknown: it may still have been carried out. Knows no task, model or arm.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import queue
import threading
from collections.abc import Callable
from typing import Any

from poc.errors import InputError, PocError
from poc.replay.environments.base import EnvironmentTask, ToolResult
from poc.replay.environments.loading import load_target
from poc.trajectory import Outcome, ToolSchema

METHODS = ("tools", "instructions", "reset", "call", "outcome", "close")
DEFAULT_CALL_TIMEOUT_S = 60.0
_RESET_TIMEOUT_S = 300.0


class PythonEnvironments:
    """Makes one environment for each trial from a target. Loading happens once, here."""

    def __init__(self, target: str, *, call_timeout_s: float = DEFAULT_CALL_TIMEOUT_S) -> None:
        self.target = target
        self.call_timeout_s = call_timeout_s
        self._factory = load_target(target)
        if isinstance(self._factory, type):
            _check_methods(self._factory, target)

    def new(self) -> PythonEnvironment:
        """A fresh environment. Raises `InputError` when the class fails or lacks a method."""
        return PythonEnvironment(self._factory, self.target, self.call_timeout_s)


class PythonEnvironment:
    """Keeps the contract `Environment` over an object of the team's own."""

    def __init__(self, factory: Callable[[], Any], target: str, call_timeout_s: float) -> None:
        self._target = target
        self._timeout_s = call_timeout_s
        self._thread = _Thread()
        try:
            self._inner = self._thread.now(factory)
            _check_methods(self._inner, target)
        except PocError:
            self._thread.stop()
            raise
        except Exception as error:
            self._thread.stop()
            raise self._broken("cannot be made", error) from error

    def tools(self) -> list[ToolSchema]:
        """The tools of the object: `ToolSchema`, or dictionaries as OpenAI's API takes them plus ``effect``."""
        try:
            offered = list(self._thread.now(self._inner.tools))
        except Exception as error:
            raise self._broken("cannot list its tools", error) from error
        schemas = [_schema(tool, self._target) for tool in offered]
        names = [schema.name for schema in schemas]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"The environment offers a tool twice: {', '.join(twice)}.", where=self._target)
        return schemas

    def instructions(self) -> str:
        """The object's system prompt."""
        try:
            text = self._thread.now(self._inner.instructions)
        except Exception as error:
            raise self._broken("cannot give its instructions", error) from error
        if not isinstance(text, str):
            raise InputError("The environment's instructions() must return a text.", where=self._target)
        return text

    async def reset(self, task: EnvironmentTask, seed: int) -> None:
        """Start the task anew. Raises `InputError` for whatever goes wrong: nothing was paid yet."""
        try:
            await self._run(self._inner.reset, task, seed, timeout_s=_RESET_TIMEOUT_S)
        except PocError:
            raise
        except _TooLong as error:
            raise InputError(f"reset() took longer than {_RESET_TIMEOUT_S:g} s.", where=self._target) from error
        except Exception as error:
            raise self._broken(f"cannot start task '{task.task_key or task.task_id}'", error) from error

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Make one tool call; never raises for what the tool does."""
        try:
            value = await self._run(self._inner.call, name, arguments, timeout_s=self._timeout_s)
            return _result(value)
        except _TooLong:
            text = f"Error: the call took longer than {self._timeout_s:g} s. It may still take effect."
            return ToolResult(content=text, is_error=True, effect_unknown=True)
        except Exception as error:
            return ToolResult(content=f"Error: {type(error).__name__}: {error}", is_error=True)

    async def outcome(self) -> Outcome | None:
        """The object's own check: an `Outcome`, a number 0..1, a truth value, or None when it cannot tell."""
        try:
            value = await self._run(self._inner.outcome, timeout_s=self._timeout_s)
        except Exception as error:
            raise self._broken("cannot tell the outcome", error) from error
        if value is None or isinstance(value, Outcome):
            return value
        if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
            return Outcome(value=float(value), provenance="environment")
        raise InputError(f"outcome() returned {value!r}; it must be 0..1 or None.", where=self._target)

    async def close(self) -> None:
        """Close the object and let its thread go. Safe to call twice."""
        if self._thread.stopped:
            return
        # The trial is judged by now: what goes wrong in tidying up changes nothing in it.
        with contextlib.suppress(Exception):
            await self._run(self._inner.close, timeout_s=self._timeout_s)
        self._thread.stop()

    def release(self) -> None:
        """Let the thread go without `close`, for one that was only asked for its tools."""
        self._thread.stop()

    async def _run(self, method: Callable[..., Any], *arguments: Any, timeout_s: float) -> Any:
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                if inspect.iscoroutinefunction(method):
                    return await method(*arguments)
                value = await self._thread.later(method, *arguments)
                return await value if inspect.isawaitable(value) else value
        except TimeoutError as error:
            if limit.expired():
                raise _TooLong from error
            raise  # the object's own TimeoutError

    def _broken(self, what: str, error: Exception) -> InputError:
        return InputError(
            f"The environment {what}: {type(error).__name__}: {error}",
            where=self._target,
            todo="Mend the environment; the experiment can then be resumed.",
        )


class _TooLong(Exception):
    """Our own time limit, as against a `TimeoutError` that the object raised."""


class _Thread:
    """One daemon thread that runs what it is given, in order. A stuck call cannot keep the program from ending."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.stopped = False
        threading.Thread(target=self._serve, name="poc-environment", daemon=True).start()

    def _serve(self) -> None:
        while (job := self._work.get()) is not None:
            job()

    def now(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run in the thread and wait, without an event loop."""
        done = threading.Event()
        box: list[tuple[Any, BaseException | None]] = []

        def job() -> None:
            box.append(_attempt(function, arguments))
            done.set()

        self._work.put(job)
        done.wait()
        value, error = box[0]
        if error is not None:
            raise error
        return value

    async def later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run in the thread; the event loop goes on."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def job() -> None:
            value, error = _attempt(function, arguments)

            def settle() -> None:
                if future.done():  # the caller stopped waiting
                    return
                if error is not None:
                    future.set_exception(error)
                else:
                    future.set_result(value)

            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle)

        self._work.put(job)
        return await future

    def stop(self) -> None:
        """Let the thread end after what it is doing."""
        self.stopped = True
        self._work.put(None)


def _attempt(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    try:
        return function(*arguments), None
    except StopIteration as error:  # cannot travel through a future
        return None, RuntimeError(f"StopIteration: {error}")
    except BaseException as error:  # handed to the caller
        return None, error


def _check_methods(thing: Any, target: str) -> None:
    missing = [name for name in METHODS if not callable(getattr(thing, name, None))]
    if missing:
        raise InputError(
            f"The environment lacks: {', '.join(f'{name}()' for name in missing)}.",
            where=target,
            todo="Write the missing methods; the contract is poc.replay.environments.Environment.",
        )


def _schema(tool: Any, target: str) -> ToolSchema:
    if isinstance(tool, ToolSchema):
        return tool
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InputError(
            f"tools() returned {tool!r}, which is no tool.",
            where=target,
            todo='Return ToolSchema, or {"type": "function", "function": {"name": ..., "parameters": ...}}.',
        )
    effect = tool.get("effect", function.get("effect"))
    if effect not in (None, "read", "write", "irreversible"):
        raise InputError(
            f"The tool '{function['name']}' has the effect '{effect}'; known: read, write, irreversible.", where=target
        )
    return ToolSchema(
        name=function["name"],
        description=function.get("description"),
        parameters=function.get("parameters"),
        origin="given",
        effect=effect,
    )


def _result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(content=value)
    return ToolResult(content=json.dumps(value, ensure_ascii=False))
