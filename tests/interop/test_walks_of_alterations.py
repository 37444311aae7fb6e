"""Random alterations among all else that happens to a table: after each, Spark, hudi-rs and we agree, on disk and on real S3.

A walk has ten alterations; the four of them forty. Between two of them rows come, some late, rows are deleted, and the table is
compacted, cleaned, saved and restored. Then Spark writes to the table, we adopt that and go on.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

from headgate_tables import hudi
from headgate_tables.face.altering import Alteration
from support.altered_rows import row
from support.oracle import Oracle
from support.readers import without_meta
from support.s3 import S3Endpoint, named_s3
from support.same_rows import assert_same_rows
from support.spark_hudi import SparkTable, read_by_spark

FIRST = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("v", pa.int32()),
        pa.field("strict", pa.int32(), nullable=False),
        pa.field("money", pa.decimal128(5, 2)),
    ]
)
WIDER = {
    "int32": [pa.int64(), pa.float64()],
    "float": [pa.float64()],
    "decimal128(5, 2)": [pa.decimal128(9, 2)],
    "decimal128(9, 2)": [pa.decimal128(18, 2)],
}
NEW = [pa.string(), pa.int32(), pa.float32(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.decimal128(5, 2), pa.bool_()]
NEW += [pa.list_(pa.string()), pa.struct([("x", pa.int32())]), pa.list_(pa.struct([("x", pa.int32())]))]
KEYS = [f"k{number}" for number in range(8, 16)]
ALTERATIONS = 10


@dataclass(frozen=True, slots=True)
class Place:
    """``url``: where the library and hudi-rs find the table; ``files``: where its files lie on this machine, for Spark."""

    url: str
    files: Path
    endpoint: S3Endpoint | None = None

    @property
    def options(self) -> dict[str, str]:
        return self.endpoint.options if self.endpoint else {}

    def read_by_hudi_rs(self) -> pa.Table:
        builder = HudiTableBuilder.from_base_uri(self.url)
        table = builder.with_options(self.endpoint.hudi_rs_options if self.endpoint else {}).build()
        return pa.concat_tables(pa.Table.from_batches([batch]) for batch in table.read())


@contextlib.contextmanager
def place_on(store: str, folder: Path) -> Iterator[Place]:
    if store == "disk":
        yield Place(str(folder / "t"), folder / "t")
        return
    with named_s3(store, folder) as endpoint:
        bucket = folder / "objects" / "walks"
        bucket.mkdir()  # to this server any folder there is a bucket
        yield Place("s3://walks/t", bucket / "t", endpoint)


@dataclass(slots=True)
class State:
    """What the table must hold, and with which columns."""

    oracle: Oracle
    schema: pa.Schema

    def rows(self) -> pa.Table:
        return pa.Table.from_pylist(self.oracle.rows(), schema=self.schema)


class Walk:
    """One table, what happens to it, and what it must hold now, at each savepoint, and behind each alteration so far."""

    def __init__(self, spark: Any, place: Place, ordering: str | None, choose: random.Random) -> None:
        self.spark, self.place, self.ordering, self.choose = spark, place, ordering, choose
        keys: dict[str, Any] = {"record_key": "id", "partition_by": "part", "ordering": ordering, "buckets": 2}
        self.table = hudi.create_table(place.url, FIRST, **keys, storage_options=place.options or None)
        self.state = State(Oracle(["id"], ["part"], ordering), FIRST)
        self.saved: dict[str, State] = {}
        self.past: dict[str, State] = {}
        self.time = 0
        self.mixed = False
        """Whether logs hold a column in a type that is narrower than it is now, which hudi-rs refuses (fact HF14)."""

    def rows_of(self, keys: list[str]) -> list[dict[str, Any]]:
        late = self.choose.random() < 0.3
        return [row(self.state.schema, key, max(1, self.time - 2) if late else self.time) for key in keys]

    def write(self) -> None:
        self.time += 1
        some = self.choose.sample(KEYS, 3)
        if self.choose.random() < 0.25:
            gone = self.rows_of(some[:1])
            self.table.delete(pa.Table.from_pylist(gone, schema=self.state.schema))
            self.state.oracle.delete(gone)
        else:
            rows = self.rows_of(some)
            self.table.upsert(pa.Table.from_pylist(rows, schema=self.state.schema))
            self.state.oracle.upsert(rows)

    def maintain(self) -> None:
        match self.choose.choice(["compact", "clean", "save", "restore", "nothing"]):
            case "compact":
                self.compact()
            case "clean":
                self.table.clean()
            case "save":
                self.saved[self.table.savepoint()] = copy.deepcopy(self.state)
            case "restore" if self.saved:
                self.restore(self.choose.choice(sorted(self.saved)))

    def compact(self) -> None:
        assert not self.table.compact().dropped
        self.state.oracle.compact()
        self.mixed = False

    def restore(self, instant: str) -> None:
        self.table.restore(instant)
        self.state = copy.deepcopy(self.saved[instant])
        self.saved = {each: state for each, state in self.saved.items() if each <= instant}
        there = {commit.completion for commit in self.table.commits()}
        self.past = {completion: state for completion, state in self.past.items() if completion in there}
        self.compact()  # the savepoint may hold logs of narrower types

    def alter(self) -> None:
        fields = {each.name: each for each in self.state.schema}
        widenable = [name for name, each in fields.items() if name != "ts" and str(each.type) in WIDER]
        strict = [name for name, each in fields.items() if not each.nullable]
        match self.choose.choice(["add", "add", "widen", "nullable"]):
            case "widen" if widenable:
                name = self.choose.choice(widenable)
                alteration = Alteration(widen={name: self.choose.choice(WIDER[str(fields[name].type)])})
                self.mixed = True
            case "nullable" if strict:
                alteration = Alteration(nullable=[strict[0]])
            case _:
                alteration = Alteration(add={f"c{len(fields)}_{self.time}": self.choose.choice(NEW)})
        self.state.schema = self.table.alter(alteration).schema
        self.past[self.table.commits()[-1].completion] = copy.deepcopy(self.state)

    def check(self) -> None:
        expected = self.state.rows()
        with hudi.open_table(self.place.url, storage_options=self.place.options or None) as opened:
            assert_same_rows(opened.scan().to_table(), expected, "our reader")
            for as_of, then in self.past.items():
                found = opened.scan(as_of=as_of).to_table().select(then.schema.names)
                assert_same_rows(found, then.rows().cast(found.schema), f"our reader, as of {as_of}")
        found = without_meta(read_by_spark(self.spark, self.place.files))
        assert_same_rows(found, expected, "Spark", fewer_types=True)
        if not self.mixed:
            assert_same_rows(without_meta(self.place.read_by_hudi_rs()), expected, "hudi-rs")

    def check_the_past_by_spark(self) -> None:
        """Time travel goes by requested times there, so only where these say the same (fact of test_queries_of_the_past)."""
        with hudi.open_table(self.place.url, storage_options=self.place.options or None) as opened:
            commits = opened.commits()
            instants = {commit.completion: commit.instant for commit in commits}
            for as_of in self.past:
                known = {commit.instant for commit in commits if commit.completion <= as_of}
                if as_of in instants and known == {each.instant for each in commits if each.instant <= instants[as_of]}:
                    asked: dict[str, Any] = {"as_of": instants[as_of]}
                    ours = opened.scan(**asked).to_table()
                    theirs = without_meta(read_by_spark(self.spark, self.place.files, **asked))
                    names = [name for name in theirs.schema.names if name in ours.schema.names]
                    assert_same_rows(theirs.select(names), ours.select(names), f"Spark, {asked}", fewer_types=True)
            first, last = commits[0].completion, commits[-1].completion
            changed = opened.scan(since=first, as_of=last).to_table()
        theirs = without_meta(read_by_spark(self.spark, self.place.files, since=first, as_of=last))
        assert_same_rows(theirs, changed, "Spark, of what changed", fewer_types=True)


@pytest.mark.parametrize("store", ["disk", "versitygw"])
@pytest.mark.parametrize("ordering", ["ts", None], ids=["event-time", "commit-time"])
def test_all_readers_agree_after_each_of_ten_alterations_amid_all_else(
    spark: Any, tmp_path: Path, ordering: str | None, store: str
) -> None:
    with place_on(store, tmp_path) as place:
        walk = Walk(spark, place, ordering, random.Random(f"{store} {ordering}"))
        walk.write()
        for _ in range(ALTERATIONS):
            for _ in range(walk.choose.randint(1, 2)):
                walk.write()
            walk.maintain()
            walk.alter()
            walk.check()
            walk.write()
            if walk.mixed:
                walk.check()
                walk.compact()
            walk.check()
        walk.check_the_past_by_spark()
        assert not walk.table.verify().findings
        walk.table.close()
        if store == "disk":
            spark_writes_and_we_go_on(spark, walk)


def spark_writes_and_we_go_on(spark: Any, walk: Walk) -> None:
    path, schema = walk.place.files, walk.state.schema
    walk.time += 1
    theirs = [row(schema, key, walk.time) | {"more": number} for number, key in enumerate(KEYS[:3])]
    options = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    by_spark = SparkTable(spark, path.parent, path.name, ordering=walk.ordering, partition=["part"], options=options)
    by_spark.upsert(pa.Table.from_pylist(theirs, schema.append(pa.field("more", pa.int64()))))
    walk.state.oracle.upsert(theirs)
    walk.past.clear()
    walk.table = hudi.open_table(walk.place.url)
    assert walk.table.adopt().completed
    walk.state.schema = walk.table.schema
    walk.check()
    walk.alter()
    walk.compact()
    walk.write()
    walk.check()
