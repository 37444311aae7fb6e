"""How long clients keep what they have when generations are given up in a row: the decision alone."""

from headgate_coordinator.core.aborts import Aborts
from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.events import Broken, Tick, WriterLost
from headgate_coordinator.core.policy import CheckpointPolicy
from support.one_table import OneTable, joined, loaded


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


def alarms_of_aborts(table: OneTable) -> list[str]:
    """Texts, as an operator reads them now."""
    return [alarm.text for alarm in table.core.alarms if alarm.kind is AlarmKind.CHECKPOINTS_ABORTED]


def test_the_alarm_of_an_abort_ends_on_an_idle_table_once_its_writer_is_back_and_nothing_waits() -> None:
    table = OneTable("a")
    table.tell(WriterLost("a", "silent"))
    table.tell(Tick(), after=100.0)
    assert alarms_of_aborts(table), "without a writer nobody knows what waits"
    table.tell(joined("a"))
    table.tell(Tick(), after=29.0)
    assert alarms_of_aborts(table), "clients may still be on their way back"
    assert table.core.deadline() == table.now + 1.0
    table.tell(Tick(), after=1.0)
    assert (alarms_of_aborts(table), table.core.deadline()) == ([], None)


def test_the_alarm_of_an_abort_ends_on_an_idle_table_whose_lost_writer_stays_away() -> None:
    table = OneTable("a", "b")
    table.pass_all(2, "a", "b")
    table.tell(WriterLost("b", "silent"))
    table.tell(Tick(), after=29.0)
    assert alarms_of_aborts(table)
    table.tell(Tick(), after=1.0)
    assert alarms_of_aborts(table) == []


def test_the_alarm_of_aborts_stands_while_rows_wait_and_begins_anew_after_a_rest() -> None:
    table = OneTable("a")
    for generation in (1, 2, 3):
        table.tell(Broken("a", generation, "its disk is full"))
        table.tell(Tick(), loaded("a"), after=29.0)
    assert "for 87 s: 3 were aborted" in alarms_of_aborts(table)[0]
    table.tell(Tick(), after=1.0)
    table.tell(Tick(), after=29.0)
    assert alarms_of_aborts(table), "a checkpoint with rows is being flushed"
    table.tell(Broken("a", 4, "its disk is full"), Tick(), Tick())
    table.tell(Tick(), after=30.0)
    table.tell(Tick(), after=30.0)
    assert alarms_of_aborts(table) == []
    table.tell(Broken("a", 5, "its network is gone"), after=1000.0)
    assert "for 0 s: 1 were aborted" in alarms_of_aborts(table)[0]
