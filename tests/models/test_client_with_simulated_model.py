"""The client against the simulated model's own server: faults, marks, usage."""

from __future__ import annotations

import asyncio

import pytest

from poc.models import Budget, CallFailed, ModelClient, ModelSettings
from poc.sample.server import ServerOptions, running_server

HELLO = [{"role": "user", "content": "Where is my order?"}]
STRANGE = {
    "type": "function",
    "function": {"name": "zz", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}


def client_of(base_url: str, **more) -> ModelClient:
    settings = ModelSettings(name="simulated-agent", base_url=base_url, max_retries=8)
    return ModelClient(settings, Budget(tokens=10**7), backoff_base_s=0.001, **more)


async def test_it_is_marked_and_reports_usage():
    with running_server(ServerOptions()) as base_url:
        async with client_of(base_url) as client:
            turn = await client.complete(HELLO, seed=1)
            strange = await client.complete(HELLO, [STRANGE], seed=1)
    assert turn.simulated
    assert turn.usage is not None
    assert turn.usage.total
    assert turn.first_token_s is not None
    assert turn.cost_usd is None
    assert strange.simulated_unknown_tools


async def test_faults_are_overcome_and_counted():
    rates = {"429": 0.15, "500": 0.15, "cut": 0.1, "malformed": 0.1}
    with running_server(ServerOptions(fault_rates=rates, fault_seed=3, retry_after_s=0.001)) as base_url:
        async with client_of(base_url) as client:
            turns = await asyncio.gather(*(client.complete(HELLO, seed=n) for n in range(40)))
            assert client.budget.reserved.tokens == 0
    assert sum(turn.retries for turn in turns) > 5
    assert client.budget.spent.calls == 40 + sum(turn.retries for turn in turns)


async def test_a_wrong_key_ends_at_once():
    with running_server(ServerOptions()) as base_url:
        async with client_of(base_url, api_key="wrong") as client:
            with pytest.raises(CallFailed) as caught:
                await client.complete(HELLO)
    assert caught.value.kind == "key"
    assert caught.value.retries == 0
