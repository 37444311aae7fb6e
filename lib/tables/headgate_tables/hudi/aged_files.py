"""What newest slices hold of archived commits, as one number, so that a listing shows a loss without a look at the history.

Advisory: a number that is too old, or not there, costs a reading of the history, or hides a loss until the next archiving.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from typing import Final, NamedTuple

from headgate_tables.commitlog.fields import UnfitError, json_list, number, text
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.view import FileSystemView
from headgate_tables.storage.store import Store

_PATH: Final = f"{LOG_LAYOUT.folder}/archived"
_COUNT: Final = 1 << 32


def is_aged(name: str, until: str) -> bool:
    """Whether the data file is of an instant up to ``until``."""
    parsed = parse_log_name(name) or parse_base_name(name)
    return parsed is not None and parsed.instant <= until


class AgedFiles(NamedTuple):
    """``until``: the newest archived instant. ``sum``: of the files' numbers, each with a checksum of its name."""

    until: str
    sum: int

    @classmethod
    def of(cls, view: FileSystemView, until: str, replaced: Collection[tuple[str, str]] = ()) -> AgedFiles:
        """Of a view: base files and logs of newest slices, of instants up to ``until``. ``replaced``: groups that do not count
        either. One pass over all files.

        An archived log lies on the base files that are not younger than its instant (``straddles``).
        """
        found = 0
        for group in view.groups():
            if (group.partition, group.file_id) in replaced:
                continue
            base = max(group.bases, default="")
            names = [log.name for log in group.logs.values() if base <= log.instant <= until]
            names += [group.bases[base]] if base and base <= until else []
            found += sum(_COUNT + zlib.crc32(f"{group.partition}/{name}".encode()) for name in names)
        return cls(until, found)


def leave_aged(store: Store, aged: AgedFiles) -> None:
    """For the next owner. Raises RetryLater."""
    store.replace(_PATH, [json.dumps(aged).encode()])


def read_aged(store: Store) -> AgedFiles | None:
    """What an owner left; None when there is nothing that can be read. Raises RetryLater."""
    try:
        until, found = json_list(json.loads(store.get(_PATH).to_pybytes()))
        return AgedFiles(text(until), number(found))
    except (FileNotFoundError, ValueError, UnfitError):
        return None
