"""Tables that Flink made become ours to write, also those whose buckets have the same file ids in every partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import TransactionError
from headgate_tables.face.writing import LoadTask
from headgate_tables.opening import open_folder
from headgate_tables.system import SystemIds
from headgate_tables.writing import log_files
from support.golden import comparable, names, unpack
from support.slices import execute
from support.tables import by_hudi_rs

SHARED_IDS = "mor_nbcc_two_writers_v9"


def assert_rows(table: hudi.Table, wanted: list[dict[str, Any]], *, hudi_rs: bool = True) -> None:
    """By this handle, a new one and hudi-rs."""
    for found in (table.scan().to_table(), hudi.open_table(table.url).scan().to_table()):
        assert comparable(found.to_pylist()) == comparable(wanted)
    if hudi_rs:
        assert comparable(rows_by_hudi_rs(table)) == comparable(wanted)
    assert table.verify().ok


def rows_by_hudi_rs(table: hudi.Table) -> list[dict[str, Any]]:
    return [{name: row[name] for name in table.schema.names} for row in by_hudi_rs(table.url)]


def adopted(name: str, folder: Path) -> hudi.Table:
    table = hudi.open_table(unpack(name, folder, writer="flink"), metadata_table="remove")
    table.adopt(buckets=2)
    return table


def in_every_partition(table: hudi.Table, key: str) -> list[dict[str, Any]]:
    """A row of this key for each partition, and so in each one's group of the same bucket."""
    definition = table.definition
    assert definition is not None
    first = {tuple(row[name] for name in definition.partition_by): row for row in table.scan().to_table().to_pylist()}
    return [row | {definition.record_key[0]: key} for row in first.values()]


@pytest.mark.parametrize("name", names("*", writer="flink"))
def test_a_table_of_flink_is_adopted_written_compacted_and_read_by_all(tmp_path: Path, name: str) -> None:
    table = adopted(name, tmp_path)
    readable = "changelog" not in name  # hudi-rs 0.5 shows rows that a changelog deletes
    before = table.scan().to_table().to_pylist()
    new = in_every_partition(table, "new-key")
    table.upsert(pa.Table.from_pylist(new, table.schema))
    assert_rows(table, [*before, *new], hudi_rs=readable)
    for _ in range(len(table.plans) + 1):
        assert table.compact().completion
    assert all(part.base and not part.logs for group in table.file_groups() for part in group.slices()[-1:])
    assert_rows(table, [*before, *new])
    table.delete(pa.Table.from_pylist(new, table.schema))
    assert_rows(table, before)


def test_a_load_puts_rows_of_one_key_into_the_partitions_that_they_belong_to(tmp_path: Path) -> None:
    table = adopted(SHARED_IDS, tmp_path)
    before, new = table.scan().to_table().to_pylist(), in_every_partition(table, "new-key")
    definition = table.definition
    assert definition is not None
    epoch = table.own()
    with table.transaction() as transaction:
        transaction.announce()
        files = log_files(
            open_folder(table.url, None, SystemIds()),
            definition,
            LoadTask(transaction.instant, epoch, "1" * 32, 0),
            deletes=False,
        )
        statuses, beaten = files.write(pa.Table.from_pylist(new, table.schema))
        assert (len(statuses), beaten) == (3, 0)
        assert not transaction.find_false(statuses)
        transaction.add(statuses)
    assert_rows(table, [*before, *new])


def test_a_slice_that_a_compaction_drops_keeps_its_logs_though_others_of_its_id_are_compacted(tmp_path: Path) -> None:
    table = adopted(SHARED_IDS, tmp_path)
    while table.compact().completion:
        pass
    new = in_every_partition(table, "new-key")
    table.upsert(pa.Table.from_pylist(new, table.schema))
    while table.maintain().more:
        pass
    plan = table.plan_compaction(forced=True)
    assert plan is not None
    first, *others = plan.operations
    assert [each.output for each in others].count(first.output) >= 1
    finished = [execute(table, each, plan.instant) for each in others]
    with pytest.raises(TransactionError, match="not those of its operations"):
        table.finish_plan(plan.instant, [*finished, finished[0]], {})
    table.finish_plan(plan.instant, finished, {first: "damaged"})
    (stuck,) = table.stuck
    assert stuck.key == (first.partition, first.file_id)
    size = table.log_size_of(stuck)
    assert size is not None
    assert size.log_files == len(first.logs)
    assert_rows(table, [*table.scan().to_table().to_pylist()])
