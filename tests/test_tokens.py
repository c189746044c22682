"""Counting tokens offline: known values, estimates that say so, requests that grow linearly."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from poc import tokens


def test_known_token_ids_of_both_encodings():
    # Published examples: cl100k "tiktoken is great!" has six tokens; o200k gives the same count.
    assert tokens._encoding("cl100k_base").encode_ordinary("tiktoken is great!") == [83, 1609, 5963, 374, 2294, 0]
    assert tokens.count("tiktoken is great!", "gpt-4") == 6
    assert tokens.count("tiktoken is great!", "gpt-4o") == 6
    assert tokens.count("", "gpt-4o") == 0


@pytest.mark.parametrize(
    ("model", "encoding", "estimate"),
    [
        ("gpt-4o", "o200k_base", False),
        ("gpt-4o-2024-05-13", "o200k_base", False),
        ("openai/gpt-4o-mini", "o200k_base", False),
        ("gpt-4", "cl100k_base", False),
        ("gpt-oss-20b", "o200k_base", False),
        ("text-davinci-003", "o200k_base", True),
        ("claude-sonnet-4", "o200k_base", True),
        ("simulated-agent", "o200k_base", True),
        (None, "o200k_base", True),
    ],
)
def test_encoding_is_named_and_estimates_say_so(model, encoding, estimate):
    assert tokens.encoding_name(model) == encoding
    assert tokens.is_estimate(model) is estimate


def test_special_tokens_in_logs_are_plain_text():
    assert tokens.count("<|endoftext|>", "gpt-4o") > 1


def test_long_unbroken_text_does_not_overflow():
    assert tokens.count("a" * 1_000_000) > 10_000
    assert tokens.count(" " * 1_000_000) > 100


@given(st.text(max_size=400))
@settings(deadline=None, max_examples=60)
def test_count_is_what_tiktoken_says(text):
    encoding = tokens._encoding("o200k_base")
    assert isinstance(encoding, tiktoken.Encoding)
    assert tokens.count(text, "gpt-4o") == len(encoding.encode(text, disallowed_special=()))


def test_lone_surrogates_are_counted():
    assert tokens.count("\ud800 broken") > 0


def test_request_worked_by_hand():
    # 3 to prime the reply; 3 + 6 for the message; 7 + the schema as compact JSON for the tool.
    message = {"role": "user", "content": "tiktoken is great!"}
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    schema = tokens.count('{"name":"look","parameters":{}}', "gpt-4o")
    assert tokens.count_request([message], None, "gpt-4o") == 3 + 3 + 6
    assert tokens.count_request([message], [tool], "gpt-4o") == 12 + 7 + schema


def test_calls_parts_and_names_are_counted():
    calls = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}
    as_object = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "a", "arguments": {}}}]}
    assert tokens.count_message(calls) == 3 + 8 + tokens.count("a") + tokens.count("{}")
    assert tokens.count_message(as_object) == tokens.count_message(calls)
    parts = {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {}}]}
    assert tokens.count_message(parts) == 3 + tokens.count("hello") + 1000
    assert tokens.count_message({"role": "tool", "content": "x", "name": "a"}) == 3 + 1 + 1 + 1


def test_growing_history_counts_each_text_once():
    history = []
    tokens._count.cache_clear()
    for turn in range(50):
        history.append({"role": "user", "content": f"message number {turn}"})
        tokens.count_request(history)
    assert tokens._count.cache_info().misses == 50


def test_counts_without_a_network():
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise OSError('no network in this test')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from poc import tokens\n"
        "print(tokens.count('hello world', 'gpt-4o'), tokens.count('hello world', 'gpt-4'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "2"]
