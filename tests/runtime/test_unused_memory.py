"""A service returns memory after a burst, and only then."""

from headgate_runtime.unused_memory import CalmAfterGrowth

MIB = 1 << 20


def decisions(*samples: tuple[float, int]) -> list[bool]:
    """Of (CPU seconds, resident MiB), from 100 MiB on; a return brings the process back to these."""
    decision = CalmAfterGrowth(100 * MIB)
    found = []
    for cpu_s, resident in samples:
        found.append(decision.sample(cpu_s, resident * MIB))
        if found[-1]:
            decision.returned(100 * MIB)
    return found


def test_memory_is_returned_after_three_calm_seconds() -> None:
    assert decisions((0.9, 300), (0.1, 300), (0.1, 300), (0.1, 300), (0.1, 100)) == [False, False, False, True, False]


def test_a_busy_second_begins_the_wait_anew() -> None:
    assert decisions(*[(0.1, 300), (0.1, 300), (0.5, 300)] * 3) == [False] * 9


def test_a_process_that_has_not_grown_keeps_what_it_has() -> None:
    assert decisions(*[(0.0, 115)] * 10) == [False] * 10
    assert decisions(*[(0.0, 116)] * 3) == [False, False, True]


def test_growth_counts_from_the_least_since_the_last_return() -> None:
    assert decisions((0.9, 80), (0.1, 95), (0.1, 95), (0.1, 96)) == [False, False, False, True]


def test_what_the_start_left_is_returned_once() -> None:
    decision = CalmAfterGrowth()
    assert [decision.sample(0.0, 100 * MIB) for _ in range(3)] == [False, False, True]
    decision.returned(90 * MIB)
    assert not any(decision.sample(0.0, 100 * MIB) for _ in range(10))


def test_what_a_return_leaves_is_in_use_and_not_asked_for_again() -> None:
    decision = CalmAfterGrowth(100 * MIB)
    assert [decision.sample(0.0, 300 * MIB) for _ in range(3)] == [False, False, True]
    decision.returned(290 * MIB)
    assert not any(decision.sample(0.0, 300 * MIB) for _ in range(10))
