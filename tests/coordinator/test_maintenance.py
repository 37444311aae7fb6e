"""What operators ask of a table's owner: over real gRPC, with a real table, Redis and writers."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from headgate import aio
from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.errors import MissingFileError, OutcomeUnknownError, StoreDeniedError
from headgate_tables.hudi import Table, create_table, open_table
from headgate_tables.storage.local import LocalStore
from support.access import role, write_access
from support.processes import READY_S
from support.running_coordinator import OPTIONS, Running, T, refused, running_coordinator
from support.scripted_compactor import scripted_compactor
from support.scripted_writer import ScriptedWriter, scripted_writer
from support.tables import SCHEMA, notes, rows

COMMITS = "hoodie.compact.inline.max.delta.commits"


def owner(of: Running) -> Any:
    return MaintenanceServiceStub(of.channel)


async def settings(coordinator: Running, **change: Any) -> dict[str, str]:
    answer = await owner(coordinator).Configure(api.ConfigureRequest(table=T, **change))
    return {each.key: each.value for each in answer.settings}


async def compact(coordinator: Running) -> None:
    """All rows are in base files."""
    async with scripted_compactor(coordinator.address) as compactor:
        compactor.ready()
        progress = owner(coordinator).Compact(api.CompactRequest(table=T))
        await compactor.finish(await compactor.run())
        async for _ in progress:
            pass


async def saved(coordinator: Running, comment: str = "") -> str:
    answer = await owner(coordinator).Savepoint(api.SavepointRequest(table=T, comment=comment))
    return str(answer.instant)


async def test_settings_are_shown_changed_and_taken_back(coordinator: Running) -> None:
    answer = await owner(coordinator).Configure(api.ConfigureRequest(table=T))
    usual = {each.key: each.value for each in answer.settings}
    assert all(each.value == each.default and each.about for each in answer.settings)
    assert usual[COMMITS] != "7"
    assert await settings(coordinator, settings={COMMITS: "7"}) == usual | {COMMITS: "7"}
    assert open_table((await description(coordinator)).url).settings.compaction_commits == 7
    assert await settings(coordinator, unset=[COMMITS]) == usual


async def description(coordinator: Running) -> Any:
    return (await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T))).table


async def test_a_table_changes_its_version_while_its_writer_stays_and_the_next_description_says_it(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    assert (await description(coordinator)).table_version == 8
    await writer.open(T, "c")
    for offset, (wanted, before) in enumerate(((9, 8), (9, 9), (8, 9)), 1):
        answer = await owner(coordinator).ChangeVersion(api.ChangeVersionRequest(table=T, table_version=wanted))
        assert answer.before == before
        found = await description(coordinator)
        assert (found.table_version, open_table(found.url).format_version) == (wanted, wanted)
        await writer.commit(T, rows((f"at {wanted} from {before}", 1, "x")), "c", offset)
    assert sorted(notes(open_table(found.url))) == ["at 8 from 9", "at 9 from 8", "at 9 from 9"]
    error = await refused(owner(coordinator).ChangeVersion(api.ChangeVersionRequest(table=T, table_version=7)))
    assert (error.code, "8, 9" in error.fix) == (errors_pb2.CODE_INVALID_ARGUMENT, True)


@pytest.mark.parametrize("change", [{"no.such.key": "1"}, {COMMITS: "many"}, {"hoodie.keep.min.commits": "1"}])
async def test_settings_that_make_no_sense_change_nothing(change: dict[str, str], coordinator: Running) -> None:
    before = await settings(coordinator)
    error = await refused(owner(coordinator).Configure(api.ConfigureRequest(table=T, settings=change)))
    assert error.code == errors_pb2.CODE_INVALID_ARGUMENT
    assert next(iter(change)) in error.message
    assert await settings(coordinator) == before


@pytest.mark.slow
async def test_who_does_not_own_the_table_says_who_does(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis, name="one") as one, running_coordinator(tmp_path, redis, name="two") as two:
        await one.create(T, SCHEMA, **OPTIONS)
        async with asyncio.TaskGroup() as group:
            states = [group.create_task(known(each)) for each in (one, two)]
        holder, other = (one, two) if states[0].result() == "owned" else (two, one)
        for ask in (
            owner(other).Clean(api.CleanRequest(table=T)),
            owner(other).Restore(api.RestoreRequest(table=T, instant="1")),
            owner(other).Adopt(api.AdoptRequest(table=T)),
            owner(other).Compact(api.CompactRequest(table=T)).read(),
        ):
            error = await refused(ask)
            assert (error.code, error.address) == (errors_pb2.CODE_NOT_OWNER, holder.address)
        assert (await refused(owner(one).Clean(api.CleanRequest(table="none")))).code == errors_pb2.CODE_TABLE_NOT_FOUND


async def known(coordinator: Running) -> str:
    """The table's state, once this coordinator knows whose it is."""
    while (state := (await coordinator.status(T)).state) not in ("owned", "elsewhere"):
        await asyncio.sleep(0.02)
    return str(state)


async def test_only_operators_may_ask(tmp_path: Path, redis: str) -> None:
    tokens = {"ann-token": "ann", "bob-token": "bob"}
    access = write_access(tmp_path / "access.toml", tokens, role("ann", "operate"), role("bob", "write", "create"))
    guarded: dict[str, Any] = {"access": str(access), "cluster_token": "us"}
    async with running_coordinator(tmp_path / "store", redis, **guarded) as running:
        ask = api.ConfigureRequest(table=T)
        error = await refused(owner(running).Configure(ask, metadata=(("authorization", "Bearer bob-token"),)))
        assert error.code == errors_pb2.CODE_PERMISSION_DENIED
        assert "'bob' lacks the right `operate`" in error.message
        error = await refused(owner(running).Configure(ask, metadata=(("authorization", "Bearer ann-token"),)))
        assert error.code == errors_pb2.CODE_TABLE_NOT_FOUND


async def test_a_request_that_does_not_say_what_to_do_is_refused(coordinator: Running, writer: ScriptedWriter) -> None:
    for asked in (
        owner(coordinator).Savepoint(api.SavepointRequest(table=T)),
        owner(coordinator).Slice(api.SliceRequest(table=T)),
    ):
        error = await refused(asked)
        assert (error.code, error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, "the request does not say what to do")


async def test_a_savepoint_is_made_listed_and_removed(coordinator: Running, writer: ScriptedWriter) -> None:
    error = await refused(owner(coordinator).Savepoint(api.SavepointRequest(table=T, comment="")))
    assert (error.code, error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, "the table has no commit to save")
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    instant = await saved(coordinator, "before")
    assert instant == (await coordinator.status(T)).last_instant
    assert await saved(coordinator) == instant, "nothing was committed in between"
    listed = await owner(coordinator).Savepoint(api.SavepointRequest(table=T, list=True))
    assert (listed.instant, list(listed.savepoints)) == ("", [instant])
    removed = await owner(coordinator).Savepoint(api.SavepointRequest(table=T, remove=instant))
    assert (removed.instant, list(removed.savepoints)) == (instant, [])
    error = await refused(owner(coordinator).Savepoint(api.SavepointRequest(table=T, remove=instant)))
    assert error.code == errors_pb2.CODE_INVALID_ARGUMENT


async def test_ch8_a_restore_takes_rows_and_offsets_back_and_tells_why_channels_end(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    url = (await description(coordinator)).url
    grant = await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x"), ("b", 1, "y")), "c", 2)
    instant = await saved(coordinator)
    await writer.commit(T, rows(("a", 2, "later"), ("c", 1, "new")), "c", 4)
    await writer.open(T, "young")
    await writer.commit(T, rows(("d", 1, "new")), "young", 1)
    undone = [commit.instant for commit in open_table(url).commits() if commit.instant > instant]
    assert len(undone) == 2
    writer.take(T, rows(("e", 1, "uncommitted")), "c", 5)
    planned = await owner(coordinator).Restore(api.RestoreRequest(table=T, instant=instant, plan_only=True))
    assert (planned.instant, list(planned.undone)) == ("", undone)
    assert writer.waiting(T, "detach") == 0
    done = await owner(coordinator).Restore(api.RestoreRequest(table=T, instant=instant))
    assert (list(done.undone), done.files) == (undone, planned.files)
    detach = await writer.order(T, "detach")
    assert detach.error.code == errors_pb2.CODE_TABLE_RESTORED
    attach = await writer.order(T, "attach")
    assert (attach.restored, writer.pair(T)) == (done.instant, (2, 1))
    assert notes(open_table(url)) == {"a": "x", "b": "y"}
    again = await writer.open(T, "c", grant.incarnation)
    assert (again.incarnation, again.committed_offset) == (grant.incarnation, 2)
    assert (await writer.open(T, "young", 1)).committed_offset == 0
    await writer.commit(T, rows(("c", 2, "sent again")), "c", 3)
    assert notes(open_table(url)) == {"a": "x", "b": "y", "c": "sent again"}
    assert open_table(url).verify().ok


async def test_a_restore_of_which_nobody_knows_whether_it_is_done_has_no_error_that_asks_for_another(
    coordinator: Running, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = (await description(coordinator)).url
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    instant = await saved(coordinator)
    await writer.commit(T, rows(("a", 2, "later")), "c", 2)

    def refusing(_: LocalStore, paths: Iterable[str]) -> None:
        raise StoreDeniedError("deletes are denied", fix="Allow them.")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "delete", refusing)
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await owner(coordinator).Restore(api.RestoreRequest(table=T, instant=instant))
    assert failed.value.code() is grpc.StatusCode.UNKNOWN
    assert "headgate-error-bin" not in dict(failed.value.trailing_metadata() or ())
    assert (await writer.order(T, "detach")).error.code == errors_pb2.CODE_TABLE_RESTORED
    await writer.order(T, "attach")
    assert (await writer.open(T, "c", 1)).committed_offset == 1
    await writer.commit(T, rows(("b", 1, "y")), "c", 2)
    assert notes(open_table(url)) == {"a": "x", "b": "y"}


async def test_a_removed_savepoint_of_which_nobody_knows_has_no_error_that_says_it_is_there(
    coordinator: Running, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK lists before it sends a removal again whose outcome is unknown, and only then."""
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    instant = await saved(coordinator)

    def silent(_: Table, removed: str) -> None:
        raise OutcomeUnknownError("the store did not say whether the slot was won", fix="Look.")

    monkeypatch.setattr(Table, "remove_savepoint", silent)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await owner(coordinator).Savepoint(api.SavepointRequest(table=T, remove=instant))
    assert failed.value.code() is grpc.StatusCode.UNKNOWN
    assert "headgate-error-bin" not in dict(failed.value.trailing_metadata() or ())


async def test_a_restore_to_what_is_not_saved_ends_no_channel(coordinator: Running, writer: ScriptedWriter) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    instant = (await coordinator.status(T)).last_instant
    error = await refused(owner(coordinator).Restore(api.RestoreRequest(table=T, instant=instant)))
    assert (error.code, instant in error.message) == (errors_pb2.CODE_INVALID_ARGUMENT, True)
    await writer.commit(T, rows(("b", 1, "y")), "c", 2)
    assert (writer.waiting(T, "detach"), writer.pair(T)) == (0, (1, 1))


async def test_an_instant_that_somebody_deleted_is_named_by_reads_and_put_back_by_the_owner(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    url = (await description(coordinator)).url
    await writer.open(T, "c")
    for number, key in enumerate("abc", 1):
        await writer.commit(T, rows((key, number, "x")), "c", number)
    instant = open_table(url).commits()[1].instant
    files = sorted(Path(url.removeprefix("file://")).glob(f".hoodie/timeline/{instant}*"))
    for file in files:
        file.unlink()
    with pytest.raises(MissingFileError, match=f"{instant} is committed"):
        open_table(url).scan()
    await writer.commit(T, rows(("d", 4, "x")), "c", 4)
    answer = await owner(coordinator).Repair(api.RepairRequest(table=T))
    assert sorted(answer.files) == [f".hoodie/timeline/{file.name}" for file in files]
    assert notes(open_table(url)) == dict.fromkeys("abcd", "x")
    assert open_table(url).verify().ok
    assert not (await owner(coordinator).Repair(api.RepairRequest(table=T))).files


def foreign_write(tmp_path: Path) -> str:
    """Another program has begun to write and has not finished; returns its instant."""
    instant = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17]
    (tmp_path / T / f".hoodie/timeline/{instant}.deltacommit.requested").touch()
    return instant


@pytest.mark.slow
async def test_a_quarantined_table_takes_rows_again_once_it_is_adopted(
    tmp_path: Path, coordinator: Running, writer: ScriptedWriter
) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    foreign = foreign_write(tmp_path)
    writer.report(T, ask_instant=wire.AskInstant(checkpoint=writer.filling(T)))
    await writer.order(T, "detach")
    await coordinator.until(T, state="quarantined")
    error = await refused(owner(coordinator).Clean(api.CleanRequest(table=T)))
    assert error.code == errors_pb2.CODE_TABLE_QUARANTINED
    assert "headgate table adopt" in error.fix
    error = await refused(owner(coordinator).Adopt(api.AdoptRequest(table=T)))
    assert (error.code, foreign in error.message) == (errors_pb2.CODE_TABLE_QUARANTINED, True)
    await coordinator.until(T, state="quarantined")
    done = await owner(coordinator).Adopt(api.AdoptRequest(table=T, roll_back=True))
    assert list(done.rolled_back) == [foreign]
    await coordinator.until(T, state="owned")
    await writer.attached(T)
    assert (await writer.open(T, "c", 1)).committed_offset == 1
    await writer.commit(T, rows(("b", 1, "y")), "c", 2)
    assert notes(open_table((await description(coordinator)).url)) == {"a": "x", "b": "y"}


@pytest.mark.slow
async def test_a_metadata_table_of_another_program_is_dropped_only_on_request(
    tmp_path: Path, coordinator: Running, writer: ScriptedWriter
) -> None:
    await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    properties = tmp_path / T / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.table.metadata.partitions=files\n")
    writer.report(T, ask_instant=wire.AskInstant(checkpoint=writer.filling(T)))
    await writer.order(T, "detach")
    await coordinator.until(T, state="quarantined")
    error = await refused(owner(coordinator).Adopt(api.AdoptRequest(table=T)))
    assert "metadata table" in error.message
    await coordinator.until(T, state="quarantined")
    await owner(coordinator).Adopt(api.AdoptRequest(table=T, remove_metadata_table=True))
    await coordinator.until(T, state="owned")
    assert "metadata.partitions" not in properties.read_text()
    await writer.attached(T)
    assert (await writer.open(T, "c", 1)).committed_offset == 1


async def test_a_healthy_table_has_nothing_to_adopt_and_its_channels_open_again(
    coordinator: Running, writer: ScriptedWriter
) -> None:
    grant = await writer.open(T, "c")
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    writer.take(T, rows(("b", 1, "dropped")), "c", 2)
    await writer.order(T, "instant")
    await writer.order(T, "instant")
    done = await owner(coordinator).Adopt(api.AdoptRequest(table=T))
    assert done == api.AdoptResponse()
    assert (await writer.order(T, "detach")).error.code == errors_pb2.CODE_REWOUND
    await writer.order(T, "attach")
    assert (await writer.open(T, "c", grant.incarnation)).committed_offset == 1
    await writer.commit(T, rows(("b", 1, "sent again")), "c", 2)
    assert notes(open_table((await description(coordinator)).url)) == {"a": "x", "b": "sent again"}


@pytest.mark.parametrize("also", [{"buckets": 2}, {"roll_back": True}, {"remove_metadata_table": True}], ids=str)
async def test_times_in_the_future_are_accepted_alone(coordinator: Running, writer: ScriptedWriter, also: Any) -> None:
    await writer.open(T, "c")
    error = await refused(owner(coordinator).Adopt(api.AdoptRequest(table=T, future_times=True, **also)))
    assert error.code == errors_pb2.CODE_INVALID_ARGUMENT
    assert next(iter(also)) in error.message
    assert "alone" in error.fix
    assert await owner(coordinator).Adopt(api.AdoptRequest(table=T, future_times=True)) == api.AdoptResponse()


@pytest.mark.slow
async def test_a_table_without_an_entry_becomes_one_of_the_cluster(tmp_path: Path, redis: str) -> None:
    with create_table(f"{tmp_path}/old", SCHEMA, record_key="id", partition_by=["part"], ordering="ts", name="old") as old:
        old.upsert(rows(("a", 1, "x")))
    async with running_coordinator(tmp_path, redis) as coordinator:
        assert (await refused(owner(coordinator).Adopt(api.AdoptRequest(table="none")))).code == errors_pb2.CODE_TABLE_NOT_FOUND
        await owner(coordinator).Adopt(api.AdoptRequest(table="old"))
        await coordinator.until("old", state="owned")
        async with scripted_writer(coordinator.address) as writer:
            await writer.order("old", "attach")
            await writer.open("old", "c")
            await writer.commit("old", rows(("b", 1, "y")), "c", 1)
        assert notes(open_table(f"{tmp_path}/old")) == {"a": "x", "b": "y"}


@pytest.mark.slow
async def test_what_would_be_cleaned_and_archived_is_told_without_doing_it(coordinator: Running, writer: ScriptedWriter) -> None:
    await writer.open(T, "c")
    few = {"hoodie.keep.max.commits": "4", "hoodie.keep.min.commits": "2", "hoodie.clean.commits.retained": "1"}
    await settings(coordinator, settings={**few, "hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"})
    await writer.commit(T, rows(("a", 1, "x")), "c", 1)
    await compact(coordinator)  # what is in no base file yet is not archived
    for number in range(2, 7):
        await writer.commit(T, rows(("a", number, "x")), "c", number)
    planned = await owner(coordinator).Archive(api.ArchiveRequest(table=T, plan_only=True))
    assert planned.instants
    assert len(open_table((await description(coordinator)).url).commits()) == 7
    done = await owner(coordinator).Archive(api.ArchiveRequest(table=T))
    assert (list(done.instants), done.left) == (list(planned.instants), planned.left)
    cleaned = await owner(coordinator).Clean(api.CleanRequest(table=T, plan_only=True))
    assert (cleaned.instant, cleaned.files) == ("", 0)
    await writer.commit(T, rows(("a", 9, "y")), "c", 9)
    assert notes(open_table((await description(coordinator)).url)) == {"a": "y"}


async def test_a_plan_without_compactors_waits_and_is_told_of(coordinator: Running, writer: ScriptedWriter) -> None:
    await writer.open(T, "c")
    await settings(coordinator, settings={COMMITS: "100", "headgate.compaction.first.delta.commits": "100"})
    for number in (1, 2):
        await writer.commit(T, rows(("a", number, "x")), "c", number)
    told = [each async for each in owner(coordinator).Compact(api.CompactRequest(table=T, plan_only=True))]
    (planned,) = [each.planned for each in told]
    (operation,) = [each for plan in planned.plans for each in plan.operations]
    assert (planned.compactors, operation.log_files, operation.base_bytes) == (0, 2, 0)
    assert operation.log_bytes > 0
    call = owner(coordinator).Compact(api.CompactRequest(table=T))
    first, second = (await call.read()).planned, (await call.read()).progress
    (plan,) = first.plans
    assert (plan.instant != "", list(plan.operations)) == (True, [operation])
    assert (second.operations, second.finished, second.bytes) == (1, 0, operation.log_bytes)
    call.cancel()
    again = owner(coordinator).Compact(api.CompactRequest(table=T))
    assert [each.instant for each in (await again.read()).planned.plans] == [plan.instant], "it was planned twice"
    again.cancel()


@pytest.mark.slow
async def test_channels_are_listed_by_name_in_pages(tmp_path: Path, redis: str) -> None:
    names = [f"loader-{number:04}" for number in range(2_500)]
    now = round(datetime.now(UTC).timestamp() * 1000)
    async with running_coordinator(tmp_path, redis) as before:
        url = (await before.create(T, SCHEMA, **OPTIONS)).url
    with open_table(url, take_over=True) as table:  # it may have had time to own the table
        table.own()
        table.win_offsets({name: ChannelRecord(1, number, "me", now + number) for number, name in enumerate(reversed(names))})
    async with running_coordinator(tmp_path, redis) as running:
        await running.until(T, state="owned")
        first = await owner(running).ListChannels(api.ListChannelsRequest(table=T))
        assert ([each.name for each in first.channels], first.more) == (names[:1_000], True)
        full = await owner(running).ListChannels(api.ListChannelsRequest(table=T, after=names[1_499]))
        assert ([each.name for each in full.channels], full.more) == (names[1_500:], False)
        async with aio.connect(running.address, timeout=READY_S, wait=READY_S) as hg:
            found = await (await hg.table(T)).channels()
        error = await refused(owner(running).ListChannels(api.ListChannelsRequest(table="nothing")))
    assert [(each.name, each.committed_offset, each.principal) for each in found] == [
        (name, 2_499 - number, "me") for number, name in enumerate(names)
    ]
    assert [round(each.last_used.timestamp() * 1000) - now for each in found] == list(range(2_499, -1, -1))
    assert error.code == errors_pb2.CODE_TABLE_NOT_FOUND
