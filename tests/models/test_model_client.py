"""The client against a real loopback server: what it sends, measures, retries and refuses."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from email.utils import formatdate

import pytest
from misbehaving_server import USAGE, Act, delta, plain_events

from poc.errors import BudgetExceeded, InputError
from poc.models import Budget, CallFailed, ModelClient, ModelSettings
from poc.trajectory import ToolSchema, Usage

HELLO = [{"role": "user", "content": "hello"}]
TOOL = ToolSchema(name="look", description="Looks.", parameters={"type": "object", "properties": {}})


def make(server, *, budget=None, key=None, prices=None, base=0.001, **settings) -> ModelClient:
    chosen = ModelSettings(**{"name": "some-model", "base_url": server.base_url, **settings})
    return ModelClient(chosen, budget or Budget(), api_key=key, prices=prices, backoff_base_s=base)


async def test_a_streamed_turn_is_measured(server):
    async with make(server, temperature=0.5) as client:
        turn = await client.complete(HELLO, [TOOL], seed=7, max_output_tokens=99, tool_choice="look")
    assert turn.content == "Hellothere"
    assert turn.usage == Usage(input_tokens=50, output_tokens=7, cached_tokens=20, reasoning_tokens=3)
    assert (turn.model, turn.http_status, turn.finish_reason) == ("served-model", 200, "stop")
    assert turn.first_token_s is not None
    assert 0 < turn.first_token_s <= turn.total_s
    assert (turn.retries, turn.backoff_s, turn.cost_usd, turn.simulated) == (0, 0.0, None, False)
    sent = server.requests[0]
    assert sent["seed"] == 7
    assert sent["max_tokens"] == 99
    assert sent["temperature"] == 0.5
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["tools"] == [
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": TOOL.parameters}}
    ]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "look"}}


async def test_what_is_not_set_is_not_sent(server):
    async with make(server, send_seed=False) as client:
        await client.complete(HELLO, seed=7)
    assert set(server.requests[0]) == {"model", "messages", "max_tokens", "stream", "stream_options"}
    assert server.requests[0]["max_tokens"] == 1024


async def test_missing_usage_is_none_and_counts_as_reserved(server):
    server.usual = Act(events=plain_events(usage=None))
    budget = Budget(tokens=10_000)
    async with make(server, budget=budget) as client:
        turn = await client.complete(HELLO, max_output_tokens=100)
    assert turn.usage is None
    assert turn.cost_usd is None
    assert budget.spent.tokens == 100 + -(-turn.estimated_input_tokens * 12 // 10)
    assert budget.reserved.tokens == 0


async def test_cost_comes_from_stated_prices(server):
    budget = Budget(usd=1.0)
    async with make(server, budget=budget, prices={"some-model": {"input": 2, "cached": 1, "output": 10}}) as client:
        turn = await client.complete(HELLO)
    assert turn.cost_usd == pytest.approx((30 * 2 + 20 * 1 + 7 * 10) / 1e6)
    assert budget.spent.usd == pytest.approx(turn.cost_usd)
    assert budget.spent.tokens == 57


async def test_the_simulated_model_is_marked(server):
    server.script.extend(
        [
            Act(events=plain_events(), headers={"x-poc-simulated": "1"}),
            Act(events=plain_events(), headers={"x-poc-simulated": "unknown-tools"}),
        ]
    )
    async with make(server) as client:
        first, second = await client.complete(HELLO), await client.complete(HELLO)
    assert (first.simulated, first.simulated_unknown_tools) == (True, False)
    assert (second.simulated, second.simulated_unknown_tools) == (True, True)


@pytest.mark.parametrize(
    "act",
    [
        Act(status=500, body={"error": {"message": "oops"}}),
        Act(status=503, body="<html>busy</html>"),
        Act(status=429, body={"error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
        Act(events=["{not json", "[DONE]"]),
        Act(events=[delta("half an ans")]),
        Act(events=[delta("half an ans")], break_after=True),
        Act(events=["[DONE]"]),
        Act(events=["[1, 2]", "[DONE]"]),
        Act(events=['{"error": {"message": "overloaded", "type": "overloaded_error"}}']),
        Act(body="{broken", content_type="application/json"),
        Act(body={"choices": []}),
    ],
    ids=lambda act: f"{act.status}-{act.body or act.events}"[:40],
)
async def test_passing_failures_are_retried_in_the_open(server, act):
    server.script.append(act)
    async with make(server) as client:
        turn = await client.complete(HELLO)
    assert turn.content == "Hellothere"
    assert turn.retries == 1
    assert turn.backoff_s > 0
    assert len(server.requests) == 2


async def test_backoff_and_failed_attempts_are_not_latency(server):
    server.script.append(Act(status=429, headers={"retry-after-ms": "300"}, body={"error": {"message": "wait"}}))
    async with make(server) as client:
        await client.complete(HELLO)
        turn = await client.complete(HELLO)
        assert turn.retries == 0
        server.script.append(Act(status=429, headers={"retry-after-ms": "300"}, body={"error": {"message": "wait"}}))
        started = time.monotonic()
        turn = await client.complete(HELLO)
    assert time.monotonic() - started >= 0.3
    assert turn.backoff_s >= 0.3
    assert turn.total_s < 0.25


async def test_retry_after_as_a_date_in_the_past_is_no_wait(server):
    server.script.append(Act(status=429, headers={"retry-after": formatdate(time.time() - 5)}, body={"error": "x"}))
    async with make(server) as client:
        turn = await client.complete(HELLO)
    assert turn.retries == 1
    assert turn.backoff_s < 0.2


async def test_a_retry_after_of_hours_is_not_sat_out(server):
    server.script.append(Act(status=429, headers={"retry-after": "7200"}, body={"error": {"message": "daily"}}))
    async with make(server) as client:
        with pytest.raises(CallFailed, match="7200 s") as caught:
            await client.complete(HELLO)
    assert caught.value.kind == "rate_limit"
    assert len(server.requests) == 1


async def test_retries_end(server):
    server.usual = Act(status=500, body={"error": {"message": "still broken"}})
    budget = Budget(tokens=100_000)
    async with make(server, max_retries=2, budget=budget) as client:
        with pytest.raises(CallFailed, match="still broken") as caught:
            await client.complete(HELLO)
    assert len(server.requests) == 3
    assert (caught.value.retries, caught.value.http_status, caught.value.stops_everything) == (2, 500, False)
    assert budget.spent.tokens == 0
    assert budget.spent.calls == 3


@pytest.mark.parametrize(
    ("act", "kind", "todo"),
    [
        (Act(status=401, body={"error": {"message": "bad key"}}), "key", "the key that was given"),
        (Act(status=403, body={"error": {"message": "no"}}), "permission", "may use 'some-model'"),
        (Act(status=404, body={"error": {"message": "no such model"}}), "not_found", "base URL"),
        (Act(status=400, body={"error": {"message": "messages[0] is wrong"}}), "request", "setting"),
        (Act(status=429, body={"error": {"message": "x", "code": "insufficient_quota"}}), "quota", "billing"),
        (Act(status=307, headers={"location": "https://elsewhere.example/v1"}, body={}), "redirect", "preview"),
        (Act(status=501, body="no"), "server", "log"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_lasting_failures_fail_at_once_and_say_what_to_do(server, act, kind, todo):
    server.usual = act
    async with make(server, key="k-123456") as client:
        with pytest.raises(CallFailed) as caught:
            await client.complete(HELLO)
    assert caught.value.kind == kind
    assert todo in (caught.value.todo or "")
    assert len(server.requests) == 1


async def test_a_hanging_server_times_out(server):
    server.script.append(Act(hang=True))
    server.script.append(Act(events=[delta("never ends")], hang_after=True))
    budget = Budget(tokens=100_000)
    async with make(server, timeout_s=0.3, max_retries=1, budget=budget) as client:
        with pytest.raises(CallFailed, match=r"within 0\.3 s") as caught:
            await client.complete(HELLO, max_output_tokens=10)
    assert caught.value.kind == "timeout"
    # Both may have been charged.
    assert budget.spent.tokens > 20


async def test_an_answer_cut_after_its_end_is_kept(server):
    server.usual = Act(events=[delta("whole"), delta(finish="stop")], break_after=True)
    async with make(server) as client:
        turn = await client.complete(HELLO)
    assert (turn.content, turn.retries, turn.usage) == ("whole", 0, None)


async def test_a_server_that_does_not_stream(server):
    message = {"role": "assistant", "content": "plain"}
    server.usual = Act(body={"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE})
    async with make(server) as client:
        turn = await client.complete(HELLO)
    assert (turn.content, turn.first_token_s) == ("plain", None)
    assert turn.usage is not None
    assert turn.total_s > 0


async def test_a_stream_under_another_content_type(server):
    server.usual = Act(events=plain_events(), content_type="text/plain")
    async with make(server) as client:
        assert (await client.complete(HELLO)).content == "Hellothere"


@pytest.mark.parametrize(
    ("message", "param", "gone", "added"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
         "max_tokens", "max_tokens", "max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.5. Only the default (1) value is supported.",
         "temperature", "temperature", None),
        ("Extra inputs are not permitted: stream_options", None, "stream_options", None),
        ("Unrecognized request argument supplied: seed", None, "seed", None),
        ("streaming is not supported by this server", None, "stream", None),
    ],
)  # fmt: skip
async def test_a_refused_parameter_is_changed_once_and_remembered(server, message, param, gone, added):
    server.script.append(Act(status=400, body={"error": {"message": message, "param": param}}))
    async with make(server, temperature=0.5, max_retries=0) as client:
        first = await client.complete(HELLO, seed=1)
        second = await client.complete(HELLO, seed=1)
        assert list(client.adaptations) == [gone]
    assert (first.retries, second.retries) == (1, 0)
    assert gone in server.requests[0]
    for sent in server.requests[1:]:
        assert gone not in sent
        assert added is None or sent[added] == 1024


async def test_a_wrong_value_is_not_a_refused_parameter(server):
    said = "max_tokens is too large: 999. This model supports at most 100."
    server.usual = Act(status=400, body={"error": {"message": said}})
    async with make(server) as client:
        with pytest.raises(CallFailed, match="too large"):
            await client.complete(HELLO)
    assert len(server.requests) == 1


async def test_refusing_both_names_ends(server):
    server.script.extend(
        Act(status=400, body={"error": {"message": f"Unsupported parameter: {name}"}})
        for name in ("max_tokens", "max_completion_tokens")
    )
    async with make(server) as client:
        with pytest.raises(CallFailed, match="max_completion_tokens"):
            await client.complete(HELLO)


async def test_all_calls_in_flight_learn_the_same_refusal(server):
    refused = {"error": {"message": "Unknown parameter: seed"}}
    server.script.extend(Act(status=400, body=refused) for _ in range(8))
    async with make(server, max_retries=0) as client:
        turns = await asyncio.gather(*(client.complete(HELLO, seed=n) for n in range(8)))
    assert all(turn.content == "Hellothere" for turn in turns)
    assert client.adaptations == {"seed": "left out"}


async def test_an_unreachable_server_is_named_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ModelSettings(name="m", base_url=f"http://127.0.0.1:{port}/v1")
    budget = Budget(tokens=10_000)
    async with ModelClient(settings, budget) as client:
        with pytest.raises(CallFailed, match="cannot be reached") as caught:
            await client.complete(HELLO)
    assert "base URL" in (caught.value.todo or "")
    assert caught.value.stops_everything
    assert budget.spent.tokens == 0


async def test_an_unknown_host_is_named_at_once():
    settings = ModelSettings(name="m", base_url="http://no-such-host.invalid/v1")
    async with ModelClient(settings, Budget(), api_key="k") as client:
        with pytest.raises(CallFailed) as caught:
            await client.complete(HELLO)
    assert caught.value.kind == "unreachable"


async def test_a_connection_reset_is_retried():
    async def slam(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(1)
        writer.transport.abort()

    seen: list[int] = []
    listening = await asyncio.start_server(slam, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    settings = ModelSettings(name="m", base_url=f"http://127.0.0.1:{port}/v1", max_retries=2)
    budget = Budget(tokens=100_000)
    async with listening, ModelClient(settings, budget, backoff_base_s=0.001) as client:
        with pytest.raises(CallFailed, match="broke off") as caught:
            await client.complete(HELLO)
    assert len(seen) == 3
    assert caught.value.kind == "cut"
    # Each of them may have been read by the server.
    assert budget.spent.tokens > 3 * 1024


async def test_the_key_is_shown_nowhere(server, caplog):
    key = "sk-very-secret-0123456789abcdef"
    server.usual = Act(status=401, body={"error": {"message": f"Incorrect API key provided: {key}"}})
    caplog.set_level(logging.DEBUG)
    async with make(server, key=key) as client:
        with pytest.raises(CallFailed) as caught:
            await client.complete(HELLO)
        assert server.headers[0]["authorization"] == f"Bearer {key}"
        shown = [str(caught.value), repr(caught.value), str(caught.value.as_dict()), caplog.text]
        shown += [repr(client), str(client), repr(client.settings), repr(client.budget)]
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not any(key in text for text in shown)


async def test_openais_own_key_is_not_sent_to_this_machine(server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "secret-of-openai")
    async with make(server) as client:
        await client.complete(HELLO)
    assert not any("secret-of-openai" in value for value in server.headers[0].values())


async def test_a_named_variable_is_sent(server, monkeypatch):
    monkeypatch.setenv("HOUSE_KEY", "house-secret")
    async with make(server, api_key_env="HOUSE_KEY") as client:
        await client.complete(HELLO)
    assert server.headers[0]["authorization"] == "Bearer house-secret"


async def test_environment_does_not_change_the_host(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with make(server) as client:
        assert (await client.complete(HELLO)).content == "Hellothere"


def test_a_missing_key_names_its_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(CallFailed, match="OPENAI_API_KEY is not set") as caught:
        ModelClient(ModelSettings(name="gpt-4o"), Budget())
    assert caught.value.kind == "key"


def test_a_dollar_limit_needs_a_price(server):
    with pytest.raises(InputError, match="unknown") as caught:
        make(server, budget=Budget(usd=1.0))
    assert "token limit" in (caught.value.todo or "")
    make(server, budget=Budget(usd=1.0, tokens=1000))


async def test_the_budget_stops_calls_before_they_are_made(server):
    budget = Budget(tokens=500)
    async with make(server, budget=budget) as client:
        with pytest.raises(BudgetExceeded, match="500 of 500 are left"):
            await client.complete(HELLO, max_output_tokens=500)
    assert server.requests == []


async def test_calls_wait_for_those_in_flight_rather_than_fail(server):
    # Worst case of each is over 100, so only two fit at once; each really uses 57.
    budget = Budget(tokens=450)
    async with make(server, budget=budget) as client:
        turns = await asyncio.gather(*(client.complete(HELLO, max_output_tokens=100) for _ in range(5)))
    assert len(turns) == 5
    assert budget.spent.tokens == 5 * 57
    assert server.most_in_flight <= 3


async def test_time_runs_out_during_a_call(server):
    server.usual = Act(hang=True)
    budget = Budget(seconds=0.3)
    async with make(server, budget=budget, max_retries=5) as client:
        started = time.monotonic()
        with pytest.raises(BudgetExceeded):
            await client.complete(HELLO)
    assert time.monotonic() - started < 2


async def test_a_cancelled_call_counts_as_reserved(server):
    server.usual = Act(hang=True)
    budget = Budget(tokens=10_000)
    async with make(server, budget=budget) as client:
        call = asyncio.create_task(client.complete(HELLO, max_output_tokens=100))
        assert await asyncio.to_thread(server.asked.wait, 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert budget.reserved.tokens == 0
    assert budget.spent.tokens > 100


async def test_the_margin_follows_what_the_server_counts(server):
    big = {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901}
    server.usual = Act(events=plain_events(usage=big))
    budget = Budget(tokens=1500)
    async with make(server, budget=budget) as client:
        await client.complete(HELLO, max_output_tokens=10)
        with pytest.raises(BudgetExceeded):
            await client.complete(HELLO, max_output_tokens=10)


async def test_connections_are_used_again(server):
    async with make(server) as client:
        for _ in range(5):
            await client.complete(HELLO)
    assert len(set(server.client_ports)) == 1


async def test_lone_surrogates_in_a_history_are_sent(server):
    async with make(server) as client:
        await client.complete([{"role": "user", "content": "bad \ud800 text"}])
    assert server.requests[0]["messages"][0]["content"] == "bad \ud800 text"
