"""What no call can mean is refused with the name of the argument, before anything is sent; a channel goes on behind it."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import headgate
from headgate import aio
from headgate.arguments import checked_integer, setting_texts
from support.processes import READY_S
from support.scripted_service import Cluster, cluster_in_thread
from support.scripted_table import SCHEMA, ids, table_of

WRONG_CHANNEL_CALLS: dict[str, Callable[[Any], Any]] = {
    "offset=1.5": lambda channel: channel.upsert({"id": 9, "note": "n"}, offset=1.5),
    "offset='1'": lambda channel: channel.delete([{"id": 9, "note": "n"}] * 2, offset="1"),
    "offset=True": lambda channel: channel.write({"op": "upsert", "id": 9}, offset=True),
    "offset=nan": lambda channel: channel.skip(float("nan")),
    "offset='2'": lambda channel: channel.wait("2"),
    "'nonsense' is no level": lambda channel: channel.flush("nonsense"),
    "'count' is no level": lambda channel: channel.wait(1, "count"),
    r"\['durable'\] is no level": lambda channel: channel.flush(["durable"]),
    "timeout='1'": lambda channel: channel.flush(timeout="1"),
    "timeout=nan": lambda channel: channel.wait(1, timeout=float("nan")),
}
WRONG_CALLS: dict[str, Callable[[aio.Headgate], Any]] = {
    "name=5": lambda hg: hg.table(5),  # type: ignore[arg-type]
    "name=None": lambda hg: hg.undrop_table(None),  # type: ignore[arg-type]
    "half a surrogate pair": lambda hg: hg.table("\udcff"),
    "table=5": lambda hg: hg.status(5),  # type: ignore[arg-type]
    "key=5": lambda hg: hg.create_table("t", SCHEMA, key=5),  # type: ignore[arg-type]
    "partition_by=5": lambda hg: hg.create_table("t", SCHEMA, key="id", partition_by=["note", 5]),  # type: ignore[list-item]
    "ordering=5": lambda hg: hg.create_table("t", SCHEMA, key="id", ordering=5),  # type: ignore[arg-type]
    "buckets='4'": lambda hg: hg.create_table("t", SCHEMA, key="id", buckets="4"),  # type: ignore[arg-type]
    "table_version=8.5": lambda hg: hg.create_table("t", SCHEMA, key="id", table_version=8.5),  # type: ignore[arg-type]
}
WRONG_TABLE_CALLS: dict[str, Callable[[Any], Any]] = {
    "'x' is no mapping of settings": lambda table: table.configure("x"),
    "hoodie.x=None": lambda table: table.configure({"hoodie.x": None}),
    "hoodie.x=Decimal": lambda table: table.configure({"hoodie.x": Decimal(1)}),
    "a setting's name=5": lambda table: table.configure({5: "x"}),
    "unset=5": lambda table: table.configure(unset=5),
    "partitions=5": lambda table: table.truncate(5),
    "nullable=5": lambda table: table.alter(nullable=5),
    "instant=5": lambda table: table.restore(5),
    "comment=5": lambda table: table.savepoint(5),
    "to=5": lambda table: table.rename(5),
    "prefix=5": lambda table: table.channels(5),
}


@pytest.mark.parametrize("wrong", WRONG_CHANNEL_CALLS)
async def test_a_channel_refuses_what_it_cannot_mean_and_goes_on(wrong: str, cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert({"id": 1, "note": "n"})
        with pytest.raises(headgate.InvalidArgumentError, match=wrong) as refused:
            await WRONG_CHANNEL_CALLS[wrong](channel)
        assert refused.value.fix
        assert (await channel.upsert({"id": 2, "note": "n"})).offset == 2
        await channel.flush()
    assert ids(cluster) == [1, 2]


@pytest.mark.parametrize("wrong", WRONG_CHANNEL_CALLS)
def test_a_blocking_channel_refuses_the_same_and_goes_on(wrong: str) -> None:
    with cluster_in_thread() as cluster, headgate.connect(cluster.coordinator, timeout=READY_S) as hg:
        with hg.create_table("t", SCHEMA, key="id").channel("c") as channel:
            channel.upsert({"id": 1, "note": "n"})
            with pytest.raises(headgate.InvalidArgumentError, match=wrong):
                WRONG_CHANNEL_CALLS[wrong](channel)
            assert channel.upsert({"id": 2, "note": "n"}).offset == 2
        assert ids(cluster) == [1, 2]


@pytest.mark.parametrize("wrong", WRONG_CALLS)
async def test_a_connection_refuses_an_argument_of_a_wrong_type_by_its_name(wrong: str, cluster: Cluster) -> None:
    async with aio.connect(cluster.coordinator) as hg:
        with pytest.raises(headgate.InvalidArgumentError, match=wrong):
            await WRONG_CALLS[wrong](hg)


@pytest.mark.parametrize("wrong", WRONG_TABLE_CALLS)
async def test_a_table_refuses_an_argument_of_a_wrong_type_by_its_name(wrong: str, cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        with pytest.raises(headgate.InvalidArgumentError, match=wrong):
            await WRONG_TABLE_CALLS[wrong](table)


async def test_a_channels_name_is_text(cluster: Cluster) -> None:
    name: Any = 5
    async with table_of(cluster) as table:
        with pytest.raises(headgate.InvalidArgumentError, match="name=5 is no text"):
            table.channel(name)


@pytest.mark.parametrize(
    ("options", "says"), [({"address": 5}, "address=5"), ({"timeout": "1"}, "timeout='1'"), ({"wait": None}, "wait=")]
)
def test_a_connection_is_not_made_with_an_argument_of_a_wrong_type(options: dict[str, Any], says: str) -> None:
    with pytest.raises(headgate.InvalidArgumentError, match=says):
        headgate.connect(**{"address": "localhost:7070", **options})


def test_numbers_and_bools_are_settings_as_their_texts() -> None:
    given = {"a": 20, "b": 0.75, "c": True, "d": False, "e": "add", "f": np.float64(0.5)}
    assert setting_texts(given) == {"a": "20", "b": "0.75", "c": "true", "d": "false", "e": "add", "f": "0.5"}


def test_integers_of_numpy_are_integers() -> None:
    found = checked_integer(np.int64(7), "offset")
    assert (found, type(found)) == (7, int)
