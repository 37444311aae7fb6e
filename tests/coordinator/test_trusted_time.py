"""Whether the wall clock is believed: what witnesses say, and what a jump is worth without any. Seconds, from 1000 on."""

from headgate_coordinator.core.trusted_time import FRESH_S, SETTLING_S, ClockStatus, TrustedTime

YEAR_S = 366 * 86400.0


class Machine:
    """Its wall clock is right plus ``ahead``; so are witnesses that it is told of, plus their own error."""

    def __init__(self) -> None:
        self.time = TrustedTime()
        self.at = 1000.0
        self.ahead = 0.0

    def hears(self, witness: str, error: float = 0.0, *, independent: bool = True) -> None:
        self.time.note_reading(witness, 1000 * (self.at + error), self.at, independent=independent)

    def look(self, after: float = 0.0) -> ClockStatus:
        self.at += after
        return self.time.judge(1000 * (self.at + self.ahead), self.at)

    def believes(self, after: float = 0.0) -> bool:
        return self.look(after).believed


def test_a_clock_that_nobody_contradicts_is_believed_whatever_it_says_when_the_process_starts() -> None:
    """Also years behind the newest slot: a table that nobody wrote since opens as usual."""
    for ahead in (0.0, YEAR_S, -YEAR_S):
        machine = Machine()
        machine.ahead = ahead
        assert machine.look() == ClockStatus(believed=True, witnessed=False, alarm="")


def test_a_clock_ahead_of_a_witness_is_not_believed_until_it_is_put_right() -> None:
    for independent in (True, False):
        machine = Machine()
        machine.hears("Redis", independent=independent)
        assert machine.look(1) == ClockStatus(believed=True, witnessed=True, alarm="")
        machine.ahead = 3600
        status = machine.look(0.001)
        assert not status.believed
        assert "3600 s ahead of Redis" in status.alarm
        machine.ahead = 0
        assert machine.look(5) == ClockStatus(believed=True, witnessed=True, alarm="")


def test_a_process_that_starts_with_a_clock_ahead_believes_its_witness() -> None:
    machine = Machine()
    machine.ahead = 400 * 86400
    machine.hears("the store")
    assert not machine.believes()


def test_a_clock_behind_its_witnesses_issues_nothing_that_could_stop_anybody() -> None:
    machine = Machine()
    machine.ahead = -3600
    machine.hears("Redis")
    assert machine.look() == ClockStatus(believed=True, witnessed=False, alarm="")


def test_one_independent_witness_is_enough_and_the_one_that_differs_is_named() -> None:
    machine = Machine()
    machine.hears("the store")
    machine.hears("Redis", -86400)
    status = machine.look()
    assert (status.believed, status.witnessed) == (True, True)
    assert "86400 s ahead of Redis" in status.alarm


def test_a_witness_on_the_same_machine_does_not_confirm_what_another_one_denies() -> None:
    machine = Machine()
    machine.ahead = 3600
    machine.hears("Redis", 3600, independent=False)
    machine.hears("the store")
    assert not machine.believes()


def test_small_differences_are_no_news() -> None:
    machine = Machine()
    machine.hears("Redis")
    machine.ahead = 9
    assert machine.look(1) == ClockStatus(believed=True, witnessed=True, alarm="")


def test_a_jump_that_nobody_explains_waits_and_is_forgotten_when_the_clock_comes_back() -> None:
    machine = Machine()
    assert machine.believes()
    machine.ahead = 3600
    status = machine.look(1)
    assert not status.believed
    assert "jumped ahead by 3600 s" in status.alarm
    assert not machine.believes(SETTLING_S - 1)
    machine.ahead = 0
    assert machine.look(1) == ClockStatus(believed=True, witnessed=False, alarm="")


def test_a_jump_that_lasts_is_believed_with_an_alarm_and_a_second_one_waits_again() -> None:
    """A virtual machine that was asleep."""
    machine = Machine()
    machine.look()
    machine.ahead = 3600
    assert not machine.believes(1)
    status = machine.look(SETTLING_S)
    assert status.believed
    assert status.alarm
    assert machine.believes(SETTLING_S)
    machine.ahead = 7200
    assert not machine.believes(1)
    assert machine.believes(SETTLING_S)
    assert machine.look(3600).alarm == ""


def test_a_jump_that_an_independent_witness_confirms_is_believed_at_once() -> None:
    machine = Machine()
    machine.look()
    machine.at += 1
    machine.time.note_reading("the store", 1000 * (machine.at + 3600), machine.at, independent=True)
    machine.ahead = 3600
    assert machine.believes()
    assert "jumped" in machine.look(1).alarm


def test_a_witness_that_fell_silent_says_nothing_any_more() -> None:
    machine = Machine()
    machine.ahead = 3600
    machine.hears("Redis")
    assert not machine.believes(FRESH_S)
    assert machine.believes(1)
