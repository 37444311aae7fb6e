"""How many tables a principal may make: coordinators count those whose entries name it as their creator."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate_coordinator.services.table_quota import Creators, TableQuota
from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1 import tables_pb2 as api
from headgate_runtime.errors import RpcError, from_call
from support.access import access_text, role
from support.running_coordinator import Running, running_coordinator
from support.tables import SCHEMA

ENTRIES = ".headgate/tables"
QUOTA = '\n[[quotas]]\nprincipals = ["ann"]\ntables = 2\n'


def guarded(folder: Path) -> dict[str, Any]:
    """Settings of a coordinator."""
    path = folder / "access.toml"
    path.write_text(access_text({"a": "ann", "b": "bob"}, role("ann", "create"), role("bob", "create")) + QUOTA)
    return {"access": str(path), "cluster_token": "c"}


async def create(coordinator: Running, name: str, token: str = "a", **options: Any) -> None:
    request = api.CreateTableRequest(name=name, schema=SCHEMA.serialize().to_pybytes(), record_key=["id"], **options)
    await coordinator.tables.CreateTable(request, metadata=(("authorization", f"Bearer {token}"),))


async def refused(coordinator: Running, name: str, **options: Any) -> errors_pb2.Error:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await create(coordinator, name, **options)
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return from_call(failed.value)


async def test_a_principal_makes_as_many_tables_as_its_quota_says_and_others_are_not_counted(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path / "store", redis, **guarded(tmp_path)) as coordinator:
        for name in ("bobs", "bobs-2", "bobs-3"):
            await create(coordinator, name, "b")
        for name in ("one", "two"):
            await create(coordinator, name)
        error = await refused(coordinator, "three")
        assert (error.code, error.action) == (errors_pb2.CODE_QUOTA, errors_pb2.ACTION_FIX_CALL)
        assert "made 2 tables that are there, and its quota `tables` is 2" in error.message
        assert "raise `tables` in [[quotas]]" in error.fix
        assert not (tmp_path / "store/three").exists()
        await create(coordinator, "two", exist_ok=True)
        await create(coordinator, "bobs", exist_ok=True)
        (tmp_path / "store" / ENTRIES / "one").unlink()
        await create(coordinator, "three")


async def test_another_coordinator_counts_the_same_tables(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path / "store", redis, **guarded(tmp_path)) as one,
        running_coordinator(tmp_path / "store", redis, **guarded(tmp_path)) as other,
    ):
        await create(one, "one")
        await create(other, "two")
        for coordinator in (one, other):
            assert (await refused(coordinator, "three")).code == errors_pb2.CODE_QUOTA


async def test_tables_of_entries_without_a_creator_or_with_a_torn_one_count_for_nobody(tmp_path: Path, redis: str) -> None:
    store = tmp_path / "store"
    async with running_coordinator(store, redis, **guarded(tmp_path)) as coordinator:
        await create(coordinator, "one")
        await create(coordinator, "old")
        assert json.loads((store / ENTRIES / "old").read_bytes()) == {"format": 1, "path": "old", "creator": "ann"}
    (store / ENTRIES / "old").write_text('{"format": 1, "path": "old"}')
    (store / ENTRIES / "torn").write_text('{"format": 1, "pa')
    async with running_coordinator(store, redis, **guarded(tmp_path)) as coordinator:
        await create(coordinator, "two")
        assert (await refused(coordinator, "three")).code == errors_pb2.CODE_QUOTA
        await create(coordinator, "old", exist_ok=True)


async def test_without_access_no_creator_is_kept(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator:
        await coordinator.create("t", SCHEMA)
    assert json.loads((tmp_path / ENTRIES / "t").read_bytes()) == {"format": 1, "path": "t"}


class Store:
    """Tables that are there; a look takes until ``go`` is set."""

    def __init__(self) -> None:
        self.tables: dict[str, str] = {}
        self.go = asyncio.Event()
        self.looking = asyncio.Event()
        self.go.set()

    async def look(self, _known: Creators) -> Creators:
        found = dict(self.tables)
        self.looking.set()
        await self.go.wait()
        return found


async def make(quota: TableQuota, store: Store, names: Sequence[str], most: float) -> list[bool]:
    """Which of these were made, all at once by one principal."""

    async def one(name: str) -> bool:
        try:
            async with quota.counted(name, "ann", most):
                await asyncio.sleep(0)
                store.tables[name] = "ann"
        except RpcError:
            return False
        return True

    return await asyncio.gather(*map(one, names))


async def test_of_many_creations_at_once_no_more_than_the_quota_are_made() -> None:
    store = Store()
    quota = TableQuota(store.look)
    assert sum(await make(quota, store, [f"t{number}" for number in range(9)], 3)) == 3
    assert len(store.tables) == 3


async def test_the_same_table_made_twice_at_once_takes_one_place() -> None:
    store = Store()
    quota = TableQuota(store.look)
    assert await make(quota, store, ["t", "t", "t"], 1) == [True] * 3


async def test_a_creation_that_ends_while_tables_are_looked_at_is_counted() -> None:
    store = Store()
    quota = TableQuota(store.look)
    async with quota.counted("one", "ann", 1):
        store.go.clear()
        store.looking.clear()
        second = asyncio.ensure_future(make(quota, store, ["two"], 1))
        await store.looking.wait()
        store.tables["one"] = "ann"
    store.go.set()
    assert await second == [False]


async def test_a_creation_that_fails_gives_its_place_back_and_no_quota_looks_at_nothing() -> None:
    store = Store()
    quota = TableQuota(store.look)
    with pytest.raises(OSError, match="full"):
        async with quota.counted("one", "ann", 1):
            raise OSError("full")
    assert await make(quota, store, ["two"], 1) == [True]
    store.looking.clear()
    async with quota.counted("three", "ann", float("inf")):
        pass
    assert not store.looking.is_set()
