"""Names of base and log files."""

import pytest

from headgate_tables.hudi.log.names import (
    BaseName,
    LogName,
    base_name,
    claimed_instant,
    log_name,
    parse_base_name,
    parse_log_name,
)
from support.golden_logs import golden_files

FILE_ID = "00000003-1c2d-4e5f-8a9b-0123456789ab-0"
INSTANT = "20261121001053580"


def test_names_parse_back() -> None:
    assert parse_log_name(log_name(FILE_ID, INSTANT, 12, "3-40-500")) == LogName(FILE_ID, INSTANT, 12, "3-40-500", cdc=False)
    assert parse_base_name(base_name(FILE_ID, "3-40-500", INSTANT)) == BaseName(FILE_ID, "3-40-500", INSTANT, "parquet")


def test_names_are_those_of_hudi() -> None:
    assert log_name(FILE_ID, INSTANT, 1, "0-1-2") == f".{FILE_ID}_{INSTANT}.log.1_0-1-2"
    assert base_name(FILE_ID, "0-1-2", INSTANT) == f"{FILE_ID}_0-1-2_{INSTANT}.parquet"


def test_change_data_files_and_names_without_token_are_log_names() -> None:
    assert parse_log_name(f".{FILE_ID}_{INSTANT}.log.2_1-2-3.cdc") == LogName(FILE_ID, INSTANT, 2, "1-2-3", cdc=True)
    assert parse_log_name(f".{FILE_ID}_{INSTANT}.log.2") == LogName(FILE_ID, INSTANT, 2, "", cdc=False)


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        f"{FILE_ID}_{INSTANT}.log.1_0-1-2",
        f".{FILE_ID}_{INSTANT}.log.1_0-1-2.crc",
        f".{FILE_ID}_{INSTANT}.log.1_0-1",
        f".{FILE_ID}_{INSTANT}.log.x_0-1-2",
        f".{FILE_ID}_0-1-2_{INSTANT}.parquet.crc",
        f"{FILE_ID}_0-1-2_{INSTANT}.parquet.tmp",
        f"{FILE_ID}_{INSTANT}.parquet",
        "",
    ],
)
def test_other_names_are_neither(name: str) -> None:
    assert parse_log_name(name) is None
    assert parse_base_name(name) is None


@pytest.mark.parametrize("kind", ["orc", "hfile", "lance"])
def test_a_base_file_of_another_format_is_one_that_is_not_read(kind: str) -> None:
    base = parse_base_name(f"{FILE_ID}_0-1-2_{INSTANT}.{kind}")
    assert base == BaseName(FILE_ID, "0-1-2", INSTANT, kind)
    assert not base.is_read


@pytest.mark.parametrize(
    ("name", "instant"),
    [
        (f"{FILE_ID}_0-1-2_{INSTANT}.parquet.tmp", INSTANT),
        (f"{FILE_ID}_0-1-2_{INSTANT}_1.log.parquet", INSTANT),
        (f"{FILE_ID}_0-1-2_{INSTANT}", INSTANT),
        (f".{FILE_ID}_{INSTANT}.log.x_0-1-2", INSTANT),
        (f".{FILE_ID}_{INSTANT}.log.1_0-1", INSTANT),
        (f".{FILE_ID}_{INSTANT}.log.1_0-1-2.crc", None),
        (f".{FILE_ID}_0-1-2_{INSTANT}.parquet.crc", None),
        (f"._{FILE_ID}_0-1-2_{INSTANT}.parquet", None),
        (f"{FILE_ID}_0-1-2_{INSTANT}.parquet", None),
        (f".{FILE_ID}_{INSTANT}.log.1_0-1-2", None),
        (f".{FILE_ID}_{INSTANT}.log.1_0-1-2.cdc", None),
        (f"export_{INSTANT}.csv", None),
        (".hoodie_partition_metadata", None),
        ("", None),
    ],
)
def test_a_name_that_only_begins_like_a_data_file_claims_its_instant(name: str, instant: str | None) -> None:
    assert claimed_instant(name) == instant


@pytest.mark.parametrize(
    "table", ["spark/h120_v8_mor_bucket_np", "spark/h120_v9_mor_logcompaction", "flink/mor_nbcc_two_writers_v9"]
)
def test_every_data_file_of_a_real_table_has_a_name_that_parses(table: str) -> None:
    data = [path.rpartition("/")[2] for path, _ in golden_files(table) if not path.startswith(".hoodie")]
    named = [name for name in data if name != ".hoodie_partition_metadata"]
    assert named
    for name in named:
        log, base = parse_log_name(name), parse_base_name(name)
        assert (log is None) != (base is None)
        if log is not None:
            assert log_name(log.file_id, log.instant, log.version, log.token) == name
        if base is not None:
            assert base_name(base.file_id, base.token, base.instant) == name
            assert base.is_read


@pytest.mark.parametrize(
    ("file_id", "token"), [("a_b", "0-1-2"), ("a/b", "0-1-2"), ("", "0-1-2"), ("a", "0-1"), ("a", "x-1-2"), ("a", "")]
)
def test_a_name_that_would_not_parse_back_is_never_made(file_id: str, token: str) -> None:
    with pytest.raises(ValueError, match="not a file id and write token"):
        log_name(file_id, INSTANT, 1, token)
    with pytest.raises(ValueError, match="not a file id and write token"):
        base_name(file_id, token, INSTANT)
