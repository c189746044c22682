"""How far an experiment is, read from its journal: works while another process runs it.

A running replay merges into the tables now and then only; the journal is
always up to date, and reading it locks nobody out. Knows no plan beyond the
counts in the journal's header.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from poc.replay.journal import journal_path, read_journal, running_pid
from poc.replay.records import Header, Record, Session, SessionEnd, TrialDone, TurnDone
from poc.replay.store import Experiment, load_experiment
from poc.workspace import Workspace

State = Literal["planned", "running", "stopped", "finished"]


class ArmStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One arm so far. `success` is the mean (0..1) over finished trials that could be judged, None before the first."""

    arm: str
    done: int
    total: int
    success: float | None
    failed: int


class ReplayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment so far.

    done, total: trials. tokens: as reported by the API, None before the first
    report; `requests_without_usage` says how many calls are not in it.
    cost_usd: None when a price is unknown. seconds: time at work, without the
    pauses between sessions. eta_s: seconds left at the pace so far.
    pid: the process that runs it, None when nobody does.
    torn: lines of the journal that could not be read.
    """

    experiment_id: str
    state: State
    done: int
    total: int
    arms: tuple[ArmStatus, ...]
    requests: int = 0
    requests_without_usage: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float = 0.0
    eta_s: float | None = None
    simulated: bool | None = None
    pid: int | None = None
    torn: int = 0


class Tally:
    """Adds up records as they come."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self._done: dict[str, TrialDone] = {}
        self._requests = 0
        self._without_usage = 0
        self._tokens = 0
        self._cost: float | None = 0.0
        self._simulated: bool | None = None
        self._seconds = timedelta()
        self._since: datetime | None = None
        self._last: datetime | None = None

    def add(self, record: Record) -> None:
        """Take one record into account."""
        match record:
            case Session():
                self._close_session()
                self._since = self._last = record.at
            case SessionEnd():
                self._last = record.at
                self._close_session()
            case TurnDone():
                self._turn(record)
            case TrialDone():
                self._done[record.trial_id] = record
                self._last = record.ended_at
            case _:
                pass

    def _turn(self, turn: TurnDone) -> None:
        self._requests += 1
        self._last = turn.sent_at + timedelta(seconds=(turn.total_s or 0.0))
        if turn.error is None:
            self._simulated = bool(self._simulated) or turn.simulated
        total = turn.usage.total if turn.usage else None
        if total is None:
            self._without_usage += 1
        else:
            self._tokens += total
            self._cost = None if self._cost is None or turn.cost_usd is None else self._cost + turn.cost_usd

    def _close_session(self) -> None:
        if self._since is not None and self._last is not None:
            self._seconds += max(self._last - self._since, timedelta())
        self._since = None

    def status(self, *, pid: int | None, torn: int = 0, state: State | None = None) -> ReplayStatus:
        """The state of things now."""
        total = sum(self.header.arms.values())
        done = len(self._done)
        seconds = self._seconds
        if self._since is not None and self._last is not None:
            seconds += max((datetime.now(UTC) if pid is not None else self._last) - self._since, timedelta())
        spent = seconds.total_seconds()
        reported = self._requests - self._without_usage
        if state is None:
            state = "running" if pid is not None else "finished" if done == total else "stopped"
        return ReplayStatus(
            experiment_id=self.header.experiment_id,
            state=state,
            done=done,
            total=total,
            arms=tuple(self._arm(arm, planned) for arm, planned in self.header.arms.items()),
            requests=self._requests,
            requests_without_usage=self._without_usage,
            tokens=self._tokens if reported else None,
            cost_usd=self._cost if reported else None,
            seconds=spent,
            eta_s=(total - done) * spent / done if done else None,
            simulated=self._simulated,
            pid=pid,
            torn=torn,
        )

    def _arm(self, arm: str, planned: int) -> ArmStatus:
        trials = [one for one in self._done.values() if one.arm == arm]
        judged = [one.success for one in trials if one.success is not None]
        return ArmStatus(
            arm=arm,
            done=len(trials),
            total=planned,
            success=sum(judged) / len(judged) if judged else None,
            failed=sum(one.status == "failed" for one in trials),
        )


def status(workspace: Workspace, experiment_id: str) -> ReplayStatus:
    """How far an experiment is. Opens the workspace only when there is no journal yet.

    Raises `InputError` when there is no such experiment.
    """
    path = journal_path(workspace, experiment_id)
    # The process first: one that ends in between is then seen with its whole journal.
    pid = running_pid(path)
    journal = read_journal(path)
    if journal.header is None:
        experiment = load_experiment(workspace, experiment_id)
        if pid is None and (merged := merged_status(workspace, experiment)) is not None:
            return merged
        trials = experiment.plan.trials()
        arms = {arm: sum(key.arm == arm for key in trials) for arm in experiment.plan.arms}
        empty = Tally(Header(experiment_id=experiment_id, plan_hash=experiment.plan.hash, arms=arms))
        return empty.status(pid=pid, state="planned" if pid is None else "running")
    tally = Tally(journal.header)
    for record in journal.records:
        tally.add(record)
    return tally.status(pid=pid, torn=len(journal.torn))


def merged_status(workspace: Workspace, experiment: Experiment) -> ReplayStatus | None:
    """What the tables say of an experiment whose journal is not beside the workspace (a copied file, for instance).

    None when no trial was ever merged. Time at work is unknown then and stands at 0.
    """
    rows = workspace.rows(
        """
        SELECT arm, count(*) AS done, avg(success) AS success, count_if(status = 'failed') AS failed
        FROM trials WHERE experiment_id = ? GROUP BY arm
        """,
        [experiment.experiment_id],
    )
    if not rows:
        return None
    calls = workspace.rows(
        """
        SELECT count(*) AS requests, count_if(r.input_tokens + r.output_tokens IS NULL) AS without,
               sum(r.input_tokens + r.output_tokens)::BIGINT AS tokens,
               CASE WHEN count(r.cost_usd) = count(*) THEN sum(r.cost_usd) END AS cost
        FROM requests r JOIN trials t USING (trial_id) WHERE t.experiment_id = ?
        """,
        [experiment.experiment_id],
    )[0]
    by_arm = {row["arm"]: row for row in rows}
    planned = experiment.plan.trials()
    arms = []
    for arm in experiment.plan.arms:
        row = by_arm.get(arm, {"done": 0, "success": None, "failed": 0})
        total = sum(key.arm == arm for key in planned)
        arms.append(ArmStatus(arm=arm, done=row["done"], total=total, success=row["success"], failed=row["failed"]))
    done = sum(arm.done for arm in arms)
    return ReplayStatus(
        experiment_id=experiment.experiment_id,
        state="finished" if done == len(planned) else "stopped",
        done=done,
        total=len(planned),
        arms=tuple(arms),
        requests=calls["requests"],
        requests_without_usage=calls["without"],
        tokens=calls["tokens"],
        cost_usd=calls["cost"],
        simulated=experiment.simulated,
    )
