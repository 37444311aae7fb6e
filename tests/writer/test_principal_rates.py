"""The rate of a principal at one writer: over all its streams, not over others', and closing a stream does not pay."""

import asyncio

import pytest

from headgate_runtime.access.quotas import UNLIMITED, Usage
from headgate_writer.principal_rates import PrincipalRates
from support.hand_clock import HandClock

TEN_ROWS = Usage(rows_per_s=10)


def ten_rows() -> Usage:
    return TEN_ROWS


def test_streams_of_one_principal_share_its_rate_and_others_do_not() -> None:
    rates = PrincipalRates(HandClock())
    with (
        rates.stream_of("ann", ten_rows) as one,
        rates.stream_of("ann", ten_rows) as two,
        rates.stream_of("bob", ten_rows) as other,
    ):
        one.count(30, 1, TEN_ROWS)
        assert two.delay(TEN_ROWS) == pytest.approx(3)
        assert other.delay(TEN_ROWS) == 0


def test_the_slower_of_rows_and_bytes_counts() -> None:
    with PrincipalRates(HandClock()).stream_of("ann", ten_rows) as rate:
        both = Usage(rows_per_s=10, bytes_per_s=100)
        rate.count(10, 500, both)
        assert rate.delay(both) == pytest.approx(5)


def test_a_stream_that_is_opened_again_owes_what_the_last_one_did() -> None:
    clock = HandClock()
    rates = PrincipalRates(clock)
    with rates.stream_of("ann", ten_rows) as rate:
        rate.count(30, 1, TEN_ROWS)
    with rates.stream_of("ann", ten_rows) as again:
        assert again.delay(TEN_ROWS) == pytest.approx(3)
        clock.now += 3
        assert again.delay(TEN_ROWS) == 0


def test_a_principal_that_left_without_a_debt_is_forgotten() -> None:
    rates = PrincipalRates(HandClock())
    with rates.stream_of("ann", ten_rows) as rate:
        pass
    with rates.stream_of("ann", ten_rows) as again:
        assert again is not rate


def test_a_principal_that_left_with_a_debt_is_forgotten_once_it_is_paid() -> None:
    clock = HandClock()
    rates = PrincipalRates(clock)
    with rates.stream_of("ann", ten_rows) as rate:
        rate.count(30, 1, TEN_ROWS)
    with rates.stream_of("bob", ten_rows):
        pass
    assert len(rates) == 1
    clock.now += 3
    with rates.stream_of("bob", ten_rows):
        assert len(rates) == 2
    assert len(rates) == 0


class Stepping(HandClock):
    """Sleeps take no real time."""

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


async def test_a_client_waits_until_its_debt_is_paid_and_sees_a_new_quota_meanwhile() -> None:
    clock = Stepping()
    with PrincipalRates(clock).stream_of("ann", ten_rows) as rate:
        rate.count(35, 1, TEN_ROWS)
        await rate.wait_for_turn(ten_rows)
        assert clock.now == pytest.approx(103.5)
        rate.count(1000, 1, TEN_ROWS)
        await rate.wait_for_turn(lambda: TEN_ROWS if clock.now < 105 else UNLIMITED)
        assert clock.now < 106
