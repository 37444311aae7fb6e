"""What is owed at a rate, and when the next may be taken."""

import math

import pytest

from headgate_runtime.debt import Debt


def test_what_was_taken_is_paid_off_at_the_rate() -> None:
    debt = Debt(100.0)
    assert debt.delay(10, 100.0) == 0
    debt.take(50, 10, 100.0)
    assert debt.delay(10, 102.0) == pytest.approx(3)
    debt.take(10, 10, 102.0)
    assert debt.delay(10, 102.0) == pytest.approx(4)
    assert debt.delay(10, 200.0) == 0


def test_time_without_a_debt_is_no_credit() -> None:
    debt = Debt(0.0)
    debt.take(10, 10, 1000.0)
    assert debt.delay(10, 1000.0) == pytest.approx(1)


def test_a_rate_that_is_lifted_forgives_the_debt() -> None:
    debt = Debt(0.0)
    debt.take(1000, 1, 0.0)
    assert debt.delay(math.inf, 0.0) == 0
    debt.take(1000, math.inf, 0.0)
    assert debt.delay(1, 0.0) == 0


def test_at_rate_0_what_is_taken_is_owed_and_no_time_pays_it() -> None:
    debt = Debt(0.0)
    assert debt.delay(0, 0.0) == math.inf
    debt.take(10, 0, 0.0)
    assert debt.delay(0, 3600.0) == math.inf
    assert debt.delay(10, 3600.0) == pytest.approx(1)
