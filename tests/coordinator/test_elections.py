"""Who owns a table: taking, serving, handing over, being deposed, quarantine; with real gRPC, Redis and tables."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog
from redis.asyncio import Redis

from headgate_coordinator.core.channels import MAX_INCARNATION
from headgate_coordinator.core.instructions import MOST_EPOCHS
from headgate_coordinator.leadership.elections import owner_rank
from headgate_coordinator.leadership.leases import Holder
from headgate_proto.api.v1 import errors_pb2, tables_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.errors import OutcomeUnknownError, SyncFailedError
from headgate_tables.hudi import OwnerProcess, Table, open_table
from headgate_tables.hudi.transaction import Transaction
from support.failing_syncs import fail_syncs
from support.redis_server import start_redis
from support.running_coordinator import Running, running_coordinator
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, by_hudi_rs, notes, rows

FLIGHTS = "flights"
OPTIONS = {"partition_by": ["part"], "ordering": "ts", "buckets": 2}


@pytest.fixture
async def client(redis: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(f"redis://{redis}/0", decode_responses=True) as client:
        yield client


async def lease_of(client: Redis, table: str) -> str:
    (key,) = [key async for key in client.scan_iter(f"*:lease:{table.encode().hex()}")]
    return str(key)


async def test_a_checkpoint_of_one_writer_is_read_by_hudi_rs(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        attach = await writer.order(FLIGHTS, "attach")
        assert attach.url == table.url
        assert attach.definition.table_uuid == table.table_uuid
        assert [member.process for member in attach.membership.members] == [writer.process]
        grant = await writer.open(FLIGHTS, "loader-1")
        assert (grant.incarnation, grant.committed_offset) == (1, 0)
        await writer.commit(FLIGHTS, rows(("a", 1, "x"), ("b", 1, "y")), "loader-1", 2)
        assert sorted(row["id"] for row in by_hudi_rs(table.url)) == ["a", "b"]
        status = await coordinator.status(FLIGHTS)
        assert (status.state, status.epoch, status.generation, status.channels) == ("owned", 1, 1, 1)
        assert status.checkpoint_files == len({row["_hoodie_file_name"] for row in by_hudi_rs(table.url)})
        assert status.last_commit_ms > 0
        assert status.checkpoint_bytes > 0


async def test_two_writers_commit_one_checkpoint_together(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis, checkpoint_interval=60.0) as coordinator,
        scripted_writer(coordinator.address, address="w:1") as one,
    ):
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await one.order(FLIGHTS, "attach")
        async with scripted_writer(coordinator.address, address="w:2") as other:
            assert len((await one.order(FLIGHTS, "barrier")).next.members) == 2
            await other.order(FLIGHTS, "attach")
            await one.open(FLIGHTS, "c1")
            await other.open(FLIGHTS, "c2")
            one.take(FLIGHTS, rows(("a", 1, "x"), part="p"), "c1", 1)
            await one.order(FLIGHTS, "instant")
            await other.commit(FLIGHTS, rows(("b", 1, "y"), part="q"), "c2", 1)
            await one.committed(FLIGHTS)
        reopened = open_table(table.url)
        assert notes(reopened) == {"a": "x", "b": "y"}
        assert {name: record[1] for name, record in reopened.channels.items()} == {"c1": 1, "c2": 1}
        assert len(reopened.commits()) == 1


@pytest.mark.slow
async def test_a_drained_coordinator_hands_its_tables_over_without_waiting_for_the_lease(tmp_path: Path, redis: str) -> None:
    async with (
        running_coordinator(tmp_path, redis, name="one", lease_ttl=600.0) as one,
        running_coordinator(tmp_path, redis, name="two", lease_ttl=600.0) as two,
    ):
        await one.create(FLIGHTS, SCHEMA, **OPTIONS)
        owner, heir = await _owner_and_heir(FLIGHTS, one, two)
        async with scripted_writer(owner.address) as before, scripted_writer(heir.address, address="w:2") as after:
            await before.order(FLIGHTS, "attach")
            await before.open(FLIGHTS, "c", principal="me")
            await before.commit(FLIGHTS, rows(("a", 1, "x")), "c", 5)
            before.take(FLIGHTS, rows(("b", 1, "y")), "c", 6)
            await owner.drain()
            await before.ended.wait()
            assert before.why == "the coordinator has ended"
            await after.order(FLIGHTS, "attach")
            assert after.pair(FLIGHTS)[0] == 2
            grant = await after.open(FLIGHTS, "c", principal="me")
            assert (grant.incarnation, grant.committed_offset) == (2, 6)


async def test_a_lease_that_another_holds_is_an_ownership_given_up(tmp_path: Path, redis: str, client: Redis) -> None:
    lease = Holder("other", "p", "other:1").encode()
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        await client.set(await lease_of(client, FLIGHTS), lease)
        await writer.order(FLIGHTS, "detach")
        status = await coordinator.until(FLIGHTS, state="elsewhere")
        assert status.owner == "other"
        writer.ask_open(FLIGHTS, "c")
        refused = await writer.order(FLIGHTS, "open_refused")
        assert (refused.error.code, refused.error.address) == (errors_pb2.CODE_NOT_OWNER, "other:1")
        assert await client.get(await lease_of(client, FLIGHTS)) == lease, "a lease of another was freed"


async def test_a_deposed_owner_stops_when_redis_names_the_other(tmp_path: Path, redis: str, client: Redis) -> None:
    async with (
        running_coordinator(tmp_path, redis, lease_renewal=200.0, lease_ttl=600.0) as coordinator,
        scripted_writer(coordinator.address) as writer,
    ):
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        await client.set(await lease_of(client, FLIGHTS), Holder("other", "p", "other:1").encode())
        other = open_table(table.url, owner=OwnerProcess("cluster", "h", 1, "other:1"))
        assert other.own() == 2
        writer.ask_open(FLIGHTS, "c")
        await writer.order(FLIGHTS, "detach")
        await coordinator.until(FLIGHTS, state="elsewhere")
        assert open_table(table.url).epoch == 2, "it fenced again"
        assert open_table(table.url).channels == {}


async def test_a_deposed_owner_whose_lease_is_its_own_opens_the_table_again(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        stranger = open_table(table.url, take_over=True)
        stranger.upsert(rows(("a", 1, "theirs")))
        stranger.close()
        writer.ask_open(FLIGHTS, "c")
        await writer.order(FLIGHTS, "detach")
        await writer.order(FLIGHTS, "attach")
        assert writer.pair(FLIGHTS)[0] == 3
        await writer.open(FLIGHTS, "c")
        await writer.commit(FLIGHTS, rows(("b", 1, "ours")), "c", 1)
        assert notes(open_table(table.url)) == {"a": "theirs", "b": "ours"}


async def test_an_owner_whose_lease_was_lost_asks_the_log_and_learns_that_another_has_fenced(
    tmp_path: Path, redis: str, client: Redis
) -> None:
    """Redis forgot who had the table in between: the lease is ours again, the epoch is not."""
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        other = open_table(table.url, owner=OwnerProcess("cluster", "h", 1, "other:1"))
        assert other.own() == 2
        await client.flushall()
        await writer.order(FLIGHTS, "attach")
        assert writer.pair(FLIGHTS)[0] == 3
        await writer.open(FLIGHTS, "c")
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        assert notes(open_table(table.url)) == {"a": "x"}


async def test_an_owner_that_gives_a_checkpoint_up_asks_the_log(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        assert open_table(table.url, owner=OwnerProcess("cluster", "h", 1, "other:1")).own() == 2
        writer.report(FLIGHTS, broken=wire.Broken(why="rows do not reach the others"))
        while writer.pair(FLIGHTS)[0] != 3:
            await writer.order(FLIGHTS, "attach")


async def test_an_owner_that_is_told_of_a_newer_epoch_asks_the_log(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        assert open_table(table.url, owner=OwnerProcess("cluster", "h", 1, "other:1")).own() == 2
        writer.report(FLIGHTS, newer_owner=wire.NewerOwner(epoch=2))
        await writer.order(FLIGHTS, "detach")
        await writer.order(FLIGHTS, "attach")
        assert writer.pair(FLIGHTS)[0] == 3


async def test_r6_an_owner_that_the_log_confirms_fences_again_above_the_epoch_that_a_writer_has_followed(
    tmp_path: Path, redis: str
) -> None:
    """The table's folder was put back from an older copy: its writers would ignore this owner for ever."""
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        for followed, epoch in ((7, 8), (8, None), (2**53, 8 + MOST_EPOCHS + 1)):
            writer.report(FLIGHTS, newer_owner=wire.NewerOwner(epoch=followed))
            if epoch is not None:
                await writer.order(FLIGHTS, "detach")
                await writer.order(FLIGHTS, "attach")
                assert writer.pair(FLIGHTS) == (epoch, 1)
        await writer.open(FLIGHTS, "c")
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        assert writer.pair(FLIGHTS) == (8 + MOST_EPOCHS + 1, 1)
        assert notes(open_table(table.url)) == {"a": "x"}


async def test_a_foreign_write_is_a_quarantine_until_somebody_has_acted(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        foreign = tmp_path / FLIGHTS / ".hoodie/timeline/20200101000000000.deltacommit.requested"
        foreign.touch()
        writer.report(FLIGHTS, ask_instant=wire.AskInstant(checkpoint=1))
        await writer.order(FLIGHTS, "detach")
        status = await coordinator.until(FLIGHTS, state="quarantined")
        assert status.alarms
        writer.ask_open(FLIGHTS, "c")
        refused = await writer.order(FLIGHTS, "open_refused")
        assert (refused.error.code, refused.error.action) == (errors_pb2.CODE_TABLE_QUARANTINED, errors_pb2.ACTION_GIVE_UP)
        foreign.unlink()
        await writer.order(FLIGHTS, "attach")
        await coordinator.until(FLIGHTS, state="owned")


async def test_a_quarantined_table_does_not_disturb_others(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        await coordinator.create("bad", SCHEMA, **OPTIONS)
        table = await coordinator.create("good", SCHEMA, **OPTIONS)
        await writer.order("bad", "attach")
        (tmp_path / "bad/.hoodie/timeline/20200101000000000.deltacommit.requested").touch()
        writer.report("bad", ask_instant=wire.AskInstant(checkpoint=1))
        await coordinator.until("bad", state="quarantined")
        await writer.order("good", "attach")
        await writer.open("good", "c")
        await writer.commit("good", rows(("a", 1, "x")), "c", 1)
        assert notes(open_table(table.url)) == {"a": "x"}


async def test_an_error_that_nobody_foresaw_ends_one_ownership_and_the_next_one_takes_rows(
    tmp_path: Path, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, failed = Table.transaction, []

    def fail_once(table: Table, *, tidy: bool = True) -> Transaction:
        if table.name == "bad" and not failed:
            failed.append(table.name)
            raise MemoryError("of one table")
        return begin(table, tidy=tidy)

    monkeypatch.setattr(Table, "transaction", fail_once)
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create("bad", SCHEMA, **OPTIONS)
        await coordinator.create("good", SCHEMA, **OPTIONS)
        await writer.order("bad", "attach")
        await writer.order("good", "attach")
        good = writer.pair("good")
        with structlog.testing.capture_logs() as logs:
            writer.report("bad", ask_instant=wire.AskInstant(checkpoint=1))
            await writer.order("bad", "detach")
            await writer.order("bad", "attach")
        warned = [log for log in logs if log["event"] == "table is not served"]
        assert [(log["table"], log["kind"]) for log in warned] == [("bad", "UnforeseenError")]
        assert "MemoryError: of one table" in warned[0]["error"]
        assert writer.pair("bad") == (2, 1)
        await writer.open("bad", "c")
        await writer.commit("bad", rows(("b", 1, "x")), "c", 1)
        assert notes(open_table(table.url)) == {"b": "x"}
        assert writer.pair("good") == good, "its ownership and generation went on"


async def test_an_incarnation_that_was_never_issued_ends_nothing(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        grant = await writer.open(FLIGHTS, "c")
        for channel in ("c", "new"):
            writer.ask_open(FLIGHTS, channel, incarnation=MAX_INCARNATION)
            refused = await writer.order(FLIGHTS, "open_refused")
            assert refused.error.code == errors_pb2.CODE_INVALID_ARGUMENT
        again = await writer.open(FLIGHTS, "c")
        assert (again.incarnation, writer.pair(FLIGHTS)) == (grant.incarnation + 1, (1, 1))
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        assert notes(open_table(table.url)) == {"a": "x"}


@pytest.mark.slow
async def test_without_redis_the_owner_goes_on_and_nothing_new_is_taken(tmp_path: Path) -> None:
    """Rule R4."""
    process = start_redis(tmp_path / "redis.log")
    async with (
        running_coordinator(tmp_path / "store", process.address, lease_ttl=1.0) as coordinator,
        scripted_writer(coordinator.address) as writer,
    ):
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        process.kill()
        while (await coordinator.tables.Status(tables_pb2.StatusRequest())).redis_reachable:
            await asyncio.sleep(0.02)
        await writer.open(FLIGHTS, "c")
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        assert notes(open_table(table.url)) == {"a": "x"}
        await coordinator.create("later", SCHEMA, **OPTIONS)
        await asyncio.sleep(1.0)  # several scans; nothing tells that nothing happens
        assert (await coordinator.status("later")).state == "unowned"
        again = start_redis(tmp_path / "redis.log", int(process.address.rpartition(":")[2]))
        await coordinator.until("later", state="owned")
        status = await coordinator.status(FLIGHTS)
        assert (status.state, status.epoch) == ("owned", 1)
        await coordinator.drain()
        again.kill()


async def test_flushall_costs_nothing(tmp_path: Path, redis: str, client: Redis) -> None:
    async with running_coordinator(tmp_path, redis) as coordinator, scripted_writer(coordinator.address) as writer:
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        await writer.open(FLIGHTS, "c")
        await client.flushall()
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        while not [key async for key in client.scan_iter("*:lease:*")]:
            await asyncio.sleep(0.02)
        await writer.commit(FLIGHTS, rows(("b", 1, "y")), "c", 2)
        assert notes(open_table(table.url)) == {"a": "x", "b": "y"}
        assert (await coordinator.status(FLIGHTS)).epoch == 1
        assert writer.waiting(FLIGHTS, "detach") == 0


async def test_a_failed_sync_ends_the_process(tmp_path: Path, redis: str) -> None:
    """Hazard H14."""

    def fails(step: str) -> None:
        if step == "incarnation_slot_sent":
            raise SyncFailedError("disk", fix="replace it")

    async with (
        running_coordinator(tmp_path, redis, reached=fails) as coordinator,
        scripted_writer(coordinator.address) as writer,
    ):
        await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        writer.ask_open(FLIGHTS, "c")
        failure = await coordinator.failed()
        assert isinstance(failure, BaseExceptionGroup)
        assert failure.subgroup(SyncFailedError) is not None
        await writer.ended.wait()


async def test_a_failed_sync_of_a_new_table_ends_the_process_too(
    tmp_path: Path, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard H14: asked again it would find its slot 0 there, and say that the table is made."""
    async with running_coordinator(tmp_path, redis) as coordinator:
        fail_syncs(monkeypatch, "/slot")
        creating = asyncio.ensure_future(coordinator.create(FLIGHTS, SCHEMA, **OPTIONS))
        failure = await coordinator.failed()
        assert isinstance(failure, BaseExceptionGroup)
        assert failure.subgroup(SyncFailedError) is not None
        await asyncio.wait([creating])
        assert creating.exception() is not None


async def test_after_an_unknown_outcome_the_table_is_opened_again(tmp_path: Path, redis: str) -> None:
    failed: list[str] = []

    def fails(step: str) -> None:
        if step == "slot_won" and not failed:
            failed.append(step)
            raise OutcomeUnknownError("no answer", fix="open again")

    async with (
        running_coordinator(tmp_path, redis, reached=fails) as coordinator,
        scripted_writer(coordinator.address) as writer,
    ):
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        await writer.open(FLIGHTS, "c")
        writer.take(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        await writer.order(FLIGHTS, "detach")
        await writer.order(FLIGHTS, "attach")
        assert writer.pair(FLIGHTS)[0] == 2
        grant = await writer.open(FLIGHTS, "c", incarnation=1)
        assert (grant.incarnation, grant.committed_offset) == (1, 1)
        assert notes(open_table(table.url)) == {"a": "x"}


async def test_named_steps_of_a_checkpoint_are_reached_in_their_order(tmp_path: Path, redis: str) -> None:
    steps: list[str] = []
    async with (
        running_coordinator(tmp_path, redis, reached=steps.append) as coordinator,
        scripted_writer(coordinator.address) as writer,
    ):
        await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        await writer.open(FLIGHTS, "c")
        await writer.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        steps = steps.copy()  # the writer leaves before the coordinator does, which has steps of its own
    opening = ["fence_sent", "fence_won", "derived_file", "incarnation_slot_sent", "incarnation_slot_won"]
    assert list(dict.fromkeys(steps[: steps.index("filling_begun")])) == opening
    rest = steps[steps.index("filling_begun") :]
    *upto_slot, one, other = dict.fromkeys(rest)
    assert upto_slot == [
        *("filling_begun", "barrier_sent", "first_barrier_in", "last_barrier_in", "all_statuses_in", "slot_sent", "slot_won"),
    ]
    assert {one, other} == {"derived_file", "acks_sent"}, "writers hear of the slot while it is published"


def test_ranks_spread_tables_and_move_few_when_one_joins() -> None:
    tables = [f"table-{number}" for number in range(300)]
    three = {"a", "b", "c"}
    first = {table: min(three, key=lambda name: owner_rank(table, name, three)) for table in tables}
    assert all(60 < count < 140 for count in Counter(first.values()).values())
    four = three | {"d"}
    second = {table: min(four, key=lambda name: owner_rank(table, name, four)) for table in tables}
    assert {second[table] for table in tables if first[table] != second[table]} == {"d"}
    assert sorted(owner_rank("t", name, four) for name in four) == [0, 1, 2, 3]


async def _owner_and_heir(table: str, *coordinators: Running) -> tuple[Running, Running]:
    """Waits until one of two owns the table."""
    while True:
        for owner, heir in (coordinators, coordinators[::-1]):
            if (await owner.status(table)).state == "owned":
                return owner, heir
        await asyncio.sleep(0.02)
