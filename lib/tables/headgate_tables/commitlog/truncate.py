"""Folds, the boundary, and the end of old slots (rules G1 to G3): opening a table costs the same after a year as at first."""

from headgate_tables.commitlog.folds import encode_fold
from headgate_tables.commitlog.layout import LogLayout, is_number, number_name
from headgate_tables.commitlog.slot import seal
from headgate_tables.commitlog.state import LogState
from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.storage.store import Store
from headgate_tables.system import Clock


def write_fold(store: Store, clock: Clock, state: LogState) -> None:
    """Writes fold K(n), then the boundary, which holds the wall clock in ms. All up to slot n is published and durable (G1, G2).

    Raises SyncFailedError, StoreUnavailableError.
    """
    name, layout = number_name(state.n), state.layout
    fold, boundary = seal(encode_fold(state)), b"%d" % clock.now_ms()
    for path, content in ((f"{layout.folds}/{name}", fold), (f"{layout.bounds}/{name}", boundary)):
        create_for_certain(store, clock, path, content, durable=True)


def truncate(store: Store, layout: LogLayout, clock: Clock, retire_after_ms: int) -> None:
    """Deletes slots up to the newest boundary that is older than ``retire_after_ms``, and older folds and boundaries.

    Slot 0 stays: it identifies the table, and nobody can create another table here while it exists.

    Until then a paused process may still send its slot, which the boundary check detects (rule G4). Slots go first:
    a fold without its slots can be opened, slots without a fold cannot.
    """
    boundaries = sorted(name for name in store.list_folder(layout.bounds).files if is_number(name))
    now = clock.now_ms()
    retired = ""
    for name in boundaries[-2::-1]:  # all but the newest, so that slots always follow a fold
        written = _content(store, f"{layout.bounds}/{name}")
        # A damaged one says nothing, and the next older one is as good: fewer slots go.
        if _is_time(written) and now - int(written) >= retire_after_ms:
            retired = name
            break
    if not retired:
        return
    slots = [name for name in store.list_folder(layout.slots).files if is_number(name) and number_name(0) < name <= retired]
    store.delete(f"{layout.slots}/{name}" for name in slots)
    for folder in (layout.folds, layout.bounds):
        old = [name for name in store.list_folder(folder).files if is_number(name) and name < retired]
        store.delete(f"{folder}/{name}" for name in old)


def _content(store: Store, path: str) -> bytes:
    try:
        return store.get(path).to_pybytes()
    except FileNotFoundError:
        return b""


def _is_time(written: bytes) -> bool:
    return written.isdigit() and len(written) <= _MOST_DIGITS


_MOST_DIGITS = 15
"""Of milliseconds since the epoch, for the next thirty thousand years."""
