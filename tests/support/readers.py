"""Three readers of one table: ours, hudi-rs and Hudi on Spark. None shares code with another."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

from headgate_tables import hudi
from support.same_rows import assert_same_rows
from support.spark_hudi import read_by_spark

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")


def read_by_us(path: Path, *, meta_columns: bool = False) -> pa.Table:
    """With a handle of its own, so that nothing comes from the memory of one that wrote."""
    with hudi.open_table(str(path)) as table:
        return table.scan(meta_columns=meta_columns).to_table()


def read_by_hudi_rs(path: Path) -> pa.Table:
    """A snapshot, meta columns included."""
    table = HudiTableBuilder.from_base_uri(str(path)).build()
    batches = table.read()
    if not batches:
        return table.get_schema_with_meta_fields().empty_table()
    return pa.concat_tables(pa.Table.from_batches([batch]) for batch in batches)


def without_meta(rows: pa.Table, others: Iterable[str] = ()) -> pa.Table:
    """The table's own columns."""
    return rows.drop_columns([name for name in (*META, *others) if name in rows.column_names])


def assert_all_agree(spark: Any, path: Path, expected: pa.Table, *, schema_by_spark: bool = False) -> None:
    """Each of the three gives exactly the rows and types of ``expected``.

    ``schema_by_spark``: the newest commit is Spark's and names types that it knows, which hudi-rs then follows.
    """
    assert_same_rows(read_by_us(path), expected, "our reader")
    assert_same_rows(without_meta(read_by_hudi_rs(path)), expected, "hudi-rs", fewer_types=schema_by_spark)
    assert_same_rows(without_meta(read_by_spark(spark, path)), expected, "Spark", fewer_types=True)


def query_by_hudi_rs(
    path: Path | str, *, mode: str = "snapshot", as_of: str | None = None, since: str | None = None
) -> list[dict[str, Any]]:
    """The same queries as ``Table.scan`` knows; rows with meta columns. ``since``, and ``as_of`` with it: completion times."""
    options = HudiReadOptions()
    if mode == "read_optimized":
        options = options.with_hudi_option("hoodie.read.use.read_optimized.mode", "true")
    if since is not None:
        options = options.with_query_type(HudiQueryType.Incremental).with_start_timestamp(since)
        options = options if as_of is None else options.with_end_timestamp(as_of)
    elif as_of is not None:
        options = options.with_as_of_timestamp(as_of)
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read(options)
    return [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
