"""Files in a bucket that tasks read by Arrow, from a real S3 server: footers by the driver, rows by the tasks, none by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_spark import bulk_insert, plan_bulk_insert
from headgate_spark.loading import run_prepared
from headgate_spark.planning import setup_of
from headgate_tables import hudi
from headgate_tables.errors import MissingFileError
from support.bulk_rows import ROWS, SCHEMA, expected
from support.oracle import Row
from support.s3 import S3Endpoint, named_s3
from support.same_rows import assert_same_rows

BUCKET, FOLDER, TABLE = "lake", "raw orders", "s3://lake/orders"


@dataclass(frozen=True, slots=True)
class Bucket:
    """``objects``: where the server keeps what is in ``FOLDER``; ``shown``: what Spark finds there."""

    endpoint: S3Endpoint
    objects: Path
    shown: Path

    def put(self, name: str, rows: list[Row]) -> None:
        """A Parquet file of several row groups. Spark sees its footer, and zeros in place of its rows."""
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), self.objects / name, row_group_size=150)
        content = (self.objects / name).read_bytes()
        footer = int.from_bytes(content[-8:-4], "little") + 8
        (self.shown / name).write_bytes(content[:4] + bytes(len(content) - footer - 4) + content[-footer:])

    def new_table(self) -> hudi.Table:
        return hudi.create_table(
            TABLE,
            SCHEMA,
            record_key=["id"],
            partition_by=["part"],
            ordering="ts",
            buckets=2,
            storage_options=self.endpoint.options,
        )

    def rows_of_the_table(self) -> pa.Table:
        with hudi.open_table(TABLE, storage_options=self.endpoint.options) as table:
            assert not table.verify().findings
            return table.scan(meta_columns=False).to_table()


@pytest.fixture
def bucket(spark: Any, tmp_path: Path) -> Iterator[Bucket]:
    """Spark has no client of S3 here, so Hadoop shows it a folder of this machine under the bucket's address."""
    shown = tmp_path / "shown"
    shown.mkdir()
    settings = {
        "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "fs.s3a.impl.disable.cache": "true",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        f"fs.viewfs.mounttable.{BUCKET}.link./{FOLDER}": shown.as_uri(),
    }
    with named_s3("versitygw", tmp_path) as endpoint:
        objects = tmp_path / "objects" / BUCKET / FOLDER
        objects.mkdir(parents=True)
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            yield Bucket(endpoint, objects, shown)
        finally:
            for name in settings:
                spark.conf.unset(name)


def source(spark: Any) -> Any:
    return spark.read.parquet(f"s3a://{BUCKET}/{FOLDER}")


def test_tasks_have_all_rows_from_the_bucket_and_spark_reads_none(spark: Any, bucket: Bucket) -> None:
    bucket.put("one two.parquet", ROWS[:500])
    bucket.put("three%25.parquet", ROWS[500:])
    frame, options = source(spark), bucket.endpoint.options
    with bucket.new_table() as table:
        plan = plan_bulk_insert(frame, table, tasks=2, storage_options=options)
        assert (plan.read_by, plan.why, plan.files) == ("arrow", "", 2)
        assert bulk_insert(frame, table, tasks=2, storage_options=options).upserted == expected(ROWS).num_rows
    assert_same_rows(bucket.rows_of_the_table(), expected(ROWS), "our reader")


def test_a_file_that_goes_while_it_is_loaded_is_named_and_nothing_is_loaded(spark: Any, bucket: Bucket) -> None:
    bucket.put("a.parquet", ROWS[:500])
    bucket.put("b.parquet", ROWS[500:])
    frame, options = source(spark), bucket.endpoint.options
    with bucket.new_table() as table:
        setup = setup_of(frame, table, "into_empty", tasks=2, storage_options=options)
        (bucket.objects / "b.parquet").unlink()
        with pytest.raises(MissingFileError, match=rf"s3://{BUCKET}/{FOLDER}/b\.parquet"):
            run_prepared(frame, table, "into_empty", setup, storage_options=options, progress=None)
    assert bucket.rows_of_the_table().num_rows == 0


def test_files_of_other_bytes_than_spark_sees_are_left_to_spark(spark: Any, bucket: Bucket) -> None:
    bucket.put("a.parquet", ROWS[:500])
    pq.write_table(pa.Table.from_pylist(ROWS, schema=SCHEMA), bucket.objects / "a.parquet")
    with bucket.new_table() as table:
        plan = plan_bulk_insert(source(spark), table, tasks=2, storage_options=bucket.endpoint.options)
    assert (plan.read_by, "bytes" in plan.why) == ("spark", True), plan.why
