"""The simulated model over real HTTP, asked through the real SDK."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from poc import tokens
from poc.errors import InputError
from poc.sample.agent import Temper
from poc.sample.drive import attempt, request_tools
from poc.sample.endpoint import ServerOptions
from poc.sample.faults import Faults
from poc.sample.server import running_server, serve
from poc.sample.tasks import task_of
from poc.sample.world import World

WORLD = World()
TOOLS: Any = request_tools(WORLD)
MESSAGES: Any = [
    {"role": "system", "content": WORLD.instructions()},
    {"role": "user", "content": task_of("cancel-01").text},
]
MODEL = "simulated-agent"


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with running_server() as url:
        yield url


@pytest.fixture
def client(base_url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base_url, api_key="any", max_retries=0, timeout=20) as one:
        yield one


def ask(client: openai.OpenAI, **more: Any) -> Any:
    return client.chat.completions.create(**{"model": MODEL, "messages": MESSAGES, "tools": TOOLS, "seed": 3} | more)


def test_an_answer_says_that_it_is_simulated(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=MESSAGES, tools=TOOLS, seed=3)
    answer = raw.parse()
    assert raw.headers["x-poc-simulated"] == "1"
    assert (answer.model, answer.system_fingerprint) == (MODEL, "simulated")
    assert answer.choices[0].finish_reason == "tool_calls"
    (call,) = answer.choices[0].message.tool_calls or ()
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"order_id": "W-20101"}


def test_usage_is_counted_and_its_parts_are_named(client: openai.OpenAI) -> None:
    usage = ask(client, messages=[{"role": "system", "content": "usage test"}, *MESSAGES[1:]]).usage
    messages = [{"role": "system", "content": "usage test"}, *MESSAGES[1:]]
    assert usage.prompt_tokens == tokens.count_request(messages, TOOLS)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens < 40
    assert usage.prompt_tokens_details.cached_tokens == 0
    assert usage.completion_tokens_details.reasoning_tokens == 0


def test_the_prompt_cache_knows_what_came_before_and_a_nonce_keeps_trials_apart(client: openai.OpenAI) -> None:
    def cached(messages: Any) -> int:
        return ask(client, messages=messages).usage.prompt_tokens_details.cached_tokens

    head = [{"role": "system", "content": "nonce aaaa " + WORLD.instructions()}, MESSAGES[1]]
    assert cached(head) == 0
    whole = tokens.count_request(head, TOOLS)
    # Everything came before, in whole steps of 128; a new tail leaves that cached; another nonce does not.
    assert cached(head) == whole // 128 * 128
    assert cached([*head, {"role": "user", "content": "Progress: 1 of 2 done."}]) == whole // 128 * 128
    assert cached([{"role": "system", "content": "nonce bbbb " + WORLD.instructions()}, MESSAGES[1]]) == 0


def assembled(stream: Any) -> tuple[str, list[tuple[str, str]], Any, str | None]:
    text, calls, usage, finish = "", [], None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or ():
                if part.id:
                    calls.append([part.function.name, ""])
                calls[part.index][1] += part.function.arguments or ""
    return text, [(name, arguments) for name, arguments in calls], usage, finish


def test_a_stream_holds_the_same_as_one_object(client: openai.OpenAI) -> None:
    for seed in range(12):
        two = [MESSAGES[0], {"role": "user", "content": "Cancel W-20106 and W-20116 please."}]
        message = ask(client, seed=seed, messages=two).choices[0].message
        text, calls, usage, finish = assembled(
            ask(client, seed=seed, messages=two, stream=True, stream_options={"include_usage": True})
        )
        assert text == (message.content or "")
        assert calls == [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
        assert finish == "tool_calls"
        assert usage.prompt_tokens == tokens.count_request(two, TOOLS)


def test_a_stream_without_the_wish_has_no_usage_and_plain_text_streams_too(client: openai.OpenAI) -> None:
    text, calls, usage, finish = assembled(ask(client, stream=True, tool_choice="none"))
    assert (calls, usage, finish) == ([], None, "stop")
    assert text == ask(client, tool_choice="none").choices[0].message.content


def test_the_same_seed_answers_alike_and_no_seed_draws_anew(client: openai.OpenAI) -> None:
    def names(**more: Any) -> list[str]:
        calls = ask(client, **more).choices[0].message.tool_calls or ()
        return [f"{call.function.name}{call.function.arguments}" for call in calls]

    assert names(seed=5) == names(seed=5)
    wild = f"{MODEL}@wrong_turn=0.5"
    assert len({str(names(model=wild, seed=None)) for _ in range(40)}) > 1


async def test_a_whole_task_over_http_is_the_same_as_in_process(base_url: str) -> None:
    task = task_of("return-06")
    expected = await attempt(task, 11, temper=Temper(heed=0.5))
    messages: list[Any] = list(expected.messages[:2])
    async with openai.AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0) as client:
        for logged in [message for message in expected.messages if message["role"] == "assistant"]:
            answer = await client.chat.completions.create(
                model=f"{MODEL}@heed=0.5", messages=messages, tools=TOOLS, seed=11
            )
            made = answer.choices[0].message
            assert [(c.function.name, c.function.arguments) for c in made.tool_calls or () if c.type == "function"] == [
                (c["function"]["name"], c["function"]["arguments"]) for c in logged.get("tool_calls", ())
            ]
            place = expected.messages.index(logged)
            messages.append(logged)
            for result in expected.messages[place + 1 :]:
                if result["role"] != "tool":
                    break
                messages.append(result)


async def test_many_callers_at_once_get_their_own_answers(base_url: str) -> None:
    async with openai.AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0) as client:

        async def one(seed: int) -> tuple[int, str]:
            stream = await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, tools=TOOLS, seed=seed, stream=True
            )
            parts = [part async for part in stream]
            return seed, str(
                [p.choices[0].delta.tool_calls for p in parts if p.choices and p.choices[0].delta.tool_calls]
            )

        together = dict(await asyncio.gather(*(one(seed) for seed in range(40))))
        alone = dict([await one(seed) for seed in (0, 13, 39)])

    def plain(text: str) -> str:
        return text.split("arguments=", 1)[1].split("id='call")[0]

    for seed, text in alone.items():
        assert plain(text) == plain(together[seed])


# Faults -------------------------------------------------------------------------------------------------------


def fault(kind: str) -> dict[str, Any]:
    return {"extra_headers": {"x-poc-fault": kind}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("429", openai.RateLimitError),
        ("500", openai.InternalServerError),
        ("401", openai.AuthenticationError),
        ("cut", openai.APIConnectionError),
        ("malformed", ValueError),
    ],
)
def test_faults_on_demand(client: openai.OpenAI, kind: str, error: type[Exception], stream: bool) -> None:
    with pytest.raises(error):
        list(ask(client, stream=stream, **fault(kind)))


def test_a_429_says_how_long_to_wait_and_a_counted_fault_lets_the_retry_through(base_url: str) -> None:
    with openai.OpenAI(base_url=base_url, api_key="any", max_retries=2) as client:
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client.with_options(max_retries=0), seed=101, **fault("429"))
        assert caught.value.response.headers["retry-after"] == "0.05"
        assert ask(client, seed=102, **fault("429*2")).choices
        with pytest.raises(openai.InternalServerError):
            ask(client, seed=103, **fault("500*3"))


def test_a_hanging_request_ends_with_the_caller_or_with_the_server(base_url: str) -> None:
    with (
        openai.OpenAI(base_url=base_url, api_key="any", max_retries=0, timeout=0.2) as client,
        pytest.raises(openai.APITimeoutError),
    ):
        ask(client, **fault("timeout"))
    with running_server() as url:
        host = url.removeprefix("http://").removesuffix("/v1")
        hanging = http.client.HTTPConnection(host, timeout=20)
        body = json.dumps({"model": MODEL, "messages": MESSAGES})
        hanging.request("POST", "/v1/chat/completions", body, {"x-poc-fault": "timeout"})
        # One loop serves all: when this has been answered, the other request is in.
        urllib.request.urlopen(f"http://{host}/health", timeout=10).close()
    assert hanging.getresponse().status == 200
    hanging.close()


def test_broken_arguments_are_the_models_fault_not_the_wires(client: openai.OpenAI) -> None:
    (call,) = ask(client, **fault("bad_arguments")).choices[0].message.tool_calls
    with pytest.raises(ValueError, match="delimiter"):
        json.loads(call.function.arguments)


def test_rates_of_faults_are_drawn_from_the_request_itself() -> None:
    options = ServerOptions(fault_rates={"500": 0.3, "429": 0.2}, fault_seed=4)

    def statuses(seeds: list[int]) -> dict[int, int]:
        with (
            running_server(options) as url,
            openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client,
        ):
            return {seed: status_of(client, seed) for seed in seeds}

    seeds = list(range(40))
    seen = statuses(seeds)
    assert statuses(seeds[::-1]) == seen, "the order of requests does not matter"
    assert set(seen.values()) == {200, 429, 500}
    assert 10 <= sum(status != 200 for status in seen.values()) <= 30


def status_of(client: openai.OpenAI, seed: int) -> int:
    try:
        ask(client, seed=seed)
    except openai.APIStatusError as error:
        return error.status_code
    return 200


def test_rates_differ_when_a_request_comes_again() -> None:
    faults = Faults({"500": 0.5}, seed=1)
    draws = [faults.draw(b"same") for _ in range(60)]
    assert set(draws) == {"500", None}
    again = Faults({"500": 0.5}, seed=1)
    assert [again.draw(b"same") for _ in range(60)] == draws


@pytest.mark.parametrize("rates", [{"501": 0.1}, {"500": 1.2}, {"500": 0.6, "429": 0.6}])
def test_impossible_rates_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Faults(rates)


# Refusals, other routes, options --------------------------------------------------------------------------------


def test_the_wrong_key_is_refused(base_url: str) -> None:
    with openai.OpenAI(base_url=base_url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
            ask(client)
        with pytest.raises(openai.AuthenticationError):
            client.models.list()


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"model": "gpt-4o"}, openai.NotFoundError, "simulated-agent"),
        ({"model": f"{MODEL}@heed=9"}, openai.BadRequestError, "between 0 and 2"),
        ({"model": f"{MODEL}@head=1"}, openai.BadRequestError, "Did you mean"),
        ({"messages": []}, openai.BadRequestError, "at least one message"),
        ({"messages": ["hello"]}, openai.BadRequestError, "must be an object"),
        ({"tools": [{"type": "function"}]}, openai.BadRequestError, "with a name"),
        ({"seed": "x"}, openai.BadRequestError, "whole number"),
        ({"n": 2}, openai.BadRequestError, "'n' must be 1"),
        (fault("418"), openai.BadRequestError, "no fault '418'"),
    ],
)
def test_bad_requests_say_why(
    client: openai.OpenAI, more: dict[str, Any], error: type[openai.APIStatusError], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        ask(client, **more)
    assert caught.value.response.headers["x-poc-simulated"] == "1"


def test_unknown_tools_are_marked(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "fly", "parameters": {"type": "object", "properties": {}}}}
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=MESSAGES, tools=[tool], seed=1)
    assert raw.headers["x-poc-simulated"] == "unknown-tools"


def test_a_long_answer_is_cut_at_the_limit(client: openai.OpenAI) -> None:
    answer = ask(client, max_completion_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


def test_models_health_and_what_is_not_there(base_url: str, client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/health", timeout=10) as response:
        assert json.load(response) == {"status": "ok", "simulated": True}
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model=MODEL, input="x")


def test_options_make_latency() -> None:
    with (
        running_server(ServerOptions(first_token_s=0.15, per_token_s=0.005)) as url,
        openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client,
    ):
        started = time.perf_counter()
        stream = iter(ask(client, stream=True, stream_options={"include_usage": True}))
        next(stream)
        first = time.perf_counter() - started
        *_, last = stream
        total = time.perf_counter() - started
    assert first >= 0.15
    # The first of the parts does not wait for its share.
    assert total - first >= 0.7 * 0.005 * last.usage.completion_tokens


def test_serve_runs_until_it_is_interrupted_and_then_ends_quietly() -> None:
    program = "from poc.sample.server import serve; serve(port=0, ready=lambda url: print(url, flush=True))"
    command = [sys.executable, "-W", "error", "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
            assert ask(client).model == MODEL
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=30)
    assert (server.returncode, out, err) == (0, "", "")


def test_serve_refuses_other_hosts_and_taken_ports(base_url: str) -> None:
    with pytest.raises(InputError, match="this machine only"):
        serve(host="0.0.0.0", port=0)
    taken = int(base_url.rsplit(":", 1)[1].split("/")[0])
    with pytest.raises(InputError, match="cannot be used"):
        serve(port=taken)
    with pytest.raises(InputError, match="between 0 and 2"):
        serve(port=0, heed=5)
