"""Reading the log: newest fold, then every slot after it (rules T1, T5). Never writes."""

from collections.abc import Sequence
from copy import deepcopy

from headgate_tables.commitlog.fields import UnfitError
from headgate_tables.commitlog.folds import decode_fold
from headgate_tables.commitlog.layout import is_number, number_name
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.slot import Slot, decode_slot, hash_of, unfit, unseal
from headgate_tables.commitlog.state import LogState
from headgate_tables.errors import CorruptFileError
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import Workers, both

_READS_AT_ONCE = 16
"""Requests of one reader of the log that an object store has at a time. More: more memory, and the store may refuse some."""


def read_boundary(store: Store, layout: LogFormat) -> int:
    """Slots up to this number may be deleted (rule G2); -1 when none was declared."""
    return max((int(name) for name in store.list_folder(layout.bounds).files if is_number(name)), default=-1)


def read_slot(store: Store, layout: LogFormat, n: int) -> tuple[Slot, str]:
    """Slot ``n`` and the hash of its bytes. Raises FileNotFoundError, CorruptFileError, UnsupportedTableError."""
    data = store.get(layout.slot_path(n)).to_pybytes()
    return decode_slot(data, layout, n), hash_of(data)


def read_state(store: Store, layout: LogFormat, *, folds: bool = True) -> tuple[LogState, list[Slot]]:
    """The state after the newest slot, and the slots read for it (those after the newest fold).

    Every slot below the newest is final, because a slot is created only once and in order.
    ``folds=False`` reads from the oldest slot on, for checking. Raises CorruptFileError for a gap, a broken chain or a
    slot that makes no sense, UnsupportedTableError for one of a newer version.
    """
    state = _newest_fold(store, layout) if folds else _oldest_state(store, layout)
    read = _read_after(store, layout, state.n, _names_after(store, layout, state.n))
    for slot, own_hash in read:
        state.apply(slot, own_hash)
    return state, [slot for slot, _ in read]


def read_on(store: Store, layout: LogFormat, state: LogState, unfolded: Sequence[Slot]) -> tuple[LogState, list[Slot]]:
    """As ``read_state``, for who has read up to ``state`` before, where ``unfolded`` stood after the newest fold: reads what is
    newer, and the newest slot of then again. Returns ``state`` itself when there is nothing newer. Raises as ``read_state``.
    """
    if state.n < 0:
        return read_state(store, layout)
    (folds, is_there), names = both(
        store,
        lambda: both(store, lambda: store.list_folder(layout.folds).files, lambda: _is_still_there(store, layout, state)),
        lambda: _names_after(store, layout, state.n),
    )
    folded = max((int(name) for name in folds if is_number(name)), default=-1)
    if state.n < folded or not is_there:
        return read_state(store, layout)
    newer = _read_after(store, layout, state.n, names)
    if newer:
        state = deepcopy(state)  # a slot that makes no sense leaves the caller with what it had
        for slot, own_hash in newer:
            state.apply(slot, own_hash)
    state.folded = folded
    return state, [slot for slot in (*unfolded, *(slot for slot, _ in newer)) if slot.n > folded]


def _is_still_there(store: Store, layout: LogFormat, state: LogState) -> bool:
    """Whether the newest slot of this state is still what it was. A log may have been truncated, or restored from a copy."""
    try:
        return hash_of(store.get(layout.slot_path(state.n)).to_pybytes()) == state.last_hash
    except FileNotFoundError:
        return False


def _names_after(store: Store, layout: LogFormat, n: int) -> Sequence[str]:
    return store.list_folder(layout.slots, after=number_name(n) if n >= 0 else None).files


def _read_after(store: Store, layout: LogFormat, n: int, names: Sequence[str]) -> list[tuple[Slot, str]]:
    """All slots after ``n``, and the hashes of their bytes; of an object store many at once: a takeover waits for each answer.

    ``names``: those that were listed after it.
    """
    listed = {int(name) for name in names if is_number(name)}
    numbers = range(n + 1, max(listed, default=n) + 1)

    def read(n: int) -> tuple[Slot, str]:
        try:
            return read_slot(store, layout, n)
        except FileNotFoundError as error:
            raise CorruptFileError(
                f"{layout.slots} has a gap: slot {n} is not there, though slot {numbers[-1]} is listed",
                fix=f"A slot was removed or renamed from outside; restore `{layout.folder}` from a copy.",
            ) from error

    # A listing is not atomic: a slot below the newest may exist although the listing lacks it. The first that does not exist ends
    # this, before the numbers up to a name that somebody made are more than memory holds.
    for number in numbers:
        if number not in listed:
            read(number)
    return Workers(1 if store.stages else _READS_AT_ONCE).map(read, numbers)


def _oldest_state(store: Store, layout: LogFormat) -> LogState:
    """Before slot 0; once slots were deleted behind it, the oldest fold that is followed by slots (rule G3)."""
    first = min((name for name in store.list_folder(layout.slots, after=number_name(0)).files if is_number(name)), default=None)
    if first is None or int(first) == 1:
        return LogState(layout)
    folds = store.list_folder(layout.folds).files
    return _read_fold(
        store, layout, min((name for name in folds if is_number(name) and int(name) >= int(first) - 1), default=None)
    )


def _newest_fold(store: Store, layout: LogFormat) -> LogState:
    names = (name for name in store.list_folder(layout.folds).files if is_number(name))
    return _read_fold(store, layout, max(names, default=None))


def _read_fold(store: Store, layout: LogFormat, name: str | None) -> LogState:
    if name is None:
        return LogState(layout)
    path = f"{layout.folds}/{name}"
    try:
        return decode_fold(unseal(store.get(path).to_pybytes(), path), layout)
    except FileNotFoundError as error:
        raise CorruptFileError(
            f"{path} vanished while it was read", fix="Open the table again: a newer fold may have taken its place."
        ) from error
    except UnfitError as error:
        raise unfit(path, error) from error
