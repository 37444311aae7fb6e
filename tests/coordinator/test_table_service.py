"""Tables over gRPC: created, described, listed; limits and errors with their codes."""

import asyncio
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_coordinator.services import schemas
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import tables_pb2 as api
from headgate_runtime.tarpit import LONGEST_WAIT_S
from headgate_runtime.world import SystemClock
from headgate_tables.hudi import create_table, open_table
from support import schema_bombs
from support.running_coordinator import refused, running_coordinator
from support.tables import SCHEMA

OPTIONS: dict[str, Any] = {"partition_by": ["part"], "ordering": "ts"}


async def code(call: Awaitable[Any]) -> str:
    return errors_pb2.Code.Name((await refused(call)).code)


async def test_a_table_is_created_described_and_listed_by_every_coordinator(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as one, running_coordinator(tmp_path, redis) as other:
        created = await one.create("flights", SCHEMA, **OPTIONS, buckets=3, hive_style=True)
        await other.create("airports", SCHEMA)
        assert pa.ipc.read_schema(pa.py_buffer(created.schema)) == SCHEMA
        assert (created.name, created.buckets, created.hive_style, created.ordering) == ("flights", 3, True, "ts")
        assert (list(created.record_key), list(created.partition_by)) == (["id"], ["part"])
        assert str(open_table(created.url).definition.table_uuid) == created.table_uuid  # type: ignore[union-attr]
        for coordinator in (one, other):
            assert (await coordinator.tables.DescribeTable(api.DescribeTableRequest(name="flights"))).table == created
            listed = (await coordinator.tables.ListTables(api.ListTablesRequest())).tables
            assert [table.name for table in listed] == ["airports", "flights"]
            assert (listed[0].buckets, listed[0].ordering) == (8, "")


async def test_a_table_has_the_version_that_was_asked_for_and_else_8(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        for name, asked, version in (("t8", {}, 8), ("t9", {"table_version": 9}, 9)):
            created = await coordinator.create(name, SCHEMA, **OPTIONS, **asked)
            assert created.table_version == version
            assert f"hoodie.table.version={version}\n" in (tmp_path / name / ".hoodie/hoodie.properties").read_text()
            assert (await coordinator.tables.DescribeTable(api.DescribeTableRequest(name=name))).table == created
        assert await coordinator.create("t9", SCHEMA, **OPTIONS, exist_ok=True, table_version=8) == created
        assert await code(coordinator.create("t7", SCHEMA, **OPTIONS, table_version=7)) == "CODE_INVALID_ARGUMENT"
        assert not (tmp_path / "t7").exists()


async def test_a_table_whose_folder_is_gone_or_damaged_is_left_out_of_the_list_by_name(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        for name in ("damaged", "gone", "kept"):
            await coordinator.create(name, SCHEMA)
    (tmp_path / "gone").rename(tmp_path / "away")
    (tmp_path / "damaged/.hoodie/hoodie.properties").write_bytes(b"hoodie.table.type=\xff")
    async with running_coordinator(tmp_path, redis) as coordinator:
        listed = await coordinator.tables.ListTables(api.ListTablesRequest())
        assert [table.name for table in listed.tables] == ["kept"]
        assert list(listed.unreadable) == ["damaged", "gone"]
        for call in (
            coordinator.tables.DescribeTable(api.DescribeTableRequest(name="gone")),
            coordinator.create("gone", SCHEMA, exist_ok=True),
        ):
            assert await code(call) == "CODE_UNAVAILABLE"
        assert not (tmp_path / "gone").exists()
        (tmp_path / "away").rename(tmp_path / "gone")
        assert (await coordinator.create("gone", SCHEMA, exist_ok=True)).name == "gone"


async def test_exist_ok_takes_the_same_definition_and_no_other(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        created = await coordinator.create("t", SCHEMA, **OPTIONS)
        assert await coordinator.create("t", SCHEMA, **OPTIONS, exist_ok=True) == created
        assert await code(coordinator.create("t", SCHEMA, **OPTIONS)) == "CODE_TABLE_EXISTS"
        other = await refused(coordinator.create("t", SCHEMA, **OPTIONS, buckets=5, exist_ok=True))
        assert errors_pb2.Code.Name(other.code) == "CODE_TABLE_EXISTS"
        assert other.message == "a table with another definition is there: its number of buckets is 8, not 5"


async def test_a_creation_that_stopped_before_its_entry_is_completed_by_the_next(tmp_path: Path, redis: str) -> None:
    half = create_table(f"{tmp_path}/t", SCHEMA, record_key=["id"], partition_by=["part"], ordering="ts", name="t")
    async with running_coordinator(tmp_path, redis) as coordinator:
        assert await code(coordinator.tables.DescribeTable(api.DescribeTableRequest(name="t"))) == "CODE_TABLE_NOT_FOUND"
        created = await coordinator.create("t", SCHEMA, **OPTIONS)
        assert created.table_uuid == str(half.definition.table_uuid)  # type: ignore[union-attr]
        await coordinator.until("t", state="owned")


async def test_of_many_creations_at_once_all_that_succeed_name_one_table(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as one, running_coordinator(tmp_path, redis) as other:
        calls = [coordinator.create("t", SCHEMA, **OPTIONS, exist_ok=True) for coordinator in (one, other) * 4]
        assert len({table.table_uuid for table in await asyncio.gather(*calls)}) == 1


@pytest.mark.parametrize("name", ["", "../t", "a/b", ".hidden", "a b", "x" * 129, "ä"])
async def test_what_is_no_name_is_refused(tmp_path: Path, redis: str, name: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        assert await code(coordinator.create(name, SCHEMA)) == "CODE_INVALID_ARGUMENT"
        assert await code(coordinator.tables.DescribeTable(api.DescribeTableRequest(name=name))) == "CODE_INVALID_ARGUMENT"
    assert not [path for path in tmp_path.iterdir() if path.name != ".headgate"]


def nested(depth: int) -> pa.DataType:
    kind: pa.DataType = pa.int64()
    for _ in range(depth - 1):
        kind = pa.list_(kind)
    return kind


async def test_schemas_are_read_within_limits(tmp_path: Path, redis: str) -> None:
    def schema_of(*kinds: pa.DataType) -> pa.Schema:
        return pa.schema([("id", pa.string()), *((f"c{number}", kind) for number, kind in enumerate(kinds))])

    async with running_coordinator(tmp_path, redis) as coordinator:
        assert await code(coordinator.create("t", schema_of(nested(17)))) == "CODE_TOO_LARGE"
        assert await code(coordinator.create("t", schema_of(*[pa.int64()] * 2000))) == "CODE_TOO_LARGE"
        wide = pa.struct([(f"f{number}", pa.int64()) for number in range(1999)])
        assert await code(coordinator.create("t", schema_of(wide))) == "CODE_TOO_LARGE"
        big = SCHEMA.with_metadata({"x": "y" * (256 << 10)})
        assert await code(coordinator.create("t", big)) == "CODE_TOO_LARGE"
        await coordinator.create("deep", schema_of(nested(16)))
        await coordinator.create("wide", schema_of(*[pa.int64()] * 1999))


async def test_a_schema_is_read_off_the_loop(tmp_path: Path, redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on_the_loop: list[bool] = []

    def noted(message: bytes) -> pa.Schema:
        on_the_loop.append(threading.current_thread() is threading.main_thread())
        return schemas.read_schema(message)

    monkeypatch.setattr("headgate_coordinator.services.table_service.read_schema", noted)
    async with running_coordinator(tmp_path, redis) as coordinator:
        await coordinator.create("t", SCHEMA)
    assert on_the_loop == [False]


async def test_an_error_says_no_more_than_fits_whatever_names_a_schema_has(tmp_path: Path, redis: str) -> None:
    names = [f"c{number:04}" + "x" * 60 for number in range(1_999)]
    async with running_coordinator(tmp_path, redis) as coordinator:
        error = await refused(coordinator.create("t", pa.schema([(name, pa.int8()) for name in names]), record_key=["nobody"]))
        assert error.code == errors_pb2.CODE_SCHEMA
        assert len(error.SerializeToString()) < 2_100
        assert (
            await code(coordinator.tables.DescribeTable(api.DescribeTableRequest(name="x" * 10_000))) == "CODE_INVALID_ARGUMENT"
        )


BOMBS = [make() for make in schema_bombs.SCHEMAS.values()]


@pytest.mark.parametrize("schema", [b"", b"no arrow", SCHEMA.serialize().to_pybytes()[:-40], *BOMBS], ids=len)
async def test_what_is_no_schema_is_refused(tmp_path: Path, redis: str, schema: bytes) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        request = api.CreateTableRequest(name="t", schema=schema, record_key=["id"])
        assert await code(coordinator.tables.CreateTable(request)) == "CODE_SCHEMA"


async def test_a_definition_that_makes_no_sense_is_refused_in_words_of_the_caller(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        error = await refused(coordinator.create("t", SCHEMA, record_key=["nobody"]))
        assert (error.code, error.action) == (errors_pb2.CODE_SCHEMA, errors_pb2.ACTION_FIX_CALL)
        assert "nobody" in error.message
        assert str(tmp_path) not in error.message + error.fix


async def test_an_unknown_table_is_not_found(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        assert await code(coordinator.tables.DescribeTable(api.DescribeTableRequest(name="t"))) == "CODE_TABLE_NOT_FOUND"
        assert (await coordinator.status("t")).state == "unowned"


async def test_a_new_table_serves_without_waiting_for_a_scan(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis, scan_interval=600.0) as coordinator:
        await coordinator.create("t", SCHEMA, **OPTIONS)
        await coordinator.until("t", state="owned")


@pytest.mark.slow
async def test_a_flood_of_refused_creations_is_answered_unread(
    tmp_path: Path, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a rate that pays off none of them, however long they take here; but the answers do not wait."""
    sleep = SystemClock.sleep

    async def sleep_less(clock: SystemClock, seconds: float) -> None:
        await sleep(clock, 0 if seconds == LONGEST_WAIT_S else seconds)

    monkeypatch.setattr(SystemClock, "sleep", sleep_less)
    async with running_coordinator(tmp_path, redis, refusals=0.01) as coordinator:
        request = api.CreateTableRequest(name="t", schema=BOMBS[2], record_key=["id"])
        found = await asyncio.gather(*(refused(coordinator.tables.CreateTable(request)) for _ in range(40)))
        assert {errors_pb2.Code.Name(error.code) for error in found} == {"CODE_SCHEMA", "CODE_OVERLOADED"}
        assert all(error.retry_after_ms > 0 for error in found if error.code == errors_pb2.CODE_OVERLOADED)
