"""What a model call costs, in US dollars.

List prices come from the `genai-prices` package (a snapshot inside the
package, so no network). They hold for the vendor behind a base URL: a server
that the package does not know, such as a gateway or a server on this machine,
has no list price, whatever its model is called. An unknown price is None; it
is never guessed and never 0. A team states its own prices as overrides.

Knows no client and no budget.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from poc.errors import InputError, did_you_mean
from poc.trajectory import Usage

__all__ = ["OPENAI_URL", "Price", "PriceTable", "cost_usd", "load_overrides", "price_of"]

OPENAI_URL = "https://api.openai.com/v1"
"""What a base URL of None means."""

_MILLION = 1_000_000
_FIELDS = ("input", "cached", "output")


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per million tokens. `cached` None: cached input costs as much as input.

    `source` is ``override`` or the vendor in genai-prices. With `tiers`, the
    figures are those of the lowest tier and long requests cost more.
    """

    input: float
    output: float
    cached: float | None = None
    source: str = "override"
    tiers: bool = False


PriceTable = Mapping[str, Price]
"""Prices that the team states, by model name; they win over list prices."""


def load_overrides(source: str | os.PathLike[str] | Mapping[str, Any] | None) -> dict[str, Price]:
    """Prices from a mapping, or from a YAML file, of model name -> ``{input, output, cached}``.

    Figures are US dollars per million tokens. Raises `InputError` for unknown
    fields, missing fields and negative figures, naming the model.
    """
    if source is None:
        return {}
    where = "prices"
    table: Any = source
    if not isinstance(source, Mapping):
        where = os.fspath(source)
        try:
            table = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"The price file cannot be read: {error.strerror}.", where=where) from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InputError(f"The price file is not valid YAML: {error}", where=where) from error
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise InputError(
            "Prices must be a mapping of model names.", where=where, todo="Write 'my-model: {input: 1.0, output: 2.0}'."
        )
    return {str(model): _price(entry, f"{where}, model '{model}'") for model, entry in table.items()}


def _price(entry: Any, where: str) -> Price:
    if isinstance(entry, Price):
        return entry
    todo = "Give US dollars per million tokens: {input: 1.0, output: 2.0, cached: 0.5}; 'cached' may be left out."
    if not isinstance(entry, Mapping):
        raise InputError("A price must have 'input' and 'output'.", where=where, todo=todo)
    for field in entry:
        if field not in _FIELDS:
            raise InputError(f"Unknown field '{field}' in a price.{did_you_mean(str(field), _FIELDS)}", where=where)
    figures: dict[str, float] = {}
    for field in _FIELDS:
        value = entry.get(field)
        if value is None:
            if field == "cached":
                continue
            raise InputError(f"The price has no '{field}'.", where=where, todo=todo)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"The price '{field}' is {value!r}, not a figure from 0 up.", where=where, todo=todo)
        figures[field] = float(value)
    return Price(input=figures["input"], output=figures["output"], cached=figures.get("cached"))


def price_of(model: str, *, base_url: str | None = None, overrides: PriceTable | None = None) -> Price | None:
    """The price of a model at a server, for display; None when unknown.

    base_url: the server; None is OpenAI's own.
    """
    if overrides and model in overrides:
        return overrides[model]
    return _listed(model, base_url or OPENAI_URL)


def cost_usd(
    usage: Usage | None,
    model: str,
    *,
    base_url: str | None = None,
    overrides: PriceTable | None = None,
) -> float | None:
    """Cost of one call in US dollars; None when the price or the tokens are unknown.

    usage: cached and reasoning tokens are parts of the totals. Without a
    reported number of cached tokens all input is charged in full: an upper
    figure.
    """
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    price = price_of(model, base_url=base_url, overrides=overrides)
    if price is None:
        return None
    if price.tiers:
        return _tiered_cost(usage.input_tokens, cached, usage.output_tokens, model, base_url or OPENAI_URL)
    cached_price = price.input if price.cached is None else price.cached
    return (
        (usage.input_tokens - cached) * price.input + cached * cached_price + usage.output_tokens * price.output
    ) / _MILLION


def _tiered_cost(input_tokens: int, cached: int, output_tokens: int, model: str, base_url: str) -> float:
    from genai_prices import Usage as ListedUsage
    from genai_prices import calc_price

    usage = ListedUsage(input_tokens=input_tokens, cache_read_tokens=cached, output_tokens=output_tokens)
    return float(calc_price(usage, model, provider_api_url=base_url).total_price)


@lru_cache(maxsize=1024)
def _listed(model: str, base_url: str) -> Price | None:
    # Imported late: it takes half a second, and most verbs need no price.
    from genai_prices import Usage as ListedUsage
    from genai_prices import calc_price

    try:
        found = calc_price(ListedUsage(input_tokens=0, output_tokens=0), model, provider_api_url=base_url)
    except LookupError:
        return None
    listed = [getattr(found.model_price, name, None) for name in ("input_mtok", "output_mtok", "cache_read_mtok")]
    tokens_in, tokens_out, cached = (_base(price) for price in listed)
    if tokens_in is None or tokens_out is None:
        return None
    return Price(
        input=tokens_in,
        output=tokens_out,
        cached=cached,
        source=found.provider.id,
        tiers=any(not isinstance(price, Decimal | None) for price in listed),
    )


def _base(price: Any) -> float | None:
    """The figure of the lowest tier, or the figure itself."""
    price = getattr(price, "base", price)
    return None if price is None else float(price)
