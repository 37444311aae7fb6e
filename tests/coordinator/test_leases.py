"""Leases on a real Redis (rules R1, R3, R4)."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from headgate_coordinator.leadership import leases as leases_module
from headgate_coordinator.leadership import redis_access
from headgate_coordinator.leadership.leases import Holder, Leases
from headgate_coordinator.leadership.redis_access import open_redis
from support.cutting_proxy import cutting_proxy
from support.processes import READY_S
from support.redis_server import start_redis

TTL_S = 600.0
Make = Callable[..., Leases]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis of a busy machine is no silent one."""
    monkeypatch.setattr(redis_access, "ANSWER_S", READY_S)


@pytest.fixture
async def make(redis: str) -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        def leases(name: str, process: str = "1", address: str = "") -> Leases:
            made = Leases(open_redis(f"redis://{address or redis}/0"), "test", Holder(name, process, f"{name}:1"), ttl_s=TTL_S)
            stack.push_async_callback(made.close)
            return made

        yield leases


async def keys_of(client: Redis) -> list[str]:
    """But those that say how long Redis has had data."""
    return [key async for key in client.scan_iter("*") if not key.endswith((":known", ":new"))]


@pytest.fixture
async def client(redis: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(f"redis://{redis}/0", decode_responses=True) as client:
        yield client


async def test_a_free_lease_goes_to_the_first_who_asks(make: Make) -> None:
    one, other = make("one"), make("other")
    assert await one.take_lease("t")
    assert not await other.take_lease("t")
    assert await other.holders(["t", "free"]) == {"t": one.own, "free": None}


async def test_a_restarted_coordinator_takes_the_lease_of_its_name_at_once(make: Make) -> None:
    assert await make("one", "before").take_lease("t")
    after = make("one", "after")
    assert await after.take_lease("t")
    assert await after.holders(["t"]) == {"t": after.own}


async def test_the_earlier_process_of_a_name_sees_that_it_has_lost_its_lease(make: Make) -> None:
    before, after = make("one", "before"), make("one", "after")
    await before.take_lease("t")
    await after.take_lease("t")
    beat = await before.renew(["t"])
    assert beat is not None
    assert beat.lost == {"t": after.own}
    assert await after.holders(["t"]) == {"t": after.own}, "a renewal must not take the lease back"


async def test_a_beat_renews_leases_and_registration_but_not_those_of_others(make: Make, client: Redis) -> None:
    one, other = make("one"), make("other")
    await one.take_lease("t")
    await other.take_lease("u")
    await one.renew([])
    for key in await keys_of(client):
        await client.pexpire(key, 70_000)
    assert (await one.renew(["t"])) is not None
    left = {await client.get(key): await client.pttl(key) for key in await keys_of(client)}
    assert left.pop(other.own.encode()) <= 70_000
    assert set(left) == {one.own.encode()}
    assert all(ttl > 70_000 for ttl in left.values())


async def test_a_lease_runs_out_by_itself(make: Make, client: Redis) -> None:
    one = make("one")
    await one.take_lease("t")
    (key,) = [key async for key in client.scan_iter("*:lease:*")]
    assert 0 < await client.pttl(key) <= TTL_S * 1000
    await one.renew(["t"])
    assert 0 < await client.pttl(key) <= TTL_S * 1000, "also once it was renewed"


async def test_a_lease_that_was_an_earlier_processs_runs_out_by_itself_too(make: Make, client: Redis) -> None:
    await make("one", "before").take_lease("t")
    await make("one", "after").take_lease("t")
    (key,) = [key async for key in client.scan_iter("*:lease:*")]
    assert 0 < await client.pttl(key) <= TTL_S * 1000


async def test_who_loses_a_race_for_a_lease_says_no_and_nothing_bad_of_redis(
    make: Make, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes between our look and our write."""
    one, thief = make("one", "after"), Holder("thief", "1", "thief:1")
    await make("one", "before").take_lease("t")
    (key,) = [key async for key in client.scan_iter("*:lease:*")]
    execute = Pipeline.execute

    async def overtaken(pipe: Pipeline, *arguments: Any) -> Any:
        await client.set(key, thief.encode())
        return await execute(pipe, *arguments)

    await one.holders(["t"])
    monkeypatch.setattr(Pipeline, "execute", overtaken)
    assert not await one.take_lease("t")
    assert one.reachable
    assert await one.holders(["t"]) == {"t": thief}


async def test_after_flushall_the_next_beat_holds_everything_again(make: Make, client: Redis) -> None:
    one, other = make("one"), make("other")
    await one.take_lease("t")
    await one.renew(["t"])
    await client.flushall()
    beat = await one.renew(["t"])
    assert beat is not None
    assert (dict(beat.lost), list(beat.recreated), list(beat.coordinators)) == ({}, ["t"], [one.own])
    beat = await one.renew(["t"])
    assert beat is not None
    assert not beat.recreated
    assert not await other.take_lease("t")


async def test_a_lease_that_was_made_anew_is_doubted_also_when_redis_s_answer_was_lost(
    make: Make, client: Redis, redis: str
) -> None:
    """The next renewal finds the lease as its own: then nobody would ask the log who owns the table (rule R1)."""
    async with cutting_proxy(redis) as proxy:
        one = make("one", address=proxy.address)
        for table in ("t", "u"):
            await one.take_lease(table)
        await one.renew(["t", "u"])
        await client.flushall()
        proxy.cut_answer_to = b"EXEC"
        assert await one.renew(["t", "u"]) is None
        assert proxy.cuts == 1
        assert await make("other").holders(["t"]) == {"t": one.own}, "the transaction was done"
        await one.release_lease("u")
        await one.take_lease("u")
        beats = [await one.renew(["t", "u"]) for _ in range(2)]
    assert [beat and list(beat.recreated) for beat in beats] == [["t"], []]


async def test_who_was_faster_after_flushall_keeps_the_lease(make: Make, client: Redis) -> None:
    one, other = make("one"), make("other")
    await one.take_lease("t")
    await client.flushall()
    assert await other.take_lease("t")
    beat = await one.renew(["t"])
    assert beat is not None
    assert beat.lost == {"t": other.own}


async def test_every_coordinator_that_beats_is_found_until_it_leaves(make: Make) -> None:
    one, other = make("one"), make("other")
    await one.renew([])
    beat = await other.renew([])
    assert beat is not None
    assert list(beat.coordinators) == [one.own, other.own]
    await one.leave_registry()
    beat = await one.renew([], stands=False)
    assert beat is not None
    assert list(beat.coordinators) == [other.own]


async def test_that_redis_has_lost_its_data_is_noticed_by_whatever_asks_first(make: Make, client: Redis) -> None:
    one, other = make("one"), make("other")
    for leases in (one, other):
        await leases.renew([])
        await leases.holders(["t"])
        assert leases.data_losses == 0
    await client.flushall()
    await one.renew([])
    await one.holders(["t"])
    await other.holders(["t"])
    assert other.data_losses == 1
    await other.renew([])
    assert (one.data_losses, other.data_losses) == (1, 1)


async def test_redis_is_new_for_everybody_until_holders_had_time_to_take_leases_back(
    make: Make, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "NEW_MS", 300)
    one, other = make("one"), make("other")
    await one.holders(["t"])
    assert one.is_new, "nobody has written yet"
    await one.renew([])
    for leases in (one, other):
        await leases.holders(["t"])
        assert leases.is_new
    while other.is_new:
        await asyncio.sleep(0.02)
        await other.holders(["t"])
    assert await client.ttl(next(key for key in await client.keys() if key.endswith(":known"))) == -1
    late = make("late")
    await late.renew([])
    await late.holders(["t"])
    assert not late.is_new
    await client.flushall()
    await one.renew(["t"])
    await late.holders(["t"])
    assert late.is_new
    assert await late.holders(["t"]) == {"t": one.own}


async def test_only_the_holder_frees_a_lease(make: Make) -> None:
    one, other = make("one"), make("other")
    await one.take_lease("t")
    await other.release_lease("t")
    assert await one.holders(["t"]) == {"t": one.own}
    await one.release_lease("t")
    assert await one.holders(["t"]) == {"t": None}


async def test_that_a_lease_was_freed_and_not_lost_is_known_for_one_leases_length(make: Make, client: Redis) -> None:
    one, other = make("one"), make("other")
    for table in ("t", "u", "v"):
        await one.take_lease(table)
    await one.release_lease("t")
    await other.release_lease("u")
    assert await other.freed(["t", "u", "v"]) == {"t"}
    assert await other.freed([]) == set()
    [note] = [key async for key in client.scan_iter("*:freed:*")]
    assert 0 < await client.pttl(note) <= TTL_S * 1000
    await client.flushall()
    assert await other.freed(["t"]) == set()


async def test_what_a_beat_renews_while_it_is_freed_is_freed(make: Make, client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who drains would keep its tables, and its place in the order of who stands, until they run out."""
    one = make("one")
    await one.take_lease("t")
    await one.renew(["t"])
    looked = Pipeline.get
    renewals = iter((True, True, False, True, False))

    async def get(pipe: Pipeline, key: str) -> str:
        value: str = await looked(pipe, key)
        if next(renewals):
            await client.set(key, value, px=5000)
        return value

    monkeypatch.setattr(Pipeline, "get", get)
    await one.release_lease("t")
    await one.leave_registry()
    assert [key for key in await keys_of(client) if ":freed:" not in key] == []


async def test_a_beat_that_began_before_a_lease_was_freed_takes_nothing_back(make: Make, client: Redis) -> None:
    one = make("one")
    await one.take_lease("t")
    await one.renew(["t"])
    await one.release_lease("t")
    await one.leave_registry()
    beat = await one.renew(["t"])
    assert beat is not None
    assert (beat.lost, beat.recreated) == ({}, [])
    assert [key for key in await keys_of(client) if ":freed:" not in key] == []
    await one.take_lease("t")
    await one.renew(["t"])
    assert await one.holders(["t"]) == {"t": one.own}


@pytest.mark.parametrize("leaves", [False, True])
async def test_what_is_given_up_on_a_connection_that_breaks_is_given_up(
    leaves: bool, make: Make, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody says it again, so a lease would stay until it runs out, and a coordinator that left would go on to rank first."""
    one = make("one")
    await one.take_lease("t")
    await one.renew(["t"])
    looked = Pipeline.get
    breaks = iter((True,))

    async def get(pipe: Pipeline, key: str) -> str:
        if next(breaks, False):
            raise ConnectionError("Connection closed by server.")
        value: str = await looked(pipe, key)
        return value

    monkeypatch.setattr(Pipeline, "get", get)
    await (one.leave_registry() if leaves else one.release_lease("t"))
    left = [key.rpartition(":")[0].rpartition(":")[2] for key in await keys_of(client)]
    assert sorted(left) == (["lease"] if leaves else ["coordinator", "freed"])


async def test_clusters_of_one_redis_do_not_see_each_other(make: Make, redis: str) -> None:
    await make("one").take_lease("t")
    stranger = Leases(open_redis(f"redis://{redis}/0"), "another", Holder("x", "1", "x:1"), ttl_s=TTL_S)
    assert await stranger.take_lease("t")
    await stranger.close()


async def test_no_name_of_a_user_is_in_a_key(make: Make, client: Redis) -> None:
    one = make("one")
    await one.take_lease("t{1}:\n*")
    await one.renew(["t{1}:\n*"])
    keys = await keys_of(client)
    assert {key.rpartition(":")[2] for key in keys} == {b"t{1}:\n*".hex(), b"one".hex()}


async def test_a_redis_that_is_gone_is_a_state_and_not_an_error(make: Make, tmp_path: Path) -> None:
    process = start_redis(tmp_path / "redis.log")
    leases = make("one", address=process.address)
    assert await leases.take_lease("t")
    assert leases.reachable
    process.kill()
    assert await leases.renew(["t"]) is None
    assert await leases.holders(["t"]) is None
    assert not await leases.take_lease("u")
    await leases.release_lease("t")
    assert not leases.reachable
    assert leases.last_error
    again = start_redis(tmp_path / "redis.log", int(process.address.rpartition(":")[2]))
    assert await leases.renew(["t"]) is not None
    assert leases.reachable
    again.kill()


@pytest.mark.slow
async def test_a_redis_that_hangs_is_not_waited_for(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_access, "ANSWER_S", 1.0)
    process = start_redis(tmp_path / "redis.log")
    leases = make("one", address=process.address)
    while not await leases.take_lease("t"):
        pass
    process.pause()
    assert await leases.renew(["t"]) is None
    assert not leases.reachable
    process.resume()
    while await leases.renew(["t"]) is None:
        pass
    while (holders := await leases.holders(["t"])) is None:
        pass
    assert holders == {"t": leases.own}
    process.kill()


async def test_a_redis_that_evicts_keys_is_complained_about(make: Make, client: Redis) -> None:
    leases = make("one")
    assert await leases.setup_problem() is None
    await client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        problem = await leases.setup_problem()
    finally:
        await client.config_set("maxmemory-policy", "noeviction")
    assert problem is not None
    assert "noeviction" in problem


async def test_a_cancelled_question_ends_as_cancelled(make: Make) -> None:
    """redis-py 8.1 swallows a third of them: a table was taken again by a coordinator that had drained."""
    leases = make("one")
    caught, tries = 0, itertools.count()
    while caught < 150:
        asking = asyncio.ensure_future(leases.holders(["t"]))
        for _ in range(next(tries) % 12):
            await asyncio.sleep(0)
        if asking.cancel():
            with pytest.raises(asyncio.CancelledError):
                await asking
            caught += 1
    assert await leases.holders(["t"]) == {"t": None}, "an answer went to another question"


async def test_no_lua_is_needed(make: Make, client: Redis) -> None:
    await client.config_resetstat()
    one = make("one")
    await one.take_lease("t")
    await one.renew(["t"])
    await one.release_lease("t")
    used = set(await client.info("commandstats"))
    assert not {name for name in used if "eval" in name or "script" in name}
    assert {"cmdstat_watch", "cmdstat_multi"} <= used
