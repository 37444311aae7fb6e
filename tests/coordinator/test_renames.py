"""The owner gives its table another name: which one, whose channels end, and who may (rule D11)."""

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_tables.catalog import Catalog
from headgate_tables.catalog_records import EntryRecord, FormerTable
from headgate_tables.commitlog.records import DropRecord
from headgate_tables.opening import open_table
from headgate_tables.system import System
from support.access import role, write_access
from support.running_coordinator import OPTIONS, Running, T, drop, persist, refused, running_coordinator
from support.scripted_writer import ScriptedWriter, scripted_writer
from support.tables import SCHEMA, rows


async def uuid_of(coordinator: Running, name: str = T) -> str:
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=name))
    return str(answer.table.table_uuid)


async def rename(coordinator: Running, uuid: str, to: str, name: str = T) -> None:
    request = api.RenameRequest(table=name, table_uuid=uuid, to=to)
    await persist(lambda: MaintenanceServiceStub(coordinator.channel).Rename(request))


async def names(coordinator: Running) -> list[str]:
    return [each.name for each in (await coordinator.tables.ListTables(tables_pb2.ListTablesRequest())).tables]


@pytest.mark.parametrize(
    ("uuid", "to", "code"),
    [
        ("", "new", errors_pb2.CODE_INVALID_ARGUMENT),
        ("11111111-1111-4111-8111-111111111111", "new", errors_pb2.CODE_INVALID_ARGUMENT),
        ("its own", T, errors_pb2.CODE_INVALID_ARGUMENT),
        ("its own", "a/b", errors_pb2.CODE_INVALID_ARGUMENT),
        ("its own", "", errors_pb2.CODE_INVALID_ARGUMENT),
        ("its own", "other", errors_pb2.CODE_TABLE_EXISTS),
    ],
)
async def test_a_renaming_that_is_refused_ends_no_channel(
    coordinator: Running, writer: ScriptedWriter, uuid: str, to: str, code: int
) -> None:
    await coordinator.create("other", SCHEMA, **OPTIONS)
    await writer.open(T, "c")
    error = await refused(rename(coordinator, await uuid_of(coordinator) if uuid == "its own" else uuid, to))
    assert error.code == code
    if to == "other":
        assert (error.message, error.fix) == ("there is a table other", "Choose another name.")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    assert (writer.waiting(T, "detach"), writer.pair(T)) == (0, (1, 1))
    assert await names(coordinator) == [T, "other"]


@pytest.mark.slow
async def test_d11_channels_end_and_go_on_at_their_offsets_under_the_new_name(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    uuid = await uuid_of(coordinator)
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    await rename(coordinator, uuid, "us.flights")
    assert (await writer.order(T, "detach")).error.code == errors_pb2.CODE_MOVED
    await rename(coordinator, uuid, "us.flights")  # as after an answer that was lost
    assert await names(coordinator) == ["us.flights"]
    assert await uuid_of(coordinator, "us.flights") == uuid
    await writer.order("us.flights", "attach")
    assert (await writer.open("us.flights", "c")).committed_offset == 1
    error = await refused(coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T)))
    assert (error.code, "and is us.flights now" in error.message) == (errors_pb2.CODE_TABLE_RENAMED, True)
    error = await refused(rename(coordinator, uuid, "elsewhere"))
    assert error.code == errors_pb2.CODE_TABLE_RENAMED


@pytest.mark.slow
async def test_d11_a_new_table_of_the_old_name_begins_above_the_epochs_of_the_renamed_one(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    old = await uuid_of(coordinator)
    before = await coordinator.until(T, state="owned")
    await rename(coordinator, old, "renamed")
    made = await coordinator.create(T, SCHEMA, **OPTIONS)
    assert made.table_uuid != old
    assert made.url.endswith(f"/{T}~2")
    assert (await coordinator.until(T, state="owned")).epoch > before.epoch + 1_000
    assert (await coordinator.until("renamed", state="owned")).epoch == before.epoch + 1
    error = await refused(persist(lambda: drop(coordinator, old)))
    assert (error.code, "another table has this name" in error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, True)
    asked = tables_pb2.DescribeTableRequest(name=T, table_uuid=old)
    error = await refused(coordinator.tables.DescribeTable(asked))
    assert (error.code, "and is renamed now" in error.message) == (errors_pb2.CODE_TABLE_RENAMED, True)
    for uuid in (made.table_uuid, "of a table that nobody knows"):
        asked.table_uuid = uuid
        assert (await coordinator.tables.DescribeTable(asked)).table.table_uuid == made.table_uuid
    await persist(lambda: drop(coordinator, made.table_uuid))
    for uuid, code in ((old, errors_pb2.CODE_TABLE_RENAMED), (made.table_uuid, errors_pb2.CODE_TABLE_DROPPED)):
        asked.table_uuid = uuid
        assert (await refused(coordinator.tables.DescribeTable(asked))).code == code, "no table has the name now"


@pytest.mark.slow
async def test_nobody_adopts_a_table_by_the_name_that_it_had(coordinator: Running, writer: ScriptedWriter) -> None:
    """Who may do that by the former name may have no right on the table; a refusal behind the call has fenced its owner."""
    await rename(coordinator, await uuid_of(coordinator), "renamed")
    owned = await coordinator.until("renamed", state="owned")
    request = api.AdoptRequest(table=T, remove_metadata_table=True)
    error = await refused(MaintenanceServiceStub(coordinator.channel).Adopt(request))
    assert (error.code, "was dropped or renamed" in error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, True)
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name="renamed"))
    with open_table(answer.table.url) as table:
        assert table.epoch == owned.epoch


async def test_the_new_name_takes_the_right_to_create_it(tmp_path: Path, redis: str) -> None:
    tokens = {"ann-token": "ann", "bob-token": "bob"}
    roles = (role("ann", "admin", "create", tables=["sales.*"]), role("bob", "admin"))
    access = write_access(tmp_path / "access.toml", tokens, *roles)
    async with running_coordinator(tmp_path / "store", redis, access=str(access), cluster_token="us") as running:
        owner = MaintenanceServiceStub(running.channel)

        async def ask(principal: str, name: str, to: str) -> errors_pb2.Error:
            request = api.RenameRequest(table=name, table_uuid="11111111-1111-4111-8111-111111111111", to=to)
            return await refused(owner.Rename(request, metadata=(("authorization", f"Bearer {principal}-token"),)))

        error = await ask("ann", "sales.orders", "private")
        assert (error.code, "right create on 'private'" in error.message) == (errors_pb2.CODE_PERMISSION_DENIED, True)
        assert (await ask("ann", "private", "sales.orders")).code == errors_pb2.CODE_PERMISSION_DENIED
        assert (await ask("ann", "sales.orders", "sales.old")).code == errors_pb2.CODE_TABLE_NOT_FOUND
        assert (await ask("bob", "sales.orders", "private")).code == errors_pb2.CODE_TABLE_NOT_FOUND


@pytest.mark.slow
async def test_under_its_new_name_a_table_is_created_again_and_altered_as_any_other(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    uuid = await uuid_of(coordinator)
    await rename(coordinator, uuid, "renamed")
    await coordinator.until("renamed", state="owned")
    there = await coordinator.create("renamed", SCHEMA, exist_ok=True, **OPTIONS)
    assert (there.name, there.table_uuid) == ("renamed", uuid)
    added = pa.schema([("gate", pa.string())]).serialize().to_pybytes()
    altered = await MaintenanceServiceStub(coordinator.channel).Alter(api.AlterRequest(table="renamed", add=added))
    assert (altered.table.name, list(altered.added)) == ("renamed", ["gate: string"])
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name="renamed"))
    assert "gate" in pa.ipc.read_schema(pa.py_buffer(answer.table.schema)).names


async def test_d11_a_table_that_has_another_name_is_not_said_to_be_dropped(coordinator: Running) -> None:
    uuid = await uuid_of(coordinator)
    await rename(coordinator, uuid, "renamed")
    error = await refused(persist(lambda: drop(coordinator, uuid)))
    assert error.code == errors_pb2.CODE_TABLE_RENAMED
    assert await names(coordinator) == ["renamed"]


@pytest.mark.slow
async def test_d11_who_opens_the_new_name_ends_a_renaming_that_broke_off(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await writer.order(T, "attach")
        await writer.open(T, "c")
        await writer.commit(T, rows(("a", 1, "x")), "c", 1)
        catalog = Catalog(str(tmp_path), None, System.real())
        _begin(catalog, await uuid_of(coordinator))
        assert sorted(catalog.names()) == sorted([T, "renamed"])
        async with asyncio.timeout(30):
            while catalog.names() != ["renamed"]:
                await asyncio.sleep(0.05)
        await writer.order("renamed", "attach")
        assert (await writer.open("renamed", "c")).committed_offset == 1
        assert await names(coordinator) == ["renamed"]


async def test_d11_a_renaming_is_asked_for_again_after_one_that_broke_off(coordinator: Running, tmp_path: Path) -> None:
    """The new name is listed, and is this table's own."""
    uuid = await uuid_of(coordinator)
    _begin(Catalog(str(tmp_path), None, System.real()), uuid)
    await rename(coordinator, uuid, "renamed")
    assert await names(coordinator) == ["renamed"]


def _begin(catalog: Catalog, uuid: str) -> None:
    """Makes the new entry, and no more."""
    former = FormerTable(uuid, 1_001, DropRecord("20261125102030001", "ann"), "renamed")
    catalog._enter("renamed", "renamed", EntryRecord(T, "", T, former))
