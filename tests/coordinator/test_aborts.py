"""How long clients keep what they have when generations are given up in a row: the decision alone."""

from headgate_coordinator.core.aborts import Aborts
from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.policy import CheckpointPolicy


def test_the_first_abort_makes_nobody_wait_and_later_ones_longer_each_time_up_to_the_interval() -> None:
    aborts, pauses = Aborts(CheckpointPolicy(checkpoint_interval=3.0)), []
    for number in range(6):
        aborts.note_abort("disk", 100.0 * number)
        pauses.append(aborts.opens_at and aborts.opens_at - 100.0 * number)
    assert pauses == [None, 0.5, 1.0, 2.0, 3.0, 3.0]


def test_opens_are_answered_again_once_when_the_pause_is_over() -> None:
    aborts = Aborts(CheckpointPolicy())
    aborts.note_abort("disk", 1.0)
    assert not aborts.end_pause(1.0)
    aborts.note_abort("disk", 2.0)
    assert [aborts.end_pause(now) for now in (2.0, 2.4, 2.5, 2.6)] == [False, False, True, False]


def test_a_checkpoint_that_wrote_begins_anew_and_one_that_wrote_nothing_only_ends_the_alarm() -> None:
    aborts = Aborts(CheckpointPolicy())
    aborts.note_abort("disk", 1.0)
    aborts.note_abort("network", 2.0)
    text = "no checkpoint was decided for 10 s: 2 were aborted, the last because network"
    assert aborts.alarms(11.0) == [StandingAlarm(AlarmKind.CHECKPOINTS_ABORTED, text)]
    aborts.note_decision(writes=False)
    assert aborts.alarms(11.0) == []
    aborts.note_abort("disk", 20.0)
    assert aborts.opens_at == 21.0
    aborts.note_decision(writes=True)
    aborts.note_abort("disk", 30.0)
    assert aborts.opens_at is None
