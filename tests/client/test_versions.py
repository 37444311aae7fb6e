"""A server more than one version away is refused by the SDK, and the error says which to upgrade."""

import pytest

import headgate
from headgate import aio
from headgate_proto.handshake import PROTOCOL, VERSION
from support.scripted_service import Cluster
from support.scripted_table import SCHEMA, ids, rows


@pytest.mark.parametrize(("version", "upgraded"), [(VERSION + 2, "this SDK"), (VERSION - 2, "the server at")])
async def test_a_call_ends_at_once_with_an_error_that_names_the_older_side(version: int, upgraded: str, cluster: Cluster) -> None:
    cluster.greeting = ((PROTOCOL, str(version)),)
    async with aio.connect(cluster.coordinator) as hg:
        with pytest.raises(headgate.VersionError, match=f"Upgrade {upgraded}"):
            await hg.status()
    assert len(cluster.calls) == 1


async def test_a_channel_ends_with_it_too(cluster: Cluster) -> None:
    async with aio.connect(cluster.coordinator) as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        cluster.listed = list(cluster.writers)
        async with table.channel("before") as channel:
            await channel.upsert(rows(0, 1))
        writers = await hg.coordinators.find_writers()
        assert writers
        cluster.greeting = ((PROTOCOL, str(VERSION + 2)),)
        with pytest.raises(headgate.VersionError):
            await table.channel("c").open()
    assert ids(cluster) == [0]


@pytest.mark.parametrize("version", [VERSION - 1, VERSION, VERSION + 1])
async def test_versions_one_apart_go_together(version: int, cluster: Cluster) -> None:
    cluster.greeting = ((PROTOCOL, str(version)),)
    async with aio.connect(cluster.coordinator) as hg:
        table = await hg.create_table("t", SCHEMA, key="id")
        async with table.channel("c") as channel:
            await channel.upsert(rows(0, 1))
    assert {call[PROTOCOL] for call in cluster.calls} == {str(VERSION)}
    assert ids(cluster) == [0]
