"""An unexpected error in one table of a writer: other tables go on, and that one comes back by itself (rule RO12)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.face.definition import Definition
from headgate_writer import bucket_side, pipeline, tables
from headgate_writer.failures import Failures
from headgate_writer.pipeline import Pipeline
from support.hand_clock import HandClock
from support.processes import READY_S
from support.producer import Producer
from support.running_writer import Cluster, cluster
from support.scripted_owner import OwnedTable
from support.tables import create, notes, rows

_WORK: dict[str, tuple[Any, str, Callable[..., Definition]]] = {
    "a flush": (bucket_side, "flush", lambda sink, definition, *_: definition),
    "routing": (pipeline, "_routed_parts", lambda batches, membership, definition, *_: definition),
    "an order": (Pipeline, "append_barrier", lambda self, *_: self._definition),
}
"""Where it is done, and whose it is, by its arguments."""


def plant(monkeypatch: pytest.MonkeyPatch, work: str, bad: Definition | None) -> None:
    """The next work of that kind for that table ends in an error; all other work is done."""
    module, name, of = _WORK[work]
    real, left = getattr(module, name), [KeyError("ts")]

    def fail(*arguments: Any, **named: Any) -> Any:
        if left and bad is not None and of(*arguments).table_uuid == bad.table_uuid:
            raise left.pop()
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, fail)


def _fail(*_: object) -> None:
    raise KeyError("x")


async def second_table(made: Cluster, folder: Path) -> tuple[Cluster, Producer]:
    """Another table of the same writer, and an open channel of it."""
    table = create(folder)
    assert table.definition is not None
    made.owner.tables.add("good")
    owned = OwnedTable("good", table.url, table.definition)
    owned.attach(made.links)
    good = Cluster(made.owner, table, owned, made.writers, made.links, made.clients)
    channel = good.producer()
    await channel.open("good", "c")
    await owned.grant(made.links[0])
    await channel.opened()
    return good, channel


async def _fail_at_a_checkpoint(made: Cluster, channel: Producer, number: int = 1) -> str:
    """Sends rows and ends their checkpoint; what the owner hears."""
    transaction = made.table.transaction()
    transaction.announce()
    made.owned.order(made.links[0], instant=wire.Instant(checkpoint=number, instant=transaction.instant))
    await channel.append(rows(("a", 1, "dropped"), ("b", 1, "dropped")))
    while True:
        answer = await channel.answer()
        if answer.WhichOneof("message") == "ended":
            break
        if answer.acks.received == 2:
            made.owned.barrier(made.links, number)
    assert answer.ended.error.code == errors_pb2.CODE_REWOUND
    broken: wire.Broken = await made.links[0].report("broken")
    transaction.rollback()
    assert broken.own_error, "nothing says that it has its cause elsewhere"
    return broken.why


@pytest.mark.parametrize("work", _WORK)
async def test_ro12_a_table_that_fails_is_dropped_and_the_next_generation_takes_its_rows_once_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    async with cluster(tmp_path / "bad") as made:
        good, other = await second_table(made, tmp_path / "good")
        plant(monkeypatch, work, made.table.definition)
        await other.append(rows(("g", 1, "x")))
        await other.acked(received=1)
        channel = await made.channel()
        why = await _fail_at_a_checkpoint(made, channel)
        assert "KeyError: 'ts'" in why
        assert "restart that writer" in why
        assert not made.links[0].count("flushed"), "nothing of what failed is reported"
        assert made.writers[0].tables.writer_of(made.owned.name) is None
        assert made.writers[0].tables.attached(), "the other table stands as before"

        await other.append(rows(("h", 1, "y")))
        await other.acked(received=2)
        assert await good.commit(1) == {"c": 2}
        assert notes(good.table) == {"g": "x", "h": "y"}

        made.owned.generation = 2
        made.owned.attach(made.links)
        await made.attached(1, 2)
        again = await made.channel(hold=2)
        await again.append(rows(("a", 1, "sent again"), ("b", 1, "sent again")))
        await again.acked(received=2)
        assert await made.commit(1) == {"c": 2}
        assert notes(made.table) == {"a": "sent again", "b": "sent again"}
    assert made.writers[0].budget.used == 0, "every byte of the dropped rows is given back"


@pytest.mark.slow
async def test_an_error_while_rows_are_routed_names_the_channels_whose_rows_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path) as made:
        plant(monkeypatch, "routing", made.table.definition)
        why = await _fail_at_a_checkpoint(made, await made.channel("loader-7"))
        assert "while rows of 'loader-7' were routed" in why


class PausedClock(HandClock):
    """Its sleeps are over at once, and written down."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class Owner:
    """A control stream to a coordinator; it hears the reports of tables."""

    reports: asyncio.Queue[wire.TableReport] = field(default_factory=asyncio.Queue)

    def send(self, message: wire.ControlRequest) -> None:
        self.reports.put_nowait(message.table)

    def next_request(self) -> int:
        raise AssertionError("no client asks")

    def send_heartbeat(self) -> None:
        raise AssertionError("no rows come")


async def test_a_table_that_fails_whenever_it_is_attached_is_reported_each_time_but_not_at_once() -> None:
    """Its owner attaches it anew at once: without a pause the two would do nothing else."""
    clock, owner = PausedClock(), Owner()
    async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
        failures = Failures(clock, group)
        for generation in range(1, 8):
            failures.report(owner, "t", (1, generation), KeyError("x"), paced=True)
            assert (await owner.reports.get()).generation == generation
        assert clock.slept == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
        failures.report(owner, "t", (1, 8), KeyError("x"), paced=False)
        assert owner.reports.get_nowait().generation == 8, "one that had clients is never late: they come to other writers"
        failures.report(owner, "other", (1, 1), KeyError("x"), paced=True)
        assert owner.reports.get_nowait().table == "other"
        clock.now += 61
        failures.report(owner, "t", (1, 9), KeyError("x"), paced=True)
        assert owner.reports.get_nowait().generation == 9


@pytest.mark.parametrize("place", [(Pipeline, "__init__"), (tables, "read_attach")], ids=["of its new part", "of its order"])
async def test_a_table_that_cannot_be_attached_is_reported_and_the_next_attachment_takes_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[object, str]
) -> None:
    async with cluster(tmp_path) as made:
        lost = await made.channel()
        with monkeypatch.context() as planted:
            planted.setattr(*place, _fail)
            made.owned.generation = 2
            made.owned.attach(made.links)
            assert "KeyError: 'x'" in (await made.links[0].report("broken")).why
        assert await lost.ended() == errors_pb2.CODE_REWOUND
        made.owned.generation = 3
        made.owned.attach(made.links)
        await made.attached(1, 3)
        channel = await made.channel(hold=2)
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        assert await made.commit(1) == {"c": 1}


@pytest.mark.parametrize("assignment", [[1] * 128, [0] * 127, []], ids=["of a member that is not there", "short", "empty"])
async def test_an_assignment_that_does_not_fit_the_members_drops_its_table_and_no_other(
    tmp_path: Path, assignment: list[int]
) -> None:
    async with cluster(tmp_path / "bad") as made:
        good, other = await second_table(made, tmp_path / "good")
        await made.attached(1, 1)
        member = wire.Member(process=made.links[0].process, address="x:1")
        following = wire.Membership(checkpoint=2, members=[member], assignment=assignment)
        made.owned.order(made.links[0], barrier=wire.Barrier(checkpoint=1, next=following))
        why = (await made.links[0].report("broken")).why
        assert f"the owner assigned {len(assignment)} key groups" in why
        await other.append(rows(("g", 1, "x")))
        await other.acked(received=1)
        assert await good.commit(1) == {"c": 1}
