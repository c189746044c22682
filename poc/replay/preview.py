"""What would leave this machine: the hosts, and one request as it would be sent.

The request is that of the plan's first trial in the treatment arm, redacted
as it would be, with the texts of an example state (the first half of the
subgoals done). Nothing is called, and no key is shown or read.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from poc.context import arm, place
from poc.ingest import load_run
from poc.models import destination
from poc.replay.environments.python import PythonEnvironments
from poc.replay.estimate import example_view
from poc.replay.experiment import Plan, TrialKey
from poc.replay.history import chat_tools, history
from poc.replay.loop import head, opening
from poc.replay.masking import Mask
from poc.replay.store import load_experiment
from poc.replay.toolbox import tools_of_source
from poc.subgoals import set_by_hash
from poc.trajectory import ToolSchema
from poc.workspace import Workspace


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would leave.

    hosts: ``host:port`` of every server that would be called. leaves: False
    when all of them are this machine. encrypted: HTTPS. request: messages,
    tools and settings of an example request. arm: the arm it belongs to.
    context: the arm's text in it, None where it adds nothing. redacted: how
    many values of each kind were taken out of it; empty when redaction is off.
    """

    experiment_id: str
    hosts: tuple[str, ...]
    leaves: bool
    encrypted: bool
    proxy: str | None
    redacting: bool
    arm: str
    request: dict[str, Any]
    context: str | None
    redacted: dict[str, int]


def preview(workspace: Workspace, experiment_id: str) -> Preview:
    """Hosts and an example request of an experiment.

    Raises `InputError` when there is no such experiment or its environment cannot be loaded.
    """
    plan = load_experiment(workspace, experiment_id).plan
    treatment = plan.primary[0]
    key = next(key for key in plan.trials() if key.arm == treatment)
    mask = Mask(plan.redact)
    messages, tools = _messages(workspace, plan, key, mask)
    view = example_view(set_by_hash(workspace, key.task.set_hash))
    text = arm(treatment).render(
        [view], random.Random(plan.seed), plan.context.token_budget, plan.context.language, model=plan.model.name
    )
    text = None if text is None else mask.text(text)
    settings = plan.model
    request: dict[str, Any] = {
        "model": settings.name,
        "messages": place(messages, text, plan.context.placement),
        "tools": mask.data(chat_tools(tools)),
        "max_tokens": settings.max_output_tokens,
    }
    if settings.temperature is not None:
        request["temperature"] = settings.temperature
    if settings.send_seed:
        request["seed"] = key.model_seed
    goes = destination(settings.base_url)
    return Preview(
        experiment_id=experiment_id,
        hosts=(goes.name,),
        leaves=not goes.loopback,
        encrypted=goes.encrypted,
        proxy=goes.proxy,
        redacting=plan.redact,
        arm=treatment,
        request=request,
        context=text,
        redacted=mask.counts,
    )


def _messages(
    workspace: Workspace, plan: Plan, key: TrialKey, mask: Mask
) -> tuple[list[dict[str, Any]], list[ToolSchema]]:
    if key.cut is None:
        assert plan.environment.target is not None
        environment = PythonEnvironments(plan.environment.target).new()
        try:
            tools, instructions = environment.tools(), environment.instructions()
        finally:
            environment.release()
        return opening(key, instructions, mask), tools
    run_id, turn = key.cut
    messages = mask.data(history(load_run(workspace, run_id), turn))
    source_id = workspace.value("SELECT source_id FROM runs WHERE run_id = ?", [run_id])
    if messages and messages[0]["role"] == "system":
        messages[0] = head(key.nonce, messages[0]["content"])
    else:
        messages.insert(0, head(key.nonce, ""))
    return messages, tools_of_source(workspace, source_id)
