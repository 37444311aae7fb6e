"""Queries of the past on tables that real Hudi wrote: what Spark gives, and hudi-rs beside it."""

from pathlib import Path
from typing import Any

import pytest

from headgate_tables import hudi
from headgate_tables.errors import RangeGoneError, UnsupportedTableError
from support.golden import comparable, unpack
from support.golden_queries import Query, queries
from support.readers import query_by_hudi_rs

QUERIES = queries()
ENCODED_PARTITION = "h120_v9_mor_compaction_done.inc-20261121002654716-20261121002703566"
"""Spark's incremental query gives the partition column as the folder spells it: `us%2Feast` for `us/east`."""


def as_spark_asks(query: Query) -> dict[str, Any]:
    """Hudi 1.0 took the begin in; since 1.1 it is exclusive, as here."""
    arguments: dict[str, Any] = dict(query.arguments)
    if "since" in arguments and query.table.startswith("h102"):
        arguments["since"] = str(int(arguments["since"]) - 1)
    return arguments


def wanted(query: Query, columns: list[str]) -> list[str]:
    rows = query.rows().select(columns).to_pylist()
    if str(query) == ENCODED_PARTITION:
        decoded = {"us%2Feast": "us/east", "a%3Db%25c": "a=b%c"}
        rows = [row | {"region": decoded.get(row["region"], row["region"])} for row in rows]
    return comparable(rows)


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_query_of_the_past_gives_what_spark_gives(query: Query, tmp_path: Path) -> None:
    rows = hudi.open_table(unpack(query.table, tmp_path)).scan(meta_columns=True, **as_spark_asks(query)).to_table()
    assert comparable(rows.to_pylist()) == wanted(query, rows.column_names)


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_hudi_rs_gives_the_same(query: Query, tmp_path: Path) -> None:
    """So what these tests take for its answers is what it answers."""
    rows = query_by_hudi_rs(unpack(query.table, tmp_path), **as_spark_asks(query))
    if not rows:
        assert query.rows().num_rows == 0
        return
    assert comparable(rows) == wanted(query, list(rows[0]))


def test_every_kind_of_query_is_among_them() -> None:
    kinds = [query.kind for query in QUERIES]
    assert {kind: kinds.count(kind) >= 10 for kind in kinds} == dict.fromkeys(
        ("read optimised", "time travel", "incremental"), True
    )


def test_a_range_whose_log_was_cleaned_is_read_from_the_compaction_after_it(tmp_path: Path) -> None:
    table = hudi.open_table(unpack("h120_v9_mor_archived", tmp_path))
    (cleaned,) = [info for info in table.commits() if info.instant == "20261120235731727"]
    assert not list(Path(tmp_path).rglob(f"*{cleaned.instant}.log*"))
    found = table.scan(["id"], since="20261120235719252").to_table()["id"].to_pylist()
    assert sorted(map(str, found)) == ["k0011", "k0012", "k0013", "k0014", "k0015"]
    with pytest.raises(RangeGoneError, match=r"cleaned away .*; the oldest point that can be read is 20261120235854378"):
        table.scan(since="20261120235719252", as_of=cleaned.instant)


def test_archived_commits_are_an_error_and_never_left_out(tmp_path: Path) -> None:
    table = hudi.open_table(unpack("h120_v9_mor_archived", tmp_path))
    oldest = table.commits()[0]
    with pytest.raises(RangeGoneError, match="were archived; the oldest point that can be read is"):
        table.scan(since="20261120235625685")
    with pytest.raises(RangeGoneError, match=rf"as of {oldest.instant} is gone.*as_of='20261120235854378' or later"):
        table.scan(as_of=oldest.instant)
    with pytest.raises(RangeGoneError):
        table.scan(as_of="20200101000000000", mode="read_optimized")


def test_a_cleaned_point_is_an_error_and_the_oldest_that_is_named_can_be_read(tmp_path: Path) -> None:
    table = hudi.open_table(unpack("h120_v9_mor_clean", tmp_path))
    for gone in ("20261120235320667", "20261120235317168", "19990101000000"):
        with pytest.raises(RangeGoneError, match="the oldest point that can be read is 20261120235334312"):
            table.scan(as_of=gone)
    assert (
        table.scan(as_of="20261120235334312").to_table().num_rows
        == len(query_by_hudi_rs(tmp_path / "h120_v9_mor_clean", as_of="20261120235334312"))
        > 0
    )


def test_partial_updates_have_no_incremental_query(tmp_path: Path) -> None:
    """Their files hold no whole rows; before them, and as of them, the table is read as ever."""
    table = hudi.open_table(unpack("h120_v9_mor_partial_update", tmp_path))
    first, *others = table.commits()
    scan = table.scan(since=first.completion)
    with pytest.raises(UnsupportedTableError, match="changed single columns"):
        scan.to_table()
    assert table.scan(as_of=others[-1].instant).to_table().equals(table.scan().to_table())
