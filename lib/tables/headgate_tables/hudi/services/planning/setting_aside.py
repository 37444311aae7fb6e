"""An operator sets a file slice aside, or readmits it. Both are slots, so they apply to every owner of the table.

A slice that is set aside is not planned for compaction, and the cluster refuses its rows; readers still see its files.
"""

from dataclasses import replace

from headgate_tables.commitlog.service_bodies import SliceSetAside
from headgate_tables.errors import OptionError
from headgate_tables.hudi.services.owned import Owned
from headgate_tables.hudi.services.stuck import Key, StuckSlice, name_of
from headgate_tables.hudi.view import FileSlice


def set_aside(owned: Owned, name: str, why: str) -> None:
    """``why``: for people; "" keeps the reason that is known. Raises OptionError for a slice that is not there."""
    key = _key(name)
    known = owned.stuck.get(key)
    if known is None and _slice(owned, key) is None:
        raise _unknown(name)
    before = known or StuckSlice(*key, why)
    entry = replace(before, why=why or before.why, aside=True)
    if entry != known:
        _decide(owned, name, entry)


def readmit(owned: Owned, name: str) -> None:
    """Accepts rows of the slice again and has it compacted next. If it could not be compacted before, it does not count for the
    limits of the others until that is done. Raises OptionError for a slice that is not there.
    """
    key = _key(name)
    known, found = owned.stuck.get(key), _slice(owned, key)
    if known is None:
        if found is None:
            raise _unknown(name)
        return
    if known.tries and found is not None and found.logs:
        entry = replace(known, again=0, aside=False)
        if entry != known:
            _decide(owned, name, entry)
    else:
        _decide(owned, name, None)


def _decide(owned: Owned, name: str, entry: StuckSlice | None) -> None:
    body = SliceSetAside(name=name, entry=entry.encode() if entry else None)
    owned.log.decide(lambda _: body)


def _key(name: str) -> Key:
    partition, _, file_id = name.rpartition("/")
    return partition, file_id


def _slice(owned: Owned, key: Key) -> FileSlice | None:
    return next((part for part in owned.view().latest_slices() if (part.partition, part.file_id) == key), None)


def _unknown(name: str) -> OptionError:
    return OptionError(
        f"the table has no file slice {name!r}",
        fix=f"Name it as {name_of(('PARTITION', 'FILE_GROUP'))}; `headgate table files` shows both.",
    )
