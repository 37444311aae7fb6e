"""A restore takes back what other programs did, too: instants whose pending files have names of another action."""

from pathlib import Path

from headgate_tables import hudi
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from support.log_compaction import LogCompacted
from support.readers import read_by_hudi_rs, read_by_us


def notes(path: Path) -> list[dict[str, str]]:
    """By our reader and by hudi-rs."""
    return [{row["id"]: row["note"] for row in rows.to_pylist()} for rows in (read_by_us(path), read_by_hudi_rs(path))]


def test_a_restore_to_before_a_log_compaction_leaves_none_of_its_files(tmp_path: Path) -> None:
    """Its requested file would be a plan that other programs execute, and keep every younger instant from being archived."""
    made = LogCompacted(tmp_path / "t", "ts")
    before = notes(made.path)
    with hudi.open_table(str(made.path)) as table:
        saved = table.savepoint()
    made.compact_logs()
    with hudi.open_table(str(made.path)) as table:
        (instant,) = table.adopt().completed
        assert notes(made.path) != before
        assert table.restore(saved).undone == (instant,)
        assert notes(made.path) == before
        assert [each.name for each in list_instants(open_store(table.url, None, SystemIds())) if each.time == instant] == []
        assert table.verify().findings == []
