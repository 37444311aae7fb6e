"""Rows a second over the last checkpoints, and since when rows wait."""

import pytest

from headgate_coordinator.core.events import Broken, InstantAsked, Published, SlotWon, Tick
from headgate_coordinator.core.row_rate import RowRate
from support.one_table import OneTable, loaded


def test_the_rate_is_the_mean_since_the_first_rows_of_the_last_minute() -> None:
    rate = RowRate()
    assert rate.per_second(5.0) == 0.0
    rate.note_published(1_000, began=0.0, now=10.0)
    assert rate.per_second(10.0) == 100.0
    rate.note_published(3_000, began=10.0, now=20.0)
    assert rate.per_second(20.0) == 200.0
    assert rate.per_second(40.0) == 100.0, "it falls while no rows come"
    assert rate.per_second(75.0) == pytest.approx(3_000 / 65), "the first checkpoint is older than a minute"
    assert rate.per_second(80.5) == 0.0


def test_a_checkpoint_that_took_longer_than_the_span_counts_for_as_long_as_it_took() -> None:
    rate = RowRate()
    rate.note_published(30_000, began=0.0, now=300.0)
    assert rate.per_second(300.0) == 100.0
    assert rate.per_second(599.0) == pytest.approx(30_000 / 599)
    assert rate.per_second(601.0) == 0.0


def test_rows_wait_from_the_first_that_came_until_readers_see_them() -> None:
    table = OneTable("a")
    assert table.core.commits.waiting_since is None
    table.tell(loaded("a"), InstantAsked("a", 1, 1), table.issued(1), after=3.0)
    assert table.core.commits.waiting_since == 3.0
    table.tell(Tick(), after=1.0)
    table.tell(table.barrier("a", 1, size=100, handed={"a": 500}), table.flushed("a", 1, ["file"], received={"a": 500}))
    table.tell(SlotWon(1, 1), after=1.0)
    assert table.core.commits.waiting_since == 3.0, "durable is not queryable"
    table.tell(Published(1, 1))
    assert table.core.commits.waiting_since is None
    assert table.core.commits.rate.per_second(table.now) == 250.0


def test_rows_behind_a_barrier_wait_on_their_own_and_dropped_ones_do_not() -> None:
    table = OneTable("a")
    table.tell(loaded("a"), InstantAsked("a", 1, 1), table.issued(1), after=3.0)
    table.tell(Tick(), after=1.0)
    table.tell(InstantAsked("a", 1, 2), after=1.0)
    assert table.core.commits.waiting_since == 3.0
    table.tell(table.barrier("a", 1), table.flushed("a", 1, ["file"]))
    table.decide(1)
    assert table.core.commits.waiting_since == 5.0
    table.tell(Broken("a", 1, "no space"), after=1.0)
    assert table.core.commits.waiting_since is None
