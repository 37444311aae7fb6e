"""An operator sets a file slice aside, or readmits it. Both are slots, so they apply to every owner of the table.

A slice that is set aside is not planned for compaction, and the cluster refuses its rows; readers still see its files.
"""

from dataclasses import replace

from headgate_tables.errors import OptionError
from headgate_tables.hudi.decisions.plans import SliceSetAside
from headgate_tables.hudi.services.stuck import Key, StuckSlice, name_of
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.view import FileSlice


def set_aside(table: TableContext, name: str, why: str) -> None:
    """``why``: for people; "" keeps the reason that is known. Raises OptionError for a slice that is not there."""
    key = _key(name)
    known = table.stuck.get(key)
    if known is None and _slice(table, key) is None:
        raise _unknown(name)
    before = known or StuckSlice(*key, why)
    entry = replace(before, why=why or before.why, aside=True)
    if entry != known:
        _decide(table, name, entry)


def readmit(table: TableContext, name: str) -> None:
    """Accepts rows of the slice again and has it compacted next. If it could not be compacted before, it does not count for the
    limits of the others until that is done. Raises OptionError for a slice that is not there.
    """
    key = _key(name)
    known, found = table.stuck.get(key), _slice(table, key)
    if known is None:
        if found is None:
            raise _unknown(name)
        return
    if known.tries and found is not None and found.logs:
        entry = replace(known, again=0, aside=False)
        if entry != known:
            _decide(table, name, entry)
    else:
        _decide(table, name, None)


def _decide(table: TableContext, name: str, entry: StuckSlice | None) -> None:
    body = SliceSetAside(name=name, entry=entry.encode() if entry else None)
    table.log.decide(lambda _: body)


def _key(name: str) -> Key:
    partition, _, file_id = name.rpartition("/")
    return partition, file_id


def _slice(table: TableContext, key: Key) -> FileSlice | None:
    return next((part for part in table.view().latest_slices() if (part.partition, part.file_id) == key), None)


def _unknown(name: str) -> OptionError:
    return OptionError(
        f"the table has no file slice {name!r}",
        fix=f"Name it as {name_of(('PARTITION', 'FILE_GROUP'))}; `headgate table files` shows both.",
    )
