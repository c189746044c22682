"""Runs an experiment: trials in plan order, so many at a time, to the end or to the next stop.

Every session ends in one of four ways: finished, stopped on request, out of
budget, or by an error that concerns the whole experiment (the server cannot
be reached, the environment is broken). In each of them what is finished is in
the journal and merged into the tables, and another session goes on from
there; a finished call is never paid twice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from poc.errors import BudgetExceeded, InputError, PocError, WorkspaceBusy
from poc.models import Budget, ModelClient
from poc.prices import load_overrides
from poc.replay.attempt import Diverged, Paused, Shared
from poc.replay.experiment import BudgetLimits, Plan, TrialKey
from poc.replay.journal import Journal, JournalWriter, journal_path, open_journal, read_journal
from poc.replay.past import Past, pasts, spent_so_far
from poc.replay.records import Header, Session, SessionEnd, TrialDone, TurnDone
from poc.replay.status import ReplayStatus, State, Tally, merged_status
from poc.replay.store import load_experiment, merge
from poc.replay.trials import Trials
from poc.workspace import Workspace

Reason = Literal["finished", "stop", "budget"]
_MERGE_EVERY_S = 60.0


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How a session ended, and where the experiment stands.

    reason: finished, stop (on request) or budget; `message` says more where
    there is more to say. The other fields are those of `ReplayStatus`, for
    all sessions together. adaptations: request parameters that the server
    refused, and what was done instead.
    """

    experiment_id: str
    state: State
    reason: Reason
    message: str | None
    done: int
    total: int
    requests: int
    tokens: int | None
    cost_usd: float | None
    seconds: float
    simulated: bool | None
    torn: int
    adaptations: dict[str, str]


async def run(
    workspace: Workspace,
    experiment_id: str,
    *,
    progress: Callable[[ReplayStatus], None] | None = None,
    stop: asyncio.Event | None = None,
    api_key: str | None = None,
    prices: Mapping[str, Any] | None = None,
    client: ModelClient | None = None,
    budget: BudgetLimits | None = None,
    concurrency: int | None = None,
) -> RunSummary:
    """Run an experiment, or go on where it stopped.

    progress: told after every finished trial. stop: set it, and no new model
    call begins; those in flight are awaited and recorded. Without one, Ctrl-C
    and SIGTERM do the same. prices: the team's own, as `load_overrides` takes
    them. budget: higher (or other) hard limits than those of the plan, for a
    resume; what was spent before counts. client: one to use instead of making
    one; it keeps its own budget.

    Raises `WorkspaceBusy` when another process runs this experiment, and the
    error that stopped it where it concerns all trials; what was finished is
    kept in every case.
    """
    experiment = load_experiment(workspace, experiment_id)
    plan = experiment.plan
    keys = plan.trials()
    arms = {arm: sum(key.arm == arm for key in keys) for arm in plan.arms}
    header = Header(experiment_id=experiment_id, plan_hash=plan.hash, arms=arms)
    with open_journal(journal_path(workspace, experiment_id), header) as (writer, journal):
        if not journal.records and merged_status(workspace, experiment) is not None:
            # Starting over would pay for finished calls a second time.
            raise InputError(
                "The journal of this experiment is not beside the workspace, so it cannot go on.",
                where=str(journal_path(workspace, experiment_id)),
                todo="Bring its folder '.files' to the workspace, or plan anew; stored trials can be decided.",
            )
        session = _Session(workspace, experiment_id, plan, keys, writer, journal, header, progress)
        limits = budget or plan.budget
        own = client is None
        if client is None:
            spent = Budget(limits.usd, limits.tokens, limits.seconds, already=spent_so_far(journal.records))
            client = ModelClient(
                plan.model, spent, api_key=api_key, prices=prices, concurrency=concurrency or plan.concurrency
            )
        try:
            with _stopping(stop) as event:
                shared = Shared(plan, client, writer, event, answered=session.answered, prices=load_overrides(prices))
                writer.write(
                    Session(
                        pid=os.getpid(),
                        at=datetime.now(UTC),
                        usd=limits.usd,
                        tokens=limits.tokens,
                        seconds=limits.seconds,
                    )
                )
                return await session.run(shared, concurrency or plan.concurrency)
        finally:
            if own:
                await client.aclose()


def merge_journal(workspace: Workspace, experiment_id: str) -> None:
    """Bring what the journal of an experiment holds into the tables, after a crash for instance; idempotent."""
    keys = load_experiment(workspace, experiment_id).plan.trials()
    records = read_journal(journal_path(workspace, experiment_id)).records
    done = sum(isinstance(record, TrialDone) for record in records)
    merge(workspace, experiment_id, keys, records, status="finished" if done >= len(keys) else "stopped")


class _Session:
    def __init__(
        self,
        workspace: Workspace,
        experiment_id: str,
        plan: Plan,
        keys: Sequence[TrialKey],
        writer: JournalWriter,
        journal: Journal,
        header: Header,
        progress: Callable[[ReplayStatus], None] | None,
    ) -> None:
        self.workspace = workspace
        self.experiment_id = experiment_id
        self.plan = plan
        self.keys = keys
        self.writer = writer
        self.torn = len(journal.torn)
        self.past = pasts(journal.records)
        self.answered = any(isinstance(record, TurnDone) and record.error is None for record in journal.records)
        self.progress = progress
        self.tally = Tally(header)
        for record in journal.records:
            self.tally.add(record)
        writer.listener = self.tally.add
        self.failure: BaseException | None = None
        self.out_of_budget: BudgetExceeded | None = None

    async def run(self, shared: Shared, concurrency: int) -> RunSummary:
        self._merge("running")
        self._tell()
        queue = iter([key for key in self.keys if not self._is_done(key)])
        error: BaseException | None = None
        merging = asyncio.create_task(self._merge_now_and_then())
        try:
            trials = await asyncio.to_thread(Trials.load, self.workspace, self.plan)
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(self._work(queue, shared, trials))
        except Exception as problem:
            error = problem
        finally:
            merging.cancel()
        error = error or self.failure
        status = self.tally.status(pid=None, torn=self.torn)
        reason: Reason = "finished" if status.state == "finished" else "budget" if self.out_of_budget else "stop"
        try:
            self.writer.write(SessionEnd(at=datetime.now(UTC), reason="error" if error else reason), sync=True)
            self._merge(status.state)
        except PocError:
            if error is None:
                raise
            # The first error tells the reader more; the journal is merged at the next resume.
        if error is not None:
            raise error
        return RunSummary(
            experiment_id=self.experiment_id,
            state=status.state,
            reason=reason,
            message=str(self.out_of_budget) if self.out_of_budget else None,
            done=status.done,
            total=status.total,
            requests=status.requests,
            tokens=status.tokens,
            cost_usd=status.cost_usd,
            seconds=status.seconds,
            simulated=status.simulated,
            torn=self.torn,
            adaptations=shared.client.adaptations,
        )

    async def _work(self, queue: Iterator[TrialKey], shared: Shared, trials: Trials) -> None:
        """Take one trial after another until there is none left or all must stop."""
        for key in queue:
            if shared.stop.is_set():
                return
            try:
                await self._trial(key, shared, trials)
            except Paused:
                return
            except BudgetExceeded as error:
                self.out_of_budget = self.out_of_budget or error
                shared.stop.set()
                return
            except Exception as error:
                # Not raised here: that would cancel the calls in flight of the others, which are already paid.
                self.failure = self.failure or error
                shared.stop.set()
                return
            self._tell()

    async def _trial(self, key: TrialKey, shared: Shared, trials: Trials) -> None:
        past = self.past.get(key.trial_id)
        try:
            await trials.run(key, shared, past)
        except Diverged as moved:
            again = Past(attempt=(past.attempt if past else 1) + 1, reason=str(moved))
            await trials.run(key, shared, again)

    def _is_done(self, key: TrialKey) -> bool:
        past = self.past.get(key.trial_id)
        return past is not None and past.done is not None

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self.tally.status(pid=os.getpid(), torn=self.torn))

    def _merge(self, status: str | None = None) -> None:
        merge(self.workspace, self.experiment_id, self.keys, read_journal(self.writer.path).records, status=status)

    async def _merge_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_MERGE_EVERY_S)
            try:
                await asyncio.to_thread(self._merge)
            except WorkspaceBusy:
                continue  # somebody else is at it; the journal holds everything until the next time


@contextmanager
def _stopping(stop: asyncio.Event | None) -> Iterator[asyncio.Event]:
    """The event that stops the session; without one of the caller's, the usual signals set it."""
    if stop is not None or threading.current_thread() is not threading.main_thread():
        yield stop or asyncio.Event()
        return
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        loop.add_signal_handler(number, event.set)
    try:
        yield event
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
