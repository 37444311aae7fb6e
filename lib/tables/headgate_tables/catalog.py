"""The tables of a store: one create-only entry ``.headgate/tables/<place>`` for each, under the root that a cluster is given.

A *place* is the table's name, and after a drop ``<name>~2``, ``<name>~3`` and so on: a table that is made again lies in another
folder and has another entry, so that a process that still drops the old one, or writes to it,
never touches the new one (rule D8).
A place that was taken stays so by ``.headgate/dropped/<place>``, JSON ``{"format": 1, "table": <its id>, "epoch": <its last>,
"time", "by"}``: epochs of the name's next table go on above it, so that messages about the old one are older than all about it.

An entry is JSON, ``{"format": 1, "path": <the table's folder under the root>, "creator": <the principal that made it>}``; without
``creator`` it is not known who made the table. The entry comes after the table itself, so what is listed can be opened.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from headgate_tables.commitlog.records import DropRecord
from headgate_tables.commitlog.times import parse_time
from headgate_tables.commitlog.tombstone import dropped_error
from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.errors import CorruptFileError, NotATableError, OptionError, TableExistsError, UnsupportedTableError
from headgate_tables.storage.open import open_store
from headgate_tables.storage.probe import probe
from headgate_tables.storage.store import Outcome
from headgate_tables.system import System

FORMAT = 1
FOLDER = ".headgate/tables"
DROPPED = ".headgate/dropped"
PROBES = ".headgate/probes"
MAX_NAME = 128
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PLACE = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]*)(?:~([1-9][0-9]{0,8}))?")


def check_name(name: str) -> None:
    """Raises OptionError for a name that a catalog cannot hold: it becomes a folder's name and a part of file names."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise OptionError(
            f"{name[:MAX_NAME]!r} is not a table name",
            fix=f"Use letters, digits, '_', '-' and '.', beginning with a letter or digit; at most {MAX_NAME}.",
        )


class DroppedTable(NamedTuple):
    """The newest table of a name that was dropped. ``table``: its own id, as text; ``epoch``: its last one."""

    table: str
    epoch: int
    drop: DropRecord


class CatalogEntry(NamedTuple):
    """A table's entry. ``place``: where it lies; ``url``: of the table, for ``open_table``; ``creator``: the principal that made
    the table; empty: not known.
    """

    place: str
    url: str
    creator: str


class _Content(NamedTuple):
    path: str
    creator: str


class Catalog:
    """The entries under one root. Nothing is cached; a call costs a listing, a read or a create."""

    def __init__(self, url: str, options: Mapping[str, str] | None, system: System) -> None:
        """``url``, ``options``: as ``open_store`` takes them. Raises OptionError."""
        self._store = open_store(url, options, system.ids)
        self._system = system
        self._is_file = self._store.url.startswith("file:")

    @property
    def url(self) -> str:
        """The root."""
        return self._store.url

    def names(self) -> list[str]:
        """All tables, sorted. Raises StoreUnavailableError, StoreDeniedError."""
        return sorted(self.places())

    def places(self) -> dict[str, str]:
        """Where the entry of each table lies now, by name; one listing. Raises as ``names``."""
        numbers: dict[str, list[int]] = {}
        for each in self._store.list_folder(FOLDER).files:
            if (read := _read_place(each)) is not None:
                numbers.setdefault(read[0], []).append(read[1])
        return {name: name if 1 in found else f"{name}~{max(found)}" for name, found in numbers.items()}

    def place_of_new(self, name: str) -> str:
        """Where a table of this name is to be made: no table has been there, as far as the catalog knows. Costs a listing.

        Raises OptionError.
        """
        check_name(name)
        taken = self._places(DROPPED, name)
        return f"{name}~{taken[-1] + 1}" if taken else name

    def test_store(self) -> None:
        """Tests that tables can be created here: about 14 requests, of which nothing stays.

        Raises UnsafeStoreError, StoreUnavailableError, StoreDeniedError, StoreFullError.
        """
        probe(self._store, PROBES, self._system)

    def add(self, name: str, path: str, creator: str = "") -> None:
        """Enters a table that exists in the folder ``path`` under the root; entering the same path again changes nothing. For
        tables that are made here, the path is a place of the name (``place_of_new``).

        ``creator``: the principal that made it, if it is known.

        Durable when it returns. Raises OptionError, TableExistsError when the name stands for another folder,
        StoreUnavailableError (it may be entered or not; call again), StoreDeniedError.
        """
        check_name(name)
        _check_path(path)
        place = path if (read := _read_place(path)) is not None and read[0] == name else name
        if self._store.size(f"{DROPPED}/{place}") is not None:
            raise OptionError(f"a table {name} that lay in {place} was dropped", fix="Enter the table under another name.")
        entry = {"format": FORMAT, "path": path} | ({"creator": creator} if creator else {})
        content = json.dumps(entry, ensure_ascii=False).encode()
        outcome = create_for_certain(self._store, self._system.clock, f"{FOLDER}/{place}", content, durable=True)
        if outcome is Outcome.EXISTS:
            found = self._read(place)
            if found is None:
                raise self._missing(name)
            if found.path != path:
                raise TableExistsError(f"{name} is there already, in {found.path}", fix="Choose another name.")

    def entry(self, name: str) -> CatalogEntry:
        """The table's entry: one read, and a listing and a second read for a name whose first table was dropped.

        Raises OptionError for an invalid name, NotATableError for one without an entry, TableDroppedError when there was one,
        CorruptFileError, UnsupportedTableError, StoreUnavailableError.
        """
        check_name(name)
        place, found = name, self._read(name)
        if found is None and (numbers := self._places(FOLDER, name)) and numbers[-1] > 1:
            place = f"{name}~{numbers[-1]}"
            found = self._read(place)
        if found is None:
            raise self._missing(name)
        path = quote(found.path) if self._is_file else found.path
        return CatalogEntry(place, f"{self._store.url}/{path}", found.creator)

    def entry_url(self, place: str) -> str:
        """The address of the entry in this place; deleting it makes the catalog forget the table."""
        return f"{self._store.url}/{FOLDER}/{place}"

    def dropped(self, name: str) -> DroppedTable | None:
        """The newest table of this name that was dropped; None when none ever was. Raises CorruptFileError."""
        check_name(name)
        taken = self._places(DROPPED, name)
        if not taken:
            return None
        place = name if taken[-1] == 1 else f"{name}~{taken[-1]}"
        try:
            data = self._store.get(f"{DROPPED}/{place}").to_pybytes()
        except FileNotFoundError:
            return None  # an operator has just removed it
        return _decode_dropped(data, f"{self._store.url}/{DROPPED}/{place}")

    def forget(self, place: str, dropped: DroppedTable) -> None:
        """Takes the entry of a table out whose files are deleted. The place is never used again. Repeatable."""
        drop = dropped.drop
        content = {"format": FORMAT, "table": dropped.table, "epoch": dropped.epoch, "time": drop.time, "by": drop.by}
        encoded = json.dumps(content, ensure_ascii=False).encode()
        create_for_certain(self._store, self._system.clock, f"{DROPPED}/{place}", encoded, durable=True)
        self._store.delete([f"{FOLDER}/{place}"])

    def _places(self, folder: str, name: str) -> list[int]:
        """Numbers of the places of the name that the folder has, sorted; its first one is 1."""
        found = (_read_place(each) for each in self._store.list_folder(folder).files if each.startswith(name))
        return sorted(place[1] for place in found if place is not None and place[0] == name)

    def _read(self, place: str) -> _Content | None:
        """What the entry in this place says; None where there is none."""
        try:
            data = self._store.get(f"{FOLDER}/{place}").to_pybytes()
        except FileNotFoundError:
            return None
        return _decode(data, self.entry_url(place))

    def _missing(self, name: str) -> NotATableError:
        """The error for a name without an entry."""
        if (dropped := self.dropped(name)) is not None:
            return dropped_error(dropped.drop)
        return NotATableError(f"there is no table {name} under {self._store.url}", fix="Check the name, or create the table.")


def _read_place(text: str) -> tuple[str, int] | None:
    """Name and number of a place; None for what is none."""
    found = _PLACE.fullmatch(text)
    if found is None or len(found[1]) > MAX_NAME or found[2] == "1":
        return None
    return found[1], int(found[2] or 1)


def _decode_dropped(data: bytes, where: str) -> DroppedTable:
    try:
        content = json.loads(data)
        if content["format"] > FORMAT:
            raise UnsupportedTableError(f"{where} has format {content['format']}", fix="Upgrade headgate-tables.")
        table, time, by = (content[key] for key in ("table", "time", "by"))
        epoch = content["epoch"]
        if not all(isinstance(each, str) for each in (table, time, by)) or type(epoch) is not int:
            raise TypeError("neither text nor number")
        parse_time(time)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"{where} does not say which table was dropped", fix="Restore it from a copy.") from error
    return DroppedTable(table, epoch, DropRecord(time, by))


def _decode(data: bytes, where: str) -> _Content:
    try:
        content = json.loads(data)
        if content["format"] > FORMAT:
            raise UnsupportedTableError(f"{where} has format {content['format']}", fix="Upgrade headgate-tables.")
        path, creator = content["path"], content.get("creator", "")
        _check_path(path)
        if not isinstance(creator, str):
            raise TypeError("creator is no text")
    except (ValueError, KeyError, TypeError, AttributeError, OptionError) as error:
        raise CorruptFileError(
            f"{where} names no folder, or a creator that is no text",
            fix="Restore it from a copy, or delete it and add the table again.",
        ) from error
    return _Content(str(path), creator)


def _check_path(path: str) -> None:
    if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise OptionError(f"{path!r} is not a folder under the root", fix="Name it without empty parts, '.' or '..'.")
