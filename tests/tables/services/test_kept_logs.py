"""What one minor compaction merged, the next ones take over as it is, under a new name (rule DE5)."""

from pathlib import Path

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, DeposedError, MissingFileError
from headgate_tables.face.operation import Operation
from headgate_tables.face.results import SliceLogSize
from headgate_tables.hudi.log.reader import RowsBlock, read_log_file
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.storage.spool import LocalSpool
from headgate_tables.storage.store import Outcome
from support.minor import SETTINGS, finish, only_minor, plan_minor, run, sizes
from support.tables import SHORT, create, keys, notes, rows

COMMITS = 12
"""That make a slice due; of these, a quarter may be kept logs."""
BASE = dict.fromkeys("abcdef", "base")


@pytest.fixture(params=["ts", None], ids=["event time", "commit time"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> hudi.Table:
    """A base file of a to f."""
    made = create(tmp_path, ordering=request.param, partitioned=False, buckets=1)
    made.configure(SETTINGS | {"hoodie.compact.inline.max.delta.commits": str(COMMITS)})
    made.upsert(rows(*((letter, 10, "base") for letter in "abcdef")))
    made.compact()
    return made


def minor(table: hudi.Table, turn: int) -> tuple[Operation, dict[str, str]]:
    """A minor compaction after some commits, which write "a" and rows of the turn's own. The rows that they leave, too."""
    wanted: dict[str, str] = {}
    while not table.plans:
        written = {"a": f"{turn}-{len(wanted)}", f"{turn}-{len(wanted)}": "new"}
        table.upsert(rows(*((key, 100 * turn + len(wanted), note) for key, note in written.items())))
        wanted |= written
        while table.maintain().more:
            pass
    [planned] = table.plans.values()
    finish(table, planned)
    return only_minor(planned), wanted


def gone(table: hudi.Table, key: str, ts: int) -> None:
    ordered = table.definition is not None and table.definition.ordering
    table.delete(keys((key, ts)).select(["id", "ts"] if ordered else ["id"]))


def root_of(table: hudi.Table) -> Path:
    return Path(table.url.removeprefix("file://"))


def test_the_next_one_merges_only_what_came_since_and_all_read_both(table: hudi.Table) -> None:
    first, wanted = minor(table, 1)
    second, more = minor(table, 2)
    [kept] = second.kept_logs
    assert second.logs[0].name == first.merged_log
    assert (root_of(table) / second.at(kept)).samefile(root_of(table) / first.at(first.merged_log))
    assert rows_of(root_of(table) / second.at(second.merged_log)) == [len(more)]
    [part] = table.scan().slices()
    assert [log.name for log in part.logs] == [kept, second.merged_log]
    assert notes(table) == BASE | wanted | more
    assert not table.verify().findings


def test_what_is_written_later_beats_the_rows_of_kept_logs_and_so_do_its_deletes(table: hudi.Table) -> None:
    _, wanted = minor(table, 1)
    gone(table, "1-1", 1000)
    gone(table, "b", 1000)
    table.upsert(rows(("a", 100, "older") if table.definition and table.definition.ordering else ("c", 10, "a tie")))
    operation, more = minor(table, 2)
    assert operation.kept_logs
    expected = BASE | wanted | ({} if table.definition and table.definition.ordering else {"c": "a tie"}) | more
    expected = {key: note for key, note in expected.items() if key not in ("1-1", "b")}
    assert notes(table) == expected
    table.compact()
    assert notes(table) == expected


def test_a_quarter_of_the_commits_that_make_a_slice_due_are_kept_and_then_all_are_merged_into_one(table: hudi.Table) -> None:
    wanted = BASE
    counts = []
    for turn in range(1, 7):
        operation, more = minor(table, turn)
        wanted = wanted | more
        counts.append(len(operation.kept_logs))
        largest = table.largest_slice()
        assert largest is not None
        assert largest.log_files == counts[-1] + 1
    assert counts == [0, 1, 2, 0, 1, 2]
    assert notes(table) == wanted


def test_each_of_the_kept_logs_counts_as_a_commit_of_those_that_make_the_slice_due(table: hudi.Table) -> None:
    """Or readers would find more files than the setting says."""
    for turn in range(1, 4):
        operation, _ = minor(table, turn)
        assert len(operation.logs) == COMMITS
    with hudi.open_table(table.url) as again:  # which counts what it lists
        assert len(minor(again, 4)[0].logs) == COMMITS


def test_a_second_attempt_finds_the_files_of_the_first_and_reports_the_same(table: hudi.Table) -> None:
    minor(table, 1)
    for number in range(COMMITS):
        table.upsert(rows(("a", 1000 + number, "newer")))
    planned, operation = plan_minor(table)
    first = run(table, planned)
    assert [len(done.kept_logs) for done in first] == [1]
    assert run(table, planned) == first
    table.cancel_plan(planned.instant)
    table.tidy()
    assert not {*operation.outputs} & sizes(table).keys()


def test_a_kept_name_that_holds_another_file_is_refused(table: hudi.Table) -> None:
    minor(table, 1)
    for number in range(COMMITS):
        table.upsert(rows(("a", 1000 + number, "newer")))
    planned, operation = plan_minor(table)
    (root_of(table) / operation.at(operation.kept_logs[0])).write_bytes(b"another file")
    with pytest.raises(CorruptFileError, match=r"12 bytes, and .*log\.1_0-0-0 has"):
        run(table, planned)


def test_a_compactor_whose_stage_was_taken_away_gives_no_log_a_second_name(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    minor(table, 1)
    for number in range(COMMITS):
        table.upsert(rows(("a", 1000 + number, "newer")))
    planned, operation = plan_minor(table)
    created = LocalSpool.create

    def create_and_revoke(spool: LocalSpool) -> Outcome:
        outcome = created(spool)
        table._store.rename_folder(".hoodie/.headgate/stage/1", ".hoodie/.headgate/stage/1.revoked-x")
        return outcome

    monkeypatch.setattr(LocalSpool, "create", create_and_revoke)
    with pytest.raises(DeposedError):
        run(table, planned, stage=".hoodie/.headgate/stage/1/compactor")
    assert not {operation.path, *map(operation.at, operation.kept_logs)} & sizes(table).keys()


def test_the_commit_names_all_files_and_the_old_ones_can_go(table: hudi.Table) -> None:
    first, wanted = minor(table, 1)
    table.configure(SHORT | {"hoodie.clean.commits.retained": "1"})
    second, more = minor(table, 2)
    [file] = (root_of(table) / ".hoodie/timeline").glob(f"{second.output.split('_')[2].removesuffix('.parquet')}_*.commit")
    written = [each.name for each in decode_commit(file.read_bytes(), file.name).written()]
    assert sorted(written) == sorted([second.output, *second.kept_logs, second.merged_log])
    for number in range(4):
        table.upsert(rows(("z", number, "last")))
    table.clean()
    assert first.at(first.merged_log) not in sizes(table)
    assert notes(table) == BASE | wanted | more | {"z": "last"}
    assert not table.verify().findings


def test_a_kept_log_is_read_by_all_when_the_compaction_that_merged_it_is_archived(table: hudi.Table) -> None:
    first, wanted = minor(table, 1)
    _, more = minor(table, 2)
    table.configure(SHORT | {"hoodie.compact.inline.max.delta.commits": "100"})
    for number in range(6):
        table.upsert(rows(("y", number, f"{number}")))
    table.archive()
    assert first.output.split("_")[2].removesuffix(".parquet") not in {commit.instant for commit in table.commits()}
    assert notes(table) == BASE | wanted | more | {"y": "5"}


def test_w6_no_compaction_goes_on_without_a_kept_log(table: hudi.Table) -> None:
    minor(table, 1)
    operation, _ = minor(table, 2)
    file = root_of(table) / operation.at(operation.kept_logs[0])
    for number in range(COMMITS):
        table.upsert(rows(("a", 1000 + number, "newer")))
    planned, _ = plan_minor(table)
    file.unlink()
    with pytest.raises(MissingFileError, match=f"{file.name} is pinned by a compaction, but not there"):
        run(table, planned)


def test_only_a_merged_log_may_hold_blocks_of_an_earlier_instant(table: hudi.Table) -> None:
    """Of any other, the header is damaged: Hudi's readers would take the block for one that was never committed."""
    minor(table, 1)
    table.upsert(rows(("q", 1, "later")))
    [part] = table.scan().slices()
    merged, later = (root_of(table) / part.path(log.name) for log in part.logs)
    for path, instant, damaged in ((merged, "0", False), (merged, "9", True), (later, "0", True)):
        content = path.read_bytes()
        own = (part.logs[0] if path == merged else part.logs[1]).instant.encode()
        assert content.count(own) >= 1
        path.write_bytes(content.replace(own, instant.encode() + own[1:]))
        if damaged:
            with pytest.raises(CorruptFileError, match="carries the instant"):
                table.scan().to_table()
        else:
            assert table.scan().to_table().num_rows
        path.write_bytes(content)


def test_no_compaction_merges_a_log_whose_block_has_an_earlier_instant(table: hudi.Table) -> None:
    minor(table, 1)
    table.upsert(rows(("q", 1, "later")))
    [part] = table.scan().slices()
    path, instant = root_of(table) / part.path(part.logs[1].name), part.logs[1].instant.encode()
    path.write_bytes(path.read_bytes().replace(instant, b"0" + instant[1:]))
    [why] = table.compact().dropped.values()
    assert "a block of it carries the instant 0" in why


def test_the_sizes_of_all_logs_count_for_the_slice(table: hudi.Table) -> None:
    minor(table, 1)
    operation, _ = minor(table, 2)
    found = sizes(table)
    both = sum(found[operation.at(name)] for name in (*operation.kept_logs, operation.merged_log))
    assert table.largest_slice() == SliceLogSize(2, both)


def rows_of(path: Path) -> list[int]:
    """The number of rows of each block."""
    blocks = read_log_file(pa.py_buffer(path.read_bytes()), path.name, lambda _: True)
    return [block.read(["id"]).num_rows for block in blocks if isinstance(block, RowsBlock)]
