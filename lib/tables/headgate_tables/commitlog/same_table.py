"""Whether the table that a process has opened is still the one at its place."""

from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.tombstone import dropped_error, read_tombstone
from headgate_tables.errors import TableGoneError
from headgate_tables.storage.store import Store


def check_there(store: Store, layout: LogFormat) -> None:
    """Raises TableGoneError when slot 0 is missing, which exists as long as the table does; TableDroppedError. One request."""
    if store.size(layout.slot_path(0)) is None:
        raise_gone(store, layout)


def raise_gone(store: Store, layout: LogFormat) -> None:
    """For a table without slot 0. Raises TableGoneError, TableDroppedError."""
    if (tombstone := read_tombstone(store, layout)) is not None:
        raise dropped_error(tombstone.drop)
    raise TableGoneError(
        f"{store.url} holds no table any more", fix="Move the table's folder back, or mount its disk; writing then continues."
    )


class SameTable:
    """What slot 0 is now. It never changes, and holds a token of its own: when another one is there, so is another table."""

    def __init__(self, store: Store, layout: LogFormat) -> None:
        """One request."""
        self._store = store
        self._layout = layout
        self._version = store.version(layout.slot_path(0))

    @property
    def is_known(self) -> bool:
        """Whether there was a slot 0. A table that another program made has none until it is adopted."""
        return self._version is not None

    def check(self) -> None:
        """Raises TableGoneError when slot 0 is missing, or another table's; TableDroppedError. One request."""
        found = self._store.version(self._layout.slot_path(0))
        if found is None:
            raise_gone(self._store, self._layout)
        if self._version not in (None, found):
            raise TableGoneError(
                f"{self._store.url} holds another table than before: its folder was removed, and a table was made or put there",
                fix="Open the table again; rows go into the one that is there now.",
            )
