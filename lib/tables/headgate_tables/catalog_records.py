"""What the catalog's objects say, and the places that they lie in. No storage: text in, records out."""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from headgate_tables.commitlog.records import DropRecord
from headgate_tables.commitlog.times import parse_time
from headgate_tables.errors import CorruptFileError, OptionError, TableRenamedError, UnsupportedTableError

FORMAT = 1
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


def read_place(text: str) -> tuple[str, int] | None:
    """Name and number of a place; None for what is none."""
    found = _PLACE.fullmatch(text)
    if found is None or len(found[1]) > MAX_NAME or found[2] == "1":
        return None
    return found[1], int(found[2] or 1)


def place_of(name: str, number: int) -> str:
    """The place of the name's table with this number, from 1 on."""
    return name if number == 1 else f"{name}~{number}"


class FormerTable(NamedTuple):
    """The newest table that had a name and has it no more. ``table``: its own id, as text; ``epoch``: its last one under this
    name; ``drop``: when it was dropped, or renamed, and by whom; ``renamed``: its name since; empty: it was dropped.
    """

    table: str
    epoch: int
    drop: DropRecord
    renamed: str = ""

    def renamed_error(self) -> TableRenamedError:
        """For those who look for the table by this name."""
        return TableRenamedError(
            f"the table was {self.drop.describe('renamed')}, and is {self.renamed} now",
            fix=f"Use the name {self.renamed}: rows, channels and offsets are the same.",
        )


class EntryRecord(NamedTuple):
    """``path``: the table's folder under the root; ``creator``: the principal that made the table; empty: not known.

    ``before``: the place that the table had under another name, and ``former`` what is to be noted there; empty and None for a
    table that was never renamed.
    """

    path: str
    creator: str
    before: str = ""
    former: FormerTable | None = None


def check_path(path: str) -> None:
    """Raises OptionError for what is not a folder under the root."""
    if any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise OptionError(f"{path!r} is not a folder under the root", fix="Name it without empty parts, '.' or '..'.")


def encode_entry(entry: EntryRecord) -> bytes:
    """The object of a table's entry."""
    content: dict[str, object] = {"format": FORMAT, "path": entry.path}
    if entry.creator:
        content["creator"] = entry.creator
    if entry.former is not None:
        content["renamed"] = {"place": entry.before, **_fields_of(entry.former)}
    return json.dumps(content, ensure_ascii=False).encode()


def decode_entry(data: bytes, where: str) -> EntryRecord:
    """``where``: for messages. Raises CorruptFileError, UnsupportedTableError."""
    try:
        content = _content_of(data, where)
        path, creator, renamed = _text(content["path"]), _text(content.get("creator", "")), content.get("renamed")
        check_path(path)
        if renamed is None:
            return EntryRecord(path, creator)
        fields = _mapping(renamed)
        before = _text(fields["place"])
        if read_place(before) is None:
            raise ValueError("no place")
        return EntryRecord(path, creator, before, _former(fields))
    except (ValueError, KeyError, TypeError, OptionError) as error:
        raise CorruptFileError(
            f"{where} names no folder, or holds something else that it cannot mean",
            fix="Restore it from a copy, or delete it and add the table again.",
        ) from error


def encode_former(former: FormerTable) -> bytes:
    """The object that keeps a place taken."""
    return json.dumps({"format": FORMAT, **_fields_of(former)}, ensure_ascii=False).encode()


def decode_former(data: bytes, where: str) -> FormerTable:
    """``where``: for messages. Raises CorruptFileError, UnsupportedTableError."""
    try:
        return _former(_content_of(data, where))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(f"{where} does not say which table was dropped", fix="Restore it from a copy.") from error


def _content_of(data: bytes, where: str) -> Mapping[str, object]:
    content = _mapping(json.loads(data))
    if (version := _number(content["format"])) > FORMAT:
        raise UnsupportedTableError(f"{where} has format {version}", fix="Upgrade headgate-tables.")
    return content


def _fields_of(former: FormerTable) -> dict[str, object]:
    drop = former.drop
    fields: dict[str, object] = {"table": former.table, "epoch": former.epoch, "time": drop.time, "by": drop.by}
    return fields | ({"name": former.renamed} if former.renamed else {})


def _former(fields: Mapping[str, object]) -> FormerTable:
    drop = DropRecord(_text(fields["time"]), _text(fields["by"]))
    parse_time(drop.time)
    return FormerTable(_text(fields["table"]), _number(fields["epoch"]), drop, _text(fields.get("name", "")))


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("no object")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError("no number")
    return value
