"""A writer and its owners: registration, orders of another time, loss, draining (rules RO2, RO7, RO8, RO9)."""

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from support.running_writer import TABLE, cluster
from support.scripted_owner import scripted_owner
from support.tables import notes, rows


async def test_a_writer_says_who_and_where_it_is(tmp_path: Path) -> None:
    async with cluster(tmp_path, writers=2) as made:
        assert [link.address for link in made.links] == [writer.address for writer in made.writers]
        assert len({link.process for link in made.links}) == 2


async def test_the_first_rows_of_an_idle_table_are_told_at_once_and_forgotten_once_committed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        assert await made.links[0].loaded(TABLE) > 0
        assert made.links[0].lags == {TABLE: {"c": 1}}
        await made.commit(1)
        while TABLE in await made.links[0].heartbeats.get():
            pass
        assert made.links[0].lags == {}


async def test_a_newer_generation_drops_what_is_uncommitted_and_rewinds_the_clients(tmp_path: Path) -> None:
    """Rules RO2 and RO4: the rows come again under another instant, once."""
    async with cluster(tmp_path) as made:
        lost = await made.channel()
        await lost.append(rows(("a", 1, "dropped"), ("b", 1, "dropped")))
        await lost.acked(received=2)
        made.owned.generation = 2
        made.owned.attach(made.links)
        assert await lost.ended() == errors_pb2.CODE_REWOUND
        again = await made.channel(hold=2)
        await again.append(rows(("a", 1, "sent again")))
        await again.acked(received=1)
        assert await made.commit(1) == {"c": 1}
        assert notes(made.table) == {"a": "sent again"}


async def test_orders_of_an_older_generation_change_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        made.owned.generation = 2
        made.owned.attach(made.links)
        await made.attached(1, 2)  # an open that meets generation 1 ends with it
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        made.owned.generation = 1
        made.owned.attach(made.links, 7)
        made.owned.barrier(made.links, 1)
        made.owned.order(made.links[0], detach=wire.Detach())
        made.owned.generation = 2
        assert await made.commit(1) == {"c": 1}
        assert made.links[0].count("barrier_passed") == 0


async def test_a_new_table_of_a_forgotten_ones_name_is_attached_though_its_epochs_begin_anew(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        made.owned.epoch = 5
        made.owned.attach(made.links)
        await made.attached(5)
        made.owned.order(made.links[0], detach=wire.Detach())
        made.owned.definition = replace(made.owned.definition, table_uuid=UUID(int=1))
        made.owned.epoch = 1
        made.owned.attach(made.links)
        await made.attached(1)
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        assert made.links[0].count("newer_owner") == 0, "the new table's owner would fence it again for nothing"


@pytest.mark.parametrize("about", ["a table", "nothing"])
async def test_an_order_that_the_writer_does_not_know_ends_the_stream_and_what_was_attached_on_it(
    tmp_path: Path, about: str
) -> None:
    """To pass it over could lose rows; the owner gives the checkpoint up, and its alarm says that the writer was lost."""
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        if about == "nothing":
            made.links[0].orders.put_nowait(wire.ControlResponse())
        else:
            made.owned.order(made.links[0])
        assert await channel.ended() == errors_pb2.CODE_REWOUND
        await made.links[0].gone.wait()
        again = await made.owner.writer()
        assert again.process == made.links[0].process


async def test_a_lost_owner_rewinds_its_clients_and_is_found_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel, opening = await made.channel(), made.producer()
        await opening.open(TABLE, "opening")
        await made.links[0].report("open")
        made.links[0].cut()
        assert await channel.ended() == errors_pb2.CODE_REWOUND
        assert await opening.ended() == errors_pb2.CODE_UNAVAILABLE
        again = await made.owner.writer()
        assert again.process == made.links[0].process
        made.links[0] = again
        made.owned.generation = 2
        made.owned.attach(made.links)
        await made.channel(hold=2)


@pytest.mark.slow
async def test_a_table_that_a_newer_owner_has_outlives_the_older_one(tmp_path: Path) -> None:
    """While a table changes hands two coordinators may think that they own it."""
    async with scripted_owner() as newer, cluster(tmp_path) as made:
        made.owner.others.append(newer.address)
        older, link = made.links[0], await newer.writer()
        made.owned.epoch, made.links[0] = 2, link
        made.owned.attach(made.links)
        await made.attached(2)
        channel = await made.channel()
        older.cut()
        await made.owner.writer()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        assert await made.commit(1) == {"c": 1}


@pytest.mark.slow
async def test_an_owner_whose_place_another_has_taken_is_told_so_at_once_and_at_each_of_its_orders(tmp_path: Path) -> None:
    async with scripted_owner() as newer, cluster(tmp_path) as made:
        made.owner.others.append(newer.address)
        older, link = made.links[0], await newer.writer()
        made.owned.epoch = 2
        made.owned.attach([link])
        assert (await older.report("newer_owner")).epoch == 2
        made.owned.epoch = 1
        made.owned.attach([older])
        made.owned.barrier([older], 1)
        assert [(await older.report("newer_owner")).epoch for _ in range(2)] == [2, 2]
        made.owned.order(older, detach=wire.Detach())
        made.owned.barrier([older], 2)
        await older.report("newer_owner")
        assert older.count("newer_owner") == 0, "who lets go is told nothing"
        assert link.count("newer_owner") == 0


async def test_a_leaving_writer_moves_its_clients_and_commits_what_it_took(tmp_path: Path) -> None:
    async with cluster(tmp_path, writers=2) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "taken before")))
        await channel.acked(received=1)
        leaving = asyncio.ensure_future(made.writers[0].leave())
        assert await channel.ended() == errors_pb2.CODE_MOVED
        await made.links[0].left.wait()
        assert (await made.links[0].report("channel_ended")).uncommitted
        late = made.producer()
        await late.open(TABLE, "late")
        assert await late.ended() == errors_pb2.CODE_MOVED
        assert await made.commit(1, following=made.links[1:]) == {"c": 1}
        assert not leaving.done()
        made.owned.order(made.links[0], detach=wire.Detach())
        made.links[0].release()
        await leaving
        assert notes(made.table) == {"a": "taken before"}


@pytest.mark.slow
async def test_a_writer_that_is_not_in_the_next_plan_takes_no_more_rows(tmp_path: Path) -> None:
    async with cluster(tmp_path, writers=2) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        assert await made.commit(1, following=made.links[1:]) == {"c": 1}
        assert await channel.ended() == errors_pb2.CODE_MOVED
        late = made.producer()
        await late.open(TABLE, "late")
        assert await late.ended() == errors_pb2.CODE_MOVED


async def test_a_writer_whose_coordinators_do_not_let_it_go_stops_all_the_same(tmp_path: Path) -> None:
    async with cluster(tmp_path, drain_timeout=0.1) as made:
        await made.writers[0].leave()
        await made.links[0].left.wait()
