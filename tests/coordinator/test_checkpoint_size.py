"""How much a checkpoint takes (``CheckpointSize``): the decision alone."""

import random

import pytest

from headgate_coordinator.core.checkpoint_size import CheckpointSize

MIB = 1 << 20
LEAST, TARGET = 8 * MIB, 2.0


def size(limit: int) -> CheckpointSize:
    sized = CheckpointSize(LEAST, TARGET)
    sized.limit = limit
    return sized


def after(limit: int, taken: int, seconds: float) -> int:
    sized = size(limit)
    sized.note_flush(limit, taken, seconds)
    return sized.limit


def test_a_new_table_begins_with_more_than_one_behind_an_outage() -> None:
    sized = CheckpointSize(LEAST, TARGET)
    assert sized.limit == 4 * LEAST
    sized.restart_small()
    assert sized.limit == LEAST


def test_nothing_is_bounded_while_all_goes_well() -> None:
    assert after(0, 500 * MIB, 1.9) == 0


def test_a_checkpoint_that_took_too_long_bounds_the_next_to_what_can_be_flushed_in_time() -> None:
    assert after(0, 400 * MIB, 8.0) == 100 * MIB
    assert after(200 * MIB, 200 * MIB, 4.0) == 100 * MIB


def test_a_full_checkpoint_that_was_quick_lets_the_next_take_up_to_four_times_as_much() -> None:
    assert after(LEAST, LEAST, 0.01) == 4 * LEAST
    assert after(LEAST, LEAST, 1.0) == 2 * LEAST
    assert after(LEAST, LEAST, 0.0) == 4 * LEAST


def test_a_checkpoint_that_was_not_half_full_says_nothing_of_larger_ones() -> None:
    assert after(LEAST, LEAST // 2 - 1, 0.01) == LEAST


def test_a_quick_checkpoint_that_began_with_an_older_limit_takes_nothing_back() -> None:
    sized = size(16 * LEAST)
    sized.note_flush(LEAST, LEAST, 1.0)
    assert sized.limit == 16 * LEAST


def test_a_slow_checkpoint_that_began_with_an_older_limit_lets_the_next_take_no_more() -> None:
    assert after(LEAST, 400 * MIB, 8.0) == LEAST, "it was larger than what is allowed now"


def test_no_checkpoint_takes_less_than_the_first_ones() -> None:
    assert after(LEAST, LEAST, 100.0) == LEAST
    assert after(0, MIB, 100.0) == LEAST


def test_a_limit_that_memory_makes_anyway_is_none() -> None:
    assert after(600 * MIB, 600 * MIB, 0.5) == 0


def test_without_a_least_size_checkpoints_are_never_bounded() -> None:
    sized = CheckpointSize(0, TARGET)
    sized.restart_small()
    sized.note_flush(0, 1000 * MIB, 100.0)
    assert sized.limit == 0


@pytest.mark.parametrize("rate", [1 * MIB, 20 * MIB, 200 * MIB])
@pytest.mark.parametrize("fixed", [0.0, 0.3])
def test_a_cluster_that_is_given_more_than_it_can_take_comes_to_checkpoints_of_about_the_target(rate: int, fixed: float) -> None:
    """Each checkpoint begins with what was known when the one before began to flush."""
    noise = random.Random(rate)
    sized = CheckpointSize(LEAST, TARGET)
    sized.restart_small()
    limits, seconds = [sized.limit, sized.limit], []
    for _ in range(30):
        limit = limits.pop(0)
        taken = limit or 2000 * MIB
        seconds.append(fixed + taken / rate * noise.uniform(0.8, 1.2))
        sized.note_flush(limit, taken, seconds[-1])
        limits.append(sized.limit)
    at_least = fixed + LEAST / rate * 1.2
    assert max(seconds[-10:]) <= max(at_least, 1.6 * TARGET)
    assert min(seconds[-10:]) >= min(0.3 * TARGET, LEAST / rate)
