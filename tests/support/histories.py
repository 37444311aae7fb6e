"""Instants of an archived timeline, appended and read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headgate_tables.hudi.timeline.history import append_history, archived_completions
from headgate_tables.hudi.timeline.history_files import SCHEMA, Archived, HistoryFolder
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds

PATH = Path(".hoodie/timeline/history")


def instant(number: int) -> str:
    return str(20270101000000000 + number)


def entry(number: int) -> Archived:
    """An instant that completed half a millisecond after ten later ones began, as pipelined checkpoints do."""
    return Archived(instant(10 * number), instant(10 * number + 105), "deltacommit", f"m{number}".encode(), None)


def entries(numbers: Sequence[int]) -> list[Archived]:
    return [entry(number) for number in numbers]


def store_in(path: Path) -> LocalStore:
    return LocalStore(str(path), SystemIds())


def append(path: Path, numbers: Sequence[int]) -> None:
    append_history(store_in(path), "history", entries(numbers))


def told(path: Path) -> dict[str, str]:
    return archived_completions(store_in(path), "history")


def facts(numbers: Sequence[int]) -> dict[str, str]:
    return {each.instant: each.completion for each in entries(numbers)}


def listed(path: Path) -> list[str]:
    """Names in the manifest that readers go by."""
    return [file.name for file in HistoryFolder(store_in(path), "history").named(names_in(path)).files]


def names_in(path: Path) -> list[str]:
    folder = path / PATH
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


def stored(path: Path) -> list[Archived]:
    """Every row of every file that is listed, so that a double one shows."""
    folder = HistoryFolder(store_in(path), "history")
    rows = [row for name in listed(path) for row in folder.read(name, SCHEMA.names).to_pylist()]
    assert {row.pop("version") for row in rows} <= {1}
    return [Archived(*row.values()) for row in sorted(rows, key=lambda row: row["instantTime"])]
