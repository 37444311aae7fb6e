"""The tables of a store: one create-only entry ``.headgate/tables/<name>`` for each, under the root that a cluster is given.

An entry is JSON, ``{"format": 1, "path": <the table's folder under the root>, "creator": <the principal that made it>}``; without
``creator`` it is not known who made the table. The entry comes after the table itself, so what is listed can be opened.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.errors import CorruptFileError, NotATableError, OptionError, TableExistsError, UnsupportedTableError
from headgate_tables.storage.open import open_store
from headgate_tables.storage.probe import probe
from headgate_tables.storage.store import Outcome
from headgate_tables.system import System

FORMAT = 1
FOLDER = ".headgate/tables"
PROBES = ".headgate/probes"
MAX_NAME = 128
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_name(name: str) -> None:
    """Raises OptionError for a name that a catalog cannot hold: it becomes a folder's name and a part of file names."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise OptionError(
            f"{name[:MAX_NAME]!r} is not a table name",
            fix=f"Use letters, digits, '_', '-' and '.', beginning with a letter or digit; at most {MAX_NAME}.",
        )


class _Entry(NamedTuple):
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
        return sorted(name for name in self._store.list_folder(FOLDER).files if len(name) <= MAX_NAME and _NAME.fullmatch(name))

    def test_store(self) -> None:
        """Tests that tables can be created here: about 14 requests, of which nothing stays.

        Raises UnsafeStoreError, StoreUnavailableError, StoreDeniedError, StoreFullError.
        """
        probe(self._store, PROBES, self._system)

    def add(self, name: str, path: str, creator: str = "") -> None:
        """Enters a table that exists in the folder ``path`` under the root; entering the same path again changes nothing.

        ``creator``: the principal that made it, if it is known.

        Durable when it returns. Raises OptionError, TableExistsError when the name stands for another folder,
        StoreUnavailableError (it may be entered or not; call again), StoreDeniedError.
        """
        check_name(name)
        _check_path(path)
        entry = {"format": FORMAT, "path": path} | ({"creator": creator} if creator else {})
        content = json.dumps(entry, ensure_ascii=False).encode()
        outcome = create_for_certain(self._store, self._system.clock, f"{FOLDER}/{name}", content, durable=True)
        if outcome is Outcome.EXISTS and (found := self._entry(name).path) != path:
            raise TableExistsError(f"{name} is there already, in {found}", fix="Choose another name.")

    def table_url(self, name: str) -> str:
        """The address for ``open_table``. Raises OptionError for an invalid name, NotATableError for one without an entry,
        CorruptFileError, UnsupportedTableError.
        """
        check_name(name)
        path = self._entry(name).path
        return f"{self._store.url}/{quote(path) if self._is_file else path}"

    def creator(self, name: str) -> str:
        """The principal that made the table; empty: not known. Raises as ``table_url``, and StoreUnavailableError."""
        check_name(name)
        return self._entry(name).creator

    def entry_url(self, name: str) -> str:
        """Where the entry of the table lies; deleting it makes the catalog forget the table."""
        return f"{self._store.url}/{FOLDER}/{name}"

    def _entry(self, name: str) -> _Entry:
        entry = f"{FOLDER}/{name}"
        try:
            data = self._store.get(entry).to_pybytes()
        except FileNotFoundError as error:
            raise NotATableError(
                f"there is no table {name} under {self._store.url}", fix="Check the name, or create the table."
            ) from error
        return _decode(data, self.entry_url(name))


def _decode(data: bytes, where: str) -> _Entry:
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
    return _Entry(str(path), creator)


def _check_path(path: str) -> None:
    if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise OptionError(f"{path!r} is not a folder under the root", fix="Name it without empty parts, '.' or '..'.")
