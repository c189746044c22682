"""How many tokens a text or a request has, without a network.

tiktoken would fetch its rank files at first use. The same files lie in the
`bpe-openai` wheel, so tiktoken's own constructors run here with a loader that
reads that wheel and checks the hash that tiktoken expects.

Counts of plain text are exact for models whose encoding tiktoken knows and
the wheel carries; for every other model they are estimates, and so is every
count of a whole request, since servers frame messages and tools in their own
ways. The API's own usage always wins. Knows no price and no client.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import importlib.util
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import tiktoken
from tiktoken import model as tiktoken_model
from tiktoken_ext import openai_public

from poc.errors import PocError

__all__ = ["count", "count_message", "count_request", "encoding_name", "is_estimate"]

FALLBACK = "o200k_base"
"""The encoding for models that tiktoken does not know."""

# Encodings of which the wheel has the rank file; harmony only adds special tokens to o200k.
_CARRIED = {"o200k_base": "o200k_base", "cl100k_base": "cl100k_base", "o200k_harmony": "o200k_base"}

# Framing of chat requests, as OpenAI's cookbook measured it for chat completions.
_PER_MESSAGE = 3
_PER_NAME = 1
_PER_CALL = 8
_PER_TOOL = 7
_REPLY_PRIMER = 3
_PER_MEDIA_PART = 1000
"""An image or a file in a message: its text is no measure of it, so a round upper figure."""

# The regular expressions of tiktoken recurse on very long unbroken runs; pieces keep them shallow.
_PIECE = 50_000


def encoding_name(model: str | None = None) -> str:
    """The encoding used to count for `model`: ``o200k_base`` or ``cl100k_base``."""
    return _known_encoding(model) or FALLBACK


def is_estimate(model: str | None = None) -> bool:
    """True where `count` uses an encoding that is not known to be the model's own."""
    return _known_encoding(model) is None


def count(text: str, model: str | None = None) -> int:
    """Tokens of a plain text; special tokens inside it count as ordinary text."""
    return _count(text, encoding_name(model))


def count_message(message: Mapping[str, Any], model: str | None = None) -> int:
    """Estimated tokens of one chat message with its framing and tool calls."""
    return _count_message(message, encoding_name(model))


def count_request(
    messages: Iterable[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None = None,
    model: str | None = None,
) -> int:
    """Estimated input tokens of a chat request.

    Texts are counted once and remembered, so that asking again after every
    turn of a growing history costs one look-up a message.
    """
    name = encoding_name(model)
    total = _REPLY_PRIMER + sum(_count_message(message, name) for message in messages)
    for tool in tools or ():
        total += _PER_TOOL + _count(_json(tool.get("function", tool)), name)
    return total


@cache
def _known_encoding(model: str | None) -> str | None:
    if not model:
        return None
    # Routers prefix the vendor: "openai/gpt-4o".
    for name in (model, model.rsplit("/", 1)[-1]):
        try:
            return _CARRIED.get(tiktoken_model.encoding_name_for_model(name))
        except KeyError:
            continue
    return None


def _count_message(message: Mapping[str, Any], encoding: str) -> int:
    total = _PER_MESSAGE + _count_content(message.get("content"), encoding)
    if name := message.get("name"):
        total += _PER_NAME + _count(str(name), encoding)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else _json(arguments or {})
        total += _PER_CALL + _count(str(function.get("name") or ""), encoding) + _count(text, encoding)
    return total


def _count_content(content: Any, encoding: str) -> int:
    if content is None:
        return 0
    if isinstance(content, str):
        return _count(content, encoding)
    if isinstance(content, list):
        return sum(_count_part(part, encoding) for part in content)
    return _count(_json(content), encoding)


def _count_part(part: Any, encoding: str) -> int:
    if isinstance(part, str):
        return _count(part, encoding)
    if isinstance(part, Mapping) and isinstance(text := part.get("text") or part.get("refusal"), str):
        return _count(text, encoding)
    return _PER_MEDIA_PART


@lru_cache(maxsize=16_384)
def _count(text: str, encoding: str) -> int:
    encode = _encoding(encoding).encode_ordinary
    if len(text) <= _PIECE:
        return len(encode(text))
    return sum(len(encode(text[start : start + _PIECE])) for start in range(0, len(text), _PIECE))


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # Lone surrogates, which logs do contain.
        return json.dumps(value, separators=(",", ":"))


@cache
def _encoding(name: str) -> tiktoken.Encoding:
    """tiktoken's own encoding, with the wheel's ranks in place of a download."""
    constructor = getattr(openai_public, name)
    offline = types.FunctionType(constructor.__code__, {**vars(openai_public), "load_tiktoken_bpe": _load_ranks})
    return tiktoken.Encoding(**offline())


def _load_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    stem = url.rsplit("/", 1)[-1]
    # Found without an import: the package would load 74 MB of its own tokenizer.
    spec = importlib.util.find_spec("bpe_openai")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    paths = [path for folder in folders if (path := Path(folder, "data", f"{stem}.gz")).is_file()]
    if not paths:
        raise PocError(
            f"The token ranks '{stem}' are not installed.",
            where="package bpe-openai",
            todo="Install it again: pip install --force-reinstall bpe-openai",
        )
    data = gzip.decompress(paths[0].read_bytes())
    if expected_hash and hashlib.sha256(data).hexdigest() != expected_hash:
        raise PocError(
            f"The token ranks '{stem}' are not those that tiktoken expects.",
            where=str(paths[0]),
            todo="Install matching versions again: pip install --force-reinstall bpe-openai tiktoken",
        )
    fields = iter(data.split())
    return {binascii.a2b_base64(token): int(rank) for token, rank in zip(fields, fields, strict=True)}
