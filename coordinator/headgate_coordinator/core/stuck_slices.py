"""File slices that cannot be compacted: which rows are refused, and the alarms for operators. Pure.

The limits of log files and bytes do not hold for such a slice: compactors cannot help it, and no reader can read it while a file
of it is damaged. It may grow further than others; past that, its own rows alone are refused. They cannot go to another file
group: with Hudi's bucket index a bucket has one in each partition, and readers would show its keys twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate_coordinator.core.alarms import AlarmKind, StandingAlarm
from headgate_coordinator.core.instructions import Refusal, RefusedSlice
from headgate_coordinator.core.pressure import size
from headgate_tables.face.log import format_time
from headgate_tables.face.owner import StuckSlice
from headgate_tables.face.settings import TableSettings

OWN_LIMIT = 10
"""Limit of a stuck slice, as a multiple of the usual one. Larger: more time for operators, more to merge afterwards."""
_UNDER_WAY = 1
"""Of these multiples: room for what checkpoints under way still add; their shares come to no more (``Backpressure``)."""


@dataclass(frozen=True, slots=True)
class StuckLoad:
    """A stuck slice with the log files and log bytes that wait in it; 0 until they are counted."""

    stuck: StuckSlice
    files: int
    bytes: int

    def is_full(self, settings: TableSettings) -> bool:
        """Whether it takes no more rows, even if no operator has set it aside."""
        most = OWN_LIMIT - _UNDER_WAY
        return self.files >= most * settings.max_log_files or self.bytes >= most * settings.max_log_bytes


def refused_slices(table: str, loads: Sequence[StuckLoad], settings: TableSettings) -> tuple[RefusedSlice, ...]:
    """Returns the slices whose rows are refused, and why. Refusals name neither files nor what is wrong with them."""
    found: list[RefusedSlice] = []
    for load in loads:
        if (bucket := load.stuck.bucket) is not None and (why := _refusal(table, load, settings)) is not None:
            found.append(RefusedSlice(load.stuck.partition, bucket, why))
    return tuple(found)


def alarms(table: str, loads: Sequence[StuckLoad], settings: TableSettings) -> list[StandingAlarm]:
    """Alarms of the slices that somebody has to put in order."""
    return [alarm(table, each, settings) for each in loads if each.stuck.aside or not each.stuck.is_accepted]


def alarm(table: str, load: StuckLoad, settings: TableSettings) -> StandingAlarm:
    """Alarm for operators: which slice, which file and byte, what is done about it, what to do."""
    kind = AlarmKind.SLICE_SET_ASIDE if load.stuck.aside else AlarmKind.SLICE_STUCK
    return StandingAlarm(kind, _alarm_text(table, load, settings))


def _alarm_text(table: str, load: StuckLoad, settings: TableSettings) -> str:
    stuck, name = load.stuck, load.stuck.name
    back = f"`headgate table slice readmit {table} {name}`"
    if stuck.aside:
        why = f" ({_sentence(stuck.why)})" if stuck.why else ""
        return f"file slice {name} is set aside{why}: its rows are refused. When its files are in order: {back}"
    text = f"file slice {name} cannot be compacted: {_sentence(stuck.why)}. {stuck.tries} plans went on without it, "
    again = f"after {format_time(stuck.again)}" if stuck.again else "next"
    text += f"and it is tried again {again}; other slices go on. Restore the file, then {back}"
    if load.is_full(settings):
        return f"{text}. {_waiting(load, settings)}: its rows are refused"
    return f"{text}; `headgate table slice set-aside {table} {name}` refuses its rows until then"


def _refusal(table: str, load: StuckLoad, settings: TableSettings) -> Refusal | None:
    if load.stuck.aside:
        why = "an operator has set it aside"
    elif load.is_full(settings):
        why = f"it cannot be compacted, and {_waiting(load, settings)}"
    else:
        return None
    name = load.stuck.name
    fix = (
        f"Send the other rows of the batch in its place, and keep those of this slice until operators have put it in order "
        f"and readmitted it (`headgate table slice readmit {table} {name}`)."
    )
    return Refusal("CODE_SLICE_SET_ASIDE", f"file slice {name} takes no rows: {why}", fix)


def _waiting(load: StuckLoad, settings: TableSettings) -> str:
    limits = f"{OWN_LIMIT * settings.max_log_files} or {size(OWN_LIMIT * settings.max_log_bytes)}"
    return f"{load.files} log files of it wait with {size(load.bytes)}, close to the limit of such a slice ({limits})"


def _sentence(text: str) -> str:
    return text.rstrip().removesuffix(".")
