"""Slot 0: it decides that there is a table here, and what the table is."""

from collections.abc import Mapping, Sequence

from headgate_tables.commitlog.bodies import Created
from headgate_tables.commitlog.fields import Json
from headgate_tables.commitlog.layout import is_number
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.publish import publish
from headgate_tables.commitlog.records import DerivedFile, encode_derived
from headgate_tables.commitlog.slot import Slot
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.times import TimeGenerator
from headgate_tables.commitlog.win import win
from headgate_tables.errors import CorruptFileError, OutcomeUnknownError, SyncFailedError, TableExistsError, TablesError
from headgate_tables.storage.store import Store
from headgate_tables.system import System


def create_log(
    store: Store,
    layout: LogFormat,
    system: System,
    config: Mapping[str, Json],
    derived: Sequence[DerivedFile],
    *,
    epoch: int = 0,
) -> None:
    """Wins slot 0 = CONFIG and publishes what it derives. ``epoch``: above it are those of all owners.

    Raises TableExistsError when the slot is taken.
    """
    first = LogState(layout)
    time = TimeGenerator(system.clock, first.time).next()
    body = Created(config=config, time=time, publish=encode_derived(derived))
    slot = Slot(0, epoch, system.ids.token(), first.last_hash, body)
    if win(store, layout, system.clock, slot) is None:
        raise TableExistsError(f"{store.url} has a commit log already", fix="Open it with open_table, or choose another place.")
    try:
        publish(store, layout, system.clock, slot)
    except SyncFailedError:
        raise  # no outcome that is only unknown: the process may end for it (hazard H14)
    except TablesError as error:
        raise OutcomeUnknownError(
            f"slot 0 has decided the table, but its files are not in place yet: {error.message}",
            fix="Open it with open_table once the cause is removed; the first write completes it.",
        ) from error


def lost_first_slot(store: Store, layout: LogFormat) -> CorruptFileError | None:
    """What is wrong with a table without slot 0 when others are there, so that nobody takes it for one that has no slots."""
    later = [name for name in store.list_folder(layout.slots).files if is_number(name)]
    if not later:
        return None
    return CorruptFileError(
        f"{layout.slot_path(0)} is gone, but later slots are there",
        fix="Restore it from a copy of the table; without it, nothing says what the table is. Reading the table still works.",
    )
