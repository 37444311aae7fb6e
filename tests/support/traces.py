"""Handles of one table for traces on paper, and what of it lies where."""

from pathlib import Path
from typing import Any

from headgate_tables import hudi
from headgate_tables.commitlog.tail import read_slot, read_state
from headgate_tables.errors import StoreUnavailableError
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.hudi.view import list_data_files
from support.handles import open_on
from support.systems import FaultyStore, SetClock, system
from support.tables import notes


class InPlaceStore(FaultyStore):
    """Local files used as an object store's are: no stage, data files are created under their final names."""

    stages = False


def opened(tmp_path: Path, store: type[FaultyStore] = FaultyStore, clock: SetClock | None = None, **options: Any) -> hudi.Table:
    """Another handle of the table in ``tmp_path``, on a store whose calls a test can change."""
    return open_on(store(tmp_path / "table"), system(clock), **options)


def timeline(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "table" / TIMELINE_FOLDER).glob("*") if path.is_file())


def data_files(table: hudi.Table, instant: str) -> list[str]:
    return [path for path, time in list_data_files(table._store) if time == instant]


def slots(table: hudi.Table) -> list[Any]:
    return [read_slot(table._store, LOG_LAYOUT, n)[0] for n in range(read_state(table._store, LOG_LAYOUT)[0].n + 1)]


def busy(*arguments: object, **named: object) -> Any:
    raise StoreUnavailableError("busy", fix="Try again.")


def agree(table: hudi.Table) -> dict[str, str]:
    """id to note by a new handle, by hudi-rs, and verify() has nothing to say."""
    fresh = hudi.open_table(table.url)
    assert fresh.verify().ok, fresh.verify().findings
    return notes(fresh)
