"""Real tables: what Spark wrote into the meta columns of each row is what we compute from its values."""

import json
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_tables.hudi.keys.bucket import bucket_of
from headgate_tables.hudi.keys.partition_path import PartitionSpec, parse_partition_path, partition_paths
from headgate_tables.hudi.keys.record_key import KeySpec, read_keys
from support.key_texts import record_buckets, records_of_text

GOLDEN = Path(__file__).parents[2] / "golden" / "spark"
PREFIXED = {"h120_v8_mor_bucket_part2_url"}  # ComplexKeyGenerator with one field, by 1.2.0; 1.0.2 wrote the bare value


def bucketed(path: Path) -> bool:
    options = json.loads(path.read_text())["options"]
    return options.get("hoodie.index.type") == "BUCKET" and options.get("hoodie.index.bucket.engine") != "CONSISTENT_HASHING"


NAMES = sorted(path.stem for path in GOLDEN.glob("*.json") if bucketed(path))


def test_the_golden_tables_are_there() -> None:
    assert {"h120_v8_mor_bucket_part2_url", "h102_v8_mor_bucket_part2_url", "h120_v9_mor_bucket_part"} <= set(NAMES)
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_keys_partitions_and_buckets_are_those_that_spark_wrote(name: str) -> None:
    options = json.loads((GOLDEN / f"{name}.json").read_text())["options"]
    rows = pq.read_table(GOLDEN / f"{name}.expected.parquet")
    spec = KeySpec(tuple(options["hoodie.datasource.write.recordkey.field"].split(",")), prefixed=name in PREFIXED)
    by = PartitionSpec(
        tuple(field for field in options.get("hoodie.datasource.write.partitionpath.field", "").split(",") if field),
        hive_style=options.get("hoodie.datasource.write.hive_style_partitioning") == "true",
        url_encode=options.get("hoodie.datasource.write.partitionpath.urlencode") == "true",
    )
    buckets = int(options["hoodie.bucket.index.num.buckets"])
    assert rows.num_rows > 0

    records = read_keys(rows, spec)
    written = rows["_hoodie_record_key"].combine_chunks()
    assert records.keys.to_pylist() == written.to_pylist()

    in_files = [bucket_of(file) for file in rows["_hoodie_file_name"].to_pylist()]
    assert record_buckets(records, spec, buckets) == in_files
    assert record_buckets(records_of_text(written, spec), spec, buckets) == in_files

    codes, paths, values = partition_paths(rows, by)
    assert [paths[code] for code in codes] == rows["_hoodie_partition_path"].to_pylist()
    types: list[pa.DataType] = [rows.schema.field(field).type for field in by.fields]
    for path, value in zip(paths, values, strict=True):
        assert tuple(parse_partition_path(path, by, types).values()) == value
    assert set(paths) <= partition_folders(name)


def partition_folders(name: str) -> set[str]:
    files = zipfile.ZipFile(GOLDEN / f"{name}.zip").namelist()
    markers = (re.fullmatch(rf"{name}/(?:(.+)/)?\.hoodie_partition_metadata(\..+)?", file) for file in files)
    return {marker[1] or "" for marker in markers if marker}
