"""Prices: worked by hand, unknown stays None, overrides are checked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc import prices
from poc.errors import InputError
from poc.prices import Price, cost_usd, load_overrides, price_of
from poc.trajectory import Usage

OWN = {"own-model": Price(input=2.0, output=8.0, cached=0.5)}


def test_cost_worked_by_hand():
    # 600 uncached at 2, 400 cached at 0.5, 100 out at 8, per million.
    usage = Usage(input_tokens=1000, cached_tokens=400, output_tokens=100, reasoning_tokens=60)
    assert cost_usd(usage, "own-model", overrides=OWN) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 8) / 1e6)


def test_listed_price_is_that_of_the_package():
    from genai_prices import Usage as ListedUsage
    from genai_prices import calc_price

    listed = calc_price(
        ListedUsage(input_tokens=1000, cache_read_tokens=400, output_tokens=100), "gpt-4o", provider_id="openai"
    )
    usage = Usage(input_tokens=1000, cached_tokens=400, output_tokens=100)
    assert cost_usd(usage, "gpt-4o") == pytest.approx(float(listed.total_price))
    price = price_of("gpt-4o")
    assert price is not None
    assert price.source == "openai"


def test_tiers_follow_the_package():
    from genai_prices import Usage as ListedUsage
    from genai_prices import calc_price

    url = "https://generativelanguage.googleapis.com/v1beta/openai/"
    price = price_of("gemini-2.5-pro", base_url=url)
    assert price is not None
    assert price.tiers
    for size in (1_000, 300_000):
        listed = calc_price(ListedUsage(input_tokens=size, output_tokens=10), "gemini-2.5-pro", provider_api_url=url)
        usage = Usage(input_tokens=size, output_tokens=10)
        assert cost_usd(usage, "gemini-2.5-pro", base_url=url) == pytest.approx(float(listed.total_price))


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:9/v1", "http://localhost:9", "https://gateway.example.org/v1"])
def test_a_known_name_on_an_unknown_server_has_no_price(base_url):
    assert price_of("gpt-4o", base_url=base_url) is None
    assert cost_usd(Usage(input_tokens=1, output_tokens=1), "gpt-4o", base_url=base_url) is None


def test_unknown_tokens_are_not_free():
    assert cost_usd(None, "gpt-4o") is None
    assert cost_usd(Usage(input_tokens=5), "own-model", overrides=OWN) is None


def test_a_stated_zero_is_a_price():
    table = load_overrides({"house-model": {"input": 0, "output": 0}})
    usage = Usage(input_tokens=10, output_tokens=10)
    assert cost_usd(usage, "house-model", base_url="http://127.0.0.1:1/v1", overrides=table) == 0.0


def test_overrides_win_and_come_from_yaml(tmp_path):
    path = tmp_path / "prices.yaml"
    path.write_text("gpt-4o: {input: 1, output: 2}\n")
    table = load_overrides(path)
    assert price_of("gpt-4o", overrides=table) == Price(input=1.0, output=2.0)
    assert load_overrides(None) == {}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"m": {"inptu": 1, "output": 2}}, 'Did you mean "input"'),
        ({"m": {"input": 1}}, "no 'output'"),
        ({"m": {"input": -1, "output": 2}}, "not a figure"),
        ({"m": {"input": True, "output": 2}}, "not a figure"),
        ({"m": {"input": float("nan"), "output": 2}}, "not a figure"),
        ({"m": 3}, "must have 'input'"),
    ],
)
def test_bad_overrides_are_named(table, message):
    with pytest.raises(InputError, match=message) as caught:
        load_overrides(table)
    assert "'m'" in (caught.value.where or "")


def test_bad_files_are_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_overrides(tmp_path / "absent.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [1")
    with pytest.raises(InputError, match="not valid YAML"):
        load_overrides(broken)
    broken.write_text("- a\n")
    with pytest.raises(InputError, match="mapping"):
        load_overrides(broken)


counts = st.integers(0, 10**7)


@given(counts, counts, counts, counts)
@settings(deadline=None)
def test_cost_grows_with_tokens_and_cache_never_costs_more(tokens_in, more, cached, tokens_out):
    def cost(size: int, from_cache: int | None) -> float:
        usage = Usage(input_tokens=size, cached_tokens=from_cache, output_tokens=tokens_out)
        value = cost_usd(usage, "own-model", overrides=OWN)
        assert value is not None
        return value

    assert cost(tokens_in + more, None) >= cost(tokens_in, None)
    assert cost(tokens_in, cached) <= cost(tokens_in, None)
    assert prices.price_of("own-model", overrides=OWN) is OWN["own-model"]
