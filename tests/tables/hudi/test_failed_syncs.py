"""Hazard H14: whatever a handle writes, after a failed sync it does nothing more; who opens the table again goes on."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from headgate_tables.errors import StoreDeniedError, SyncFailedError
from headgate_tables.hudi import Table, open_table
from headgate_tables.storage.local import LocalStore
from support.failing_syncs import fail_syncs
from support.tables import SHORT, create, notes, rows

STEPS: dict[str, tuple[str, Callable[[Table], object]]] = {
    "a write, of its new stage folder": ("/stage/1", lambda table: table.upsert(rows(("a", 9, "new")))),
    "a write, of its file": ("/stage/1/", lambda table: table.upsert(rows(("a", 9, "new")))),
    "a compaction": ("/stage/1/", lambda table: table.compact()),
    "an archiving": ("/history/", lambda table: table.archive()),
}


@pytest.mark.parametrize("what", STEPS)
def test_h14_after_a_failed_sync_a_handle_writes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    part, step = STEPS[what]
    table = create(tmp_path, buckets=1)
    if "write" not in what:
        table.configure(SHORT)
        for n in range(6):
            table.upsert(rows(("a", n, f"old {n}")))
    syncs = fail_syncs(monkeypatch, part)
    with pytest.raises(SyncFailedError, match="fsync of"):
        step(table)
    assert len(syncs.failed) == 1
    for attempt in (lambda: table.upsert(rows(("b", 1, "x"))), table.compact, table.repair):
        with pytest.raises(SyncFailedError, match="fsync of"):
            attempt()
    again = open_table(table.url)
    again.upsert(rows(("a", 10, "newest")))
    assert notes(again) == {"a": "newest"}


def test_a_failed_sync_is_reported_even_if_its_files_cannot_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails becomes read-only: that must not be all that the caller hears."""
    table = create(tmp_path)
    fail_syncs(monkeypatch, "/stage/1/")

    def refuse(store: LocalStore, paths: Iterable[str]) -> None:
        if list(paths):
            raise StoreDeniedError("read-only", fix="Mount it again.")

    monkeypatch.setattr(LocalStore, "delete", refuse)
    with pytest.raises(SyncFailedError, match="fsync of"):
        table.upsert(rows(("a", 1, "x")))
