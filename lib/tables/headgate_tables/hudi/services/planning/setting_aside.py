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


def readmit(table: TableContext, name: str, *, accept_loss: bool = False) -> None:
    """Accepts rows of the slice again and has it compacted next. If it could not be compacted before, it does not count for the
    limits of the others until that is done.

    ``accept_loss``: without those of its files that are gone from the store now; they do not count any more, also if they come
    back. Raises OptionError for a slice that is not there, or of which nothing is gone.
    """
    key = _key(name)
    known, found = table.stuck.get(key), _slice(table, key)
    if known is None and found is None:
        raise _unknown(name)
    if accept_loss:
        known = _without_lost(table, known or StuckSlice(*key, ""), found)
    elif known is None:
        return
    if known.without or (known.tries and found is not None and found.logs):
        entry = replace(known, again=0, aside=False)
        if entry != table.stuck.get(key):
            _decide(table, name, entry)
    else:
        _decide(table, name, None)


def _without_lost(table: TableContext, known: StuckSlice, found: FileSlice | None) -> StuckSlice:
    names = found.names if found is not None else []
    lost = [each for each in names if found is not None and table.store.size(found.path(each)) is None]
    if not lost and not known.without:
        raise OptionError(
            f"no file of {known.name} is gone",
            fix="Readmit it as it is. A file that is there, but damaged, counts as long as it is there: move it away first.",
        )
    without = (*known.without, *lost)
    return replace(known, why=f"the loss of {', '.join(without)} was accepted", without=without)


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
