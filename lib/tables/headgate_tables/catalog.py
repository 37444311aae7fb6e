"""The tables of a store: one create-only entry ``.headgate/tables/<place>`` for each, under the root that a cluster is given.

A *place* is the table's name, and after a drop ``<name>~2``, ``<name>~3`` and so on: a table that is made again lies in another
folder and has another entry, so that a process that still drops the old one, or writes to it,
never touches the new one (rule D8).
A place that was taken stays so by ``.headgate/dropped/<place>``, JSON ``{"format": 1, "table": <its id>, "epoch": <its last>,
"time", "by"}``: epochs of the name's next table go on above it, so that messages about the old one are older than all about it.
With ``"name"`` the table was not dropped: it has that name since.

An entry is JSON, ``{"format": 1, "path": <the table's folder under the root>, "creator": <the principal that made it>}``; without
``creator`` it is not known who made the table. The entry comes after the table itself, so what is listed can be opened. A table
that is renamed stays in its folder. Its new entry comes first, with ``"renamed"``: the place before, and what is to be noted
there. That note, which only one can create, decides (rule D11).
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from headgate_tables.catalog_records import (
    EntryRecord,
    FormerTable,
    check_name,
    check_path,
    decode_entry,
    decode_former,
    encode_entry,
    encode_former,
    place_of,
    read_place,
)
from headgate_tables.commitlog.tombstone import dropped_error
from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.errors import NotATableError, OptionError, TableExistsError
from headgate_tables.storage.mounted import MountedFolder
from headgate_tables.storage.open import open_store
from headgate_tables.storage.probe import probe
from headgate_tables.storage.store import Outcome
from headgate_tables.system import System

__all__ = ["Catalog", "CatalogEntry", "FormerTable", "check_name"]

ROOT = ".headgate"
FOLDER = f"{ROOT}/tables"
DROPPED = f"{ROOT}/dropped"
PROBES = f"{ROOT}/probes"


class CatalogEntry(NamedTuple):
    """A table's entry. ``place``: where it lies; ``url``: of the table, for ``open_table``; ``creator``: the principal that made
    the table; empty: not known.
    """

    place: str
    url: str
    creator: str


class Catalog:
    """The entries under one root. Nothing is cached; a call costs a listing, a read or a create.

    Every call raises StoreUnavailableError while the disk of a root is away that this catalog has seen (``MountedFolder``).
    """

    def __init__(self, url: str, options: Mapping[str, str] | None, system: System) -> None:
        """``url``, ``options``: as ``open_store`` takes them. Raises OptionError."""
        self._store = open_store(url, options, system.ids)
        self._files = MountedFolder(self._store, ROOT)
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
        for each in self._files.list(FOLDER):
            if (read := read_place(each)) is not None:
                numbers.setdefault(read[0], []).append(read[1])
        return {name: place_of(name, 1 if 1 in found else max(found)) for name, found in numbers.items()}

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
        self._files.check()
        probe(self._store, PROBES, self._system)

    def add(self, name: str, path: str, creator: str = "") -> None:
        """Enters a table that exists in the folder ``path`` under the root; entering the same path again changes nothing. For
        tables that are made here, the path is a place of the name (``place_of_new``).

        ``creator``: the principal that made it, if it is known.

        Durable when it returns. Raises OptionError, TableExistsError when the name stands for another folder,
        StoreUnavailableError (it may be entered or not; call again), StoreDeniedError.
        """
        check_name(name)
        check_path(path)
        place = path if (read := read_place(path)) is not None and read[0] == name else name
        self.check_unused(place)
        found = self._enter(name, place, EntryRecord(path, creator))
        if found.path != path:
            raise TableExistsError(f"{name} is there already, in {found.path}", fix="Choose another name.")

    def check_unused(self, place: str) -> None:
        """Raises OptionError for the place of a table that was dropped or renamed: its folder may be that table's now."""
        if self._store.size(f"{DROPPED}/{place}") is not None:
            fix = "Enter the table under another name, or name the renamed one as it is called now."
            raise OptionError(f"a table that lay in {place} was dropped or renamed", fix=fix)

    def entry(self, name: str) -> CatalogEntry:
        """The table's entry: one read, and a listing and a second read for a name whose first table was dropped.

        Raises OptionError for an invalid name, NotATableError for one without an entry, TableDroppedError when there was one,
        TableRenamedError when it has another name now, CorruptFileError, UnsupportedTableError, StoreUnavailableError.
        """
        return self._described(*self._find(name))

    def entry_url(self, place: str) -> str:
        """The address of the entry in this place; deleting it makes the catalog forget the table."""
        return f"{self._store.url}/{FOLDER}/{place}"

    def check_new_name(self, name: str, to: str) -> None:
        """Looks whether a table may get the name ``to``: nothing is changed, and ``rename`` may still be refused. A listing, and
        one to three reads. Raises as ``rename``.
        """
        check_name(to)
        before, found = self._find(name)
        if (place := self.places().get(to)) is not None and (there := self._read(place)) is not None:
            _check_same(there, found.path, before, to)

    def rename(self, name: str, former: FormerTable) -> None:
        """Gives the table the name ``former.renamed``. Repeatable. ``former.epoch``: above all that the table has had.

        After StoreUnavailableError it may be renamed, or become it with the next ``settle``. Raises OptionError, NotATableError
        and TableRenamedError for ``name``, TableExistsError when the new name stands for another table.
        """
        to = former.renamed
        check_name(to)
        before, found = self._find(name)
        entry = EntryRecord(found.path, found.creator, before, former)
        there = self._enter(to, self.places().get(to) or self.place_of_new(to), entry)
        _check_same(there, found.path, before, to)
        try:
            self.settle(to)
        except NotATableError:
            raise self._missing(name) from None

    def settle(self, name: str) -> CatalogEntry:
        """The table's entry, for its owner: decides the renaming of a table to this name, if it is not decided yet, and takes the
        entry out that the table had before. Costs as ``entry``, and three requests more for a table that was renamed.

        Raises NotATableError and TableRenamedError when another renaming or a drop came first, and as ``entry``: then the table
        does not have this name.
        """
        place, found = self._find(name)
        if found.former is not None and self.forget(found.before, found.former).renamed != name:
            self._store.delete([f"{FOLDER}/{place}"])
            raise self._missing(name)
        return self._described(place, found)

    def former(self, name: str) -> FormerTable | None:
        """The newest table that had this name, and has it no more; None when none ever had. Raises CorruptFileError."""
        check_name(name)
        taken = self._places(DROPPED, name)
        return self._noted(place_of(name, taken[-1])) if taken else None

    def check_present(self, name: str, table: str) -> None:
        """Raises TableRenamedError, TableDroppedError if the table with this id, as text, had the name and has it no more. Costs
        a listing, and a read for each table that had it.
        """
        for number in reversed(self._places(DROPPED, name)):
            if (former := self._noted(place_of(name, number))) is not None and former.table == table:
                raise _gone(former)

    def forget(self, place: str, former: FormerTable) -> FormerTable:
        """Takes the entry of a table out whose files are deleted, or that has another name. The place is never used again.
        Repeatable: what was noted of the place first stays, and is returned.
        """
        path = f"{DROPPED}/{place}"
        outcome = self._create(path, encode_former(former))
        noted = self._noted(place) if outcome is Outcome.EXISTS else former
        self._store.delete([f"{FOLDER}/{place}"])
        return noted or former

    def _enter(self, name: str, place: str, entry: EntryRecord) -> EntryRecord:
        """What the entry in this place says, which is ``entry`` if it had none. Durable when it returns."""
        outcome = self._create(f"{FOLDER}/{place}", encode_entry(entry))
        if outcome is not Outcome.EXISTS:
            return entry
        found = self._read(place)
        if found is None:
            raise self._missing(name)
        return found

    def _create(self, path: str, content: bytes) -> Outcome:
        """Durable when it returns. A disk that is away may have gone since the caller looked, hence the check."""
        self._files.check()
        outcome = create_for_certain(self._store, self._system.clock, path, content, durable=True)
        self._files.note_made()
        return outcome

    def _places(self, folder: str, name: str) -> list[int]:
        """Numbers of the places of the name that the folder has, sorted; its first one is 1."""
        found = (read_place(each) for each in self._files.list(folder) if each.startswith(name))
        return sorted(place[1] for place in found if place is not None and place[0] == name)

    def _described(self, place: str, found: EntryRecord) -> CatalogEntry:
        path = quote(found.path) if self._is_file else found.path
        return CatalogEntry(place, f"{self._store.url}/{path}", found.creator)

    def _find(self, name: str) -> tuple[str, EntryRecord]:
        """Place and content of the table's entry. Raises as ``entry``."""
        check_name(name)
        place, found = name, self._read(name)
        if found is None and (numbers := self._places(FOLDER, name)) and numbers[-1] > 1:
            place = place_of(name, numbers[-1])
            found = self._read(place)
        if found is None:
            raise self._missing(name)
        return place, found

    def _read(self, place: str) -> EntryRecord | None:
        """What the entry in this place says; None where there is none."""
        data = self._files.get(f"{FOLDER}/{place}")
        return decode_entry(data, self.entry_url(place)) if data is not None else None

    def _noted(self, place: str) -> FormerTable | None:
        """What is noted of the table that had this place; None: nothing."""
        data = self._files.get(f"{DROPPED}/{place}")
        if data is None:
            return None  # an operator has just removed it
        return decode_former(data, f"{self._store.url}/{DROPPED}/{place}")

    def _missing(self, name: str) -> NotATableError:
        """The error for a name without an entry."""
        if (former := self.former(name)) is not None:
            return _gone(former)
        return NotATableError(f"there is no table {name} under {self._store.url}", fix="Check the name, or create the table.")


def _check_same(there: EntryRecord, path: str, before: str, to: str) -> None:
    """Raises TableExistsError unless the entry ``there`` is that of this table, from a renaming that broke off."""
    if (there.path, there.before) != (path, before):
        raise TableExistsError(f"there is a table {to}", fix="Choose another name.")


def _gone(former: FormerTable) -> NotATableError:
    return former.renamed_error() if former.renamed else dropped_error(former.drop)
