"""A completed instant that somebody deletes from the timeline: the slots know it, so reads say it, and a repair restores it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate_tables import hudi
from headgate_tables.commitlog import commit_log
from headgate_tables.errors import MissingFileError
from headgate_tables.hudi import RepairResult
from headgate_tables.hudi.lost_instants import absent, timeline_after_fence
from headgate_tables.hudi.timeline.active import list_instants, read_timeline
from support.other_program import other_program
from support.served import SMALL, Served
from support.tables import create, notes, rows

TIMELINE = ".hoodie/timeline"


def written(tmp_path: Path) -> hudi.Table:
    """Rows in base files, in logs below and above a compaction, and in logs of the newest commit."""
    table = create(tmp_path)
    table.upsert(rows(("base", 1, "x"), ("old", 1, "x")))
    table.upsert(rows(("old", 2, "x"), ("log", 1, "x")))
    table.compact()
    table.upsert(rows(("above", 1, "x")))
    table.upsert(rows(("newest", 1, "x")))
    return table


def files_of(table: hudi.Table, number: int) -> list[Path]:
    """Of a completed instant, by its number; the completed one last."""
    folder = Path(table.url.removeprefix("file://")) / TIMELINE
    instant = sorted(read_timeline(table._store).completed)[number]
    return sorted(folder.glob(f"{instant}*"), key=lambda file: "_" in file.name)


READS: list[Callable[[hudi.Table], object]] = [
    lambda table: table.scan(),
    lambda table: table.scan(mode="read_optimized"),
    lambda table: table.scan(since="20000101000000000"),
    lambda table: table.commits(),
    lambda table: table.file_groups(),
    lambda table: table.lease(),
]


@pytest.mark.slow
@pytest.mark.parametrize("all_states", [False, True], ids=["completed file", "all its files"])
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_reads_name_a_deleted_instant_and_a_repair_puts_it_back(number: int, all_states: bool, tmp_path: Path) -> None:
    table = written(tmp_path)
    shown, polling = notes(table), hudi.open_table(table.url)
    assert notes(polling) == shown
    table.win_offsets({})
    gone = files_of(table, number) if all_states else files_of(table, number)[-1:]
    content = {file: file.read_bytes() for file in gone}
    for file in gone:
        file.unlink()
    completed = f"{TIMELINE}/{gone[-1].name}"
    for reader in (hudi.open_table(table.url), polling, table):
        for read in READS:
            with pytest.raises(MissingFileError, match=f"{completed.rpartition('.')[0]}.* is gone.*verify TABLE --repair"):
                read(reader)
    found = hudi.open_table(table.url).verify()
    assert {finding.path for finding in found.findings} >= {f"{TIMELINE}/{file.name}" for file in gone}
    assert "--repair" in found.findings[0].problem
    assert table.repair().put_back == sorted(f"{TIMELINE}/{file.name}" for file in gone)
    assert {file: file.read_bytes() for file in gone} == content
    assert notes(polling) == notes(hudi.open_table(table.url)) == notes(table) == shown
    assert table.repair() == RepairResult([], [])
    table.upsert(rows(("after", 1, "x")))
    assert notes(table) == {**shown, "after": "x"}
    assert table.verify().ok


def test_the_next_owner_puts_it_back_before_it_does_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 1)
    table = written(tmp_path)
    table.tidy()
    assert not table._opened.log.unfolded  # type: ignore[union-attr]
    shown = notes(table)
    files_of(table, 1)[-1].unlink()
    successor = hudi.open_table(table.url)
    successor.own()
    assert notes(successor) == shown
    assert successor.verify().ok


@pytest.mark.parametrize("number", [0, 3])
def test_an_owner_finds_what_is_gone_also_from_a_listing_that_is_older_than_some_commits(number: int, tmp_path: Path) -> None:
    table = written(tmp_path)
    log = table._opened.log
    assert log is not None
    before = list_instants(log.store)[: sum(len(files_of(table, at)) for at in range(3))]
    for listed in ([], before[:1], before):
        assert timeline_after_fence(log, listed) == read_timeline(log.store)
    lost = files_of(table, number)[-1]
    lost.unlink()
    left = [instant for instant in before if (tmp_path / "table" / instant.path).exists()]
    for listed in ([], left[:1], left):
        gone = absent(log.state, (), timeline_after_fence(log, listed))
        assert [lost.name.startswith(instant) for instant in gone] == [True]


def test_what_no_slot_says_any_more_is_named_and_nothing_is_archived_or_compacted_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_log, "FOLD_EVERY", 2)
    table = written(tmp_path)
    table.configure({**SMALL, "hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "6"})
    for number in range(4):
        table.upsert(rows(("more", number, "x")))
        table.tidy()
    [*_, lost] = files_of(table, 1)
    content = lost.read_bytes()
    lost.unlink()
    successor = hudi.open_table(table.url)
    successor.own()
    assert successor.repair() == RepairResult([], [])
    for call in (successor.archive, successor.compact, successor.scan):
        with pytest.raises(MissingFileError, match=lost.name.rpartition(".")[0]):
            call()
    [finding] = [finding for finding in successor.verify().findings if lost.name.rpartition(".")[0] in finding.path]
    assert "copy of the table" in finding.problem
    lost.write_bytes(content)
    assert successor.verify().ok
    assert notes(successor).keys() == {"base", "old", "log", "above", "newest", "more"}


@pytest.mark.slow
def test_a_handle_that_polls_follows_archiving_and_restores(tmp_path: Path) -> None:
    served = Served(tmp_path / "t", event_time=True)
    polling = hudi.open_table(str(tmp_path / "t"))
    served.savepoint()
    for number in range(12):
        served.write(*[entry._replace(ordering=number + 5) for entry in served.replay.commits[0].entries])
        served.compact()
        served.table.clean()
        assert len(polling.commits()) == len(served.table.commits())
    saved = next(iter(served.saved))
    served.restore(saved)
    served.assert_shown()
    assert polling.scan().to_table().num_rows == len(served.replay.rows())
    served.table.remove_savepoint(saved)
    for number in range(12):
        served.write(*[entry._replace(ordering=number + 50) for entry in served.replay.commits[0].entries])
        served.compact()
        served.table.archive()
        assert polling.scan().to_table().num_rows == len(served.replay.rows())


def test_instants_that_another_program_archived_or_undid_are_not_lost(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.configure(
        {**SMALL, "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    )
    for number in range(8):
        table.upsert(rows(("a", number, f"{number}")))
    table.close()
    polling = hudi.open_table(table.url)
    assert notes(polling) == {"a": "7"}
    with other_program(tmp_path / "table") as other:
        other.configure({"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"})
        other.compact()
        assert other.archive().instants
    assert notes(polling) == notes(hudi.open_table(table.url)) == {"a": "7"}
