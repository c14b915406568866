"""What a call costs: exact where the price is known, unsaid where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.checks import PROVIDERS
from gateway.providers.base import Usage
from gateway.providers.prices import HOSTS, PRICES, Price, cost, list_price, price_of

COUNTS = st.integers(0, 10**7)


def test_every_family_has_prices_and_a_home() -> None:
    families = PROVIDERS - {"scripted"}
    assert {name.partition(":")[0] for name in PRICES} == families == set(HOSTS)


@pytest.mark.parametrize("price", PRICES.values(), ids=PRICES)
def test_reading_the_cache_is_never_dearer_than_reading_and_writing_than_reading(price: Price) -> None:
    assert price.cached is not None
    assert 0 < price.cached < price.input < price.output
    assert price.cache_write is None or price.cache_write >= price.input


def test_each_kind_of_token_has_its_own_price() -> None:
    usage = Usage(input=1_000_000, output=100_000, cached=600_000, cache_written=200_000)
    # 0.2 * 3 + 0.6 * 0.3 + 0.2 * 3.75 + 0.1 * 15
    assert cost("anthropic:claude-sonnet-4-5", usage) == pytest.approx(0.60 + 0.18 + 0.75 + 1.50)


def test_a_dated_name_costs_what_the_undated_one_costs() -> None:
    usage = Usage(input=1_000, output=10)
    assert cost("anthropic:claude-haiku-4-5-20251001", usage) == cost("anthropic:claude-haiku-4-5", usage)
    assert cost("openai:gpt-5.4-2026-03-05", usage) == cost("openai:gpt-5.4", usage)


def test_a_long_request_costs_more_as_a_whole() -> None:
    at, above = Usage(input=200_000, output=1_000), Usage(input=200_001, output=1_000)
    short, long = cost("gemini:gemini-2.5-pro", at), cost("gemini:gemini-2.5-pro", above)
    assert short == pytest.approx(0.25 + 0.01)
    assert long == pytest.approx(0.50 + 0.015, rel=1e-4)


@pytest.mark.parametrize("model_id", ["openai:gpt-9", "scripted", "claude-opus-5", "other:claude-opus-5", ""])
def test_nothing_is_guessed_for_a_model_that_is_not_in_the_table(model_id: str) -> None:
    assert price_of(model_id) is None
    assert cost(model_id, Usage(input=10, output=10)) is None


def test_a_given_price_holds_instead_of_the_table_s() -> None:
    own = Price(input=1, output=2)
    assert cost("anthropic:claude-opus-5", Usage(input=10**6, output=10**6, cached=10**6), own) == 3


@pytest.mark.parametrize(
    ("address", "known"),
    [
        (None, True),
        ("https://api.anthropic.com", True),
        ("https://api.anthropic.com/v1/", True),
        ("https://openrouter.example/api", False),
        ("http://127.0.0.1:8080", False),
    ],
)
def test_the_list_price_holds_at_the_vendors_own_address_only(address: str | None, known: bool) -> None:
    assert (list_price("anthropic:claude-opus-5", address) is not None) == known


@given(
    st.lists(
        st.builds(Usage, input=COUNTS, output=COUNTS, cost=st.one_of(st.none(), st.floats(0, 9))), max_size=5
    )
)
def test_the_sum_is_known_exactly_where_every_cost_is(usages: list[Usage]) -> None:
    total = sum(usages, Usage())
    counted = [usage for usage in usages if usage.total]
    if not counted or any(usage.cost is None for usage in counted):
        assert total.cost is None
    else:
        assert total.cost == pytest.approx(sum(usage.cost or 0 for usage in counted))
    assert total.total == sum(usage.total for usage in usages)
