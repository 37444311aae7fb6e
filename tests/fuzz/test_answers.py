"""What the other end of a stream may answer, drawn from its descriptor: its handler takes it, or raises what it declares."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, TypeVar, cast

import pyarrow as pa
from google.protobuf.message import Message

from fuzz.messages import Vocabulary, draw
from headgate.encoding import Encoder
from headgate.errors import HeadgateError
from headgate.shared_channel import SharedChannel
from headgate.stream import Stream
from headgate_compactor.attempt_pool import AttemptPool
from headgate_compactor.runner import AttemptRunner
from headgate_compactor.work_streams import WorkHandler
from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.cluster.v1 import compaction_pb2, coordination_pb2, exchange_pb2
from headgate_proto.ranges import OutOfRangeError, check_ranges
from headgate_runtime.definitions import definition_message
from headgate_runtime.errors import UnknownMessageError
from headgate_runtime.settings import load_settings
from headgate_runtime.world import SystemClock, World
from headgate_tables.system import SystemIds
from headgate_writer.attached import Member
from headgate_writer.buffers import MemoryBudget
from headgate_writer.control import ControlHandler
from headgate_writer.exchange_stream import ExchangeStream
from headgate_writer.settings import WriterSettings
from headgate_writer.table_writer import WriterResources
from headgate_writer.tables import Tables
from headgate_writer.windows import ExchangeError
from support.arrow_batches import schema_message
from support.exchange_peers import SETTINGS
from support.processes import READY_S
from support.row_formats import FORMAT
from support.tables import SCHEMA, create


class _Direct:
    """Of a transport, what a stream asks at its beginning."""

    front = ""


_ROW = pa.record_batch({"id": ["a"]})
SEEDS = 400
"""Of each kind; the same in every run."""
_T = TypeVar("_T", bound=Message)


class Peer:
    """The end of a control or work stream that is here; ``heard`` is what a coordinator would hear."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.requests = 0

    def send(self, message: Message) -> None:
        self.heard.append(message)

    def next_request(self) -> int:
        self.requests += 1
        return self.requests

    def send_heartbeat(self) -> None: ...

    def welcome(self, interval_s: float) -> None:
        assert interval_s > 0

    def release(self) -> None: ...


def drawn(kind: type[_T], names: tuple[str, ...]) -> Iterator[tuple[Random, _T]]:
    """Answers within the ranges of the contract: what is outside of them, streams refuse before their handlers see it."""
    words = Vocabulary(names, (schema_message(SCHEMA),), {})
    for seed in range(SEEDS):
        random = Random(seed)
        message = draw(cast(Any, kind.DESCRIPTOR), random, words)
        assert isinstance(message, kind)
        try:
            check_ranges(message)
        except OutOfRangeError:
            continue
        yield random, message


async def test_whatever_a_coordinator_orders_a_writer_takes_it_or_ends_the_stream_or_drops_the_one_table(tmp_path: Path) -> None:
    table = create(tmp_path)
    assert table.definition is not None
    definition, groups = definition_message(table.definition), table.definition.key_groups
    budget, outcomes, peer = MemoryBudget(1 << 30, 1 << 30), Counter[str](), Peer()
    with ThreadPoolExecutor(1) as threads:
        settings = load_settings(WriterSettings, ["--coordinator", "127.0.0.1:1"], prog="writer", about="A writer.")
        parts = WriterResources("me", settings, SystemIds(), World.real(), budget, budget, threads, threads)
        async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
            tables = Tables(parts, str(tmp_path), {}, group)
            handler = ControlHandler(coordination_pb2.Hello(process="me"), tables, World.real())
            generation = 0
            for random, answer in drawn(coordination_pb2.ControlResponse, ("t", "me", "c", table.url)):
                if tables.writer_of("t") is None:
                    generation += 1
                    members = [coordination_pb2.Member(process="me", address="me:1")]
                    membership = coordination_pb2.Membership(checkpoint=1, members=members, assignment=[0] * groups)
                    attach = coordination_pb2.Attach(membership=membership, url=table.url, definition=definition)
                    order = coordination_pb2.TableOrder(table="t", epoch=1, generation=generation, attach=attach)
                    handler.receive(peer, coordination_pb2.ControlResponse(table=order))  # type: ignore[arg-type]
                if answer.WhichOneof("message") == "table" and random.random() < 0.8:
                    answer.table.table, answer.table.epoch, answer.table.generation = "t", 1, generation
                    if answer.table.WhichOneof("message") == "attach":
                        generation += 1
                        answer.table.generation = generation
                        answer.table.attach.url = table.url
                        if random.random() < 0.7:
                            answer.table.attach.definition.CopyFrom(definition)
                try:
                    handler.receive(peer, answer)  # type: ignore[arg-type]
                    outcomes["taken"] += 1
                except UnknownMessageError:
                    outcomes["refused"] += 1
                await asyncio.sleep(0)
            tables.close()
    broken = [message.table.broken.why for message in peer.heard if message.table.WhichOneof("message") == "broken"]
    failed = [why for why in broken if "it dropped the table" in why]
    assert [why for why in failed if not why.startswith("WrongOrderError")] == []
    assert failed
    assert min(outcomes["taken"], outcomes["refused"]) > 10


async def test_whatever_a_coordinator_hands_out_a_compactor_answers_it_or_ends_the_stream(tmp_path: Path) -> None:
    table = create(tmp_path)
    peer, outcomes = Peer(), Counter[str]()
    with ThreadPoolExecutor(2) as threads:
        async with asyncio.timeout(READY_S), asyncio.TaskGroup() as group:
            runner = AttemptRunner("me", {}, SystemIds(), str(tmp_path))
            pool = AttemptPool(2, runner.run, threads, group, World.real())
            handler = WorkHandler(compaction_pb2.CompactorHello(process="me"), pool)
            handler.connected(peer)  # type: ignore[arg-type]
            for random, answer in drawn(compaction_pb2.WorkResponse, ("t", "p", "20200101000000000", table.url)):
                if answer.WhichOneof("message") == "run" and table.definition is not None and random.random() < 0.7:
                    answer.run.url = table.url
                    answer.run.definition.CopyFrom(definition_message(table.definition))
                for _ in range(random.choice((1, 2))):
                    try:
                        handler.receive(peer, answer)  # type: ignore[arg-type]
                        outcomes[answer.WhichOneof("message") or ""] += 1
                    except UnknownMessageError:
                        outcomes["refused"] += 1
                if random.random() < 0.5:
                    await pool.finish(READY_S)
            await pool.finish(READY_S)
    heard = Counter(message.WhichOneof("message") for message in peer.heard)
    assert heard["failed"] + heard["returned"] + heard["finished"] == outcomes["run"], "each order has one answer"
    assert heard["failed"]
    assert outcomes["refused"]


async def test_whatever_a_receiver_answers_a_sender_of_rows_takes_it_or_breaks_the_checkpoint() -> None:
    outcomes = Counter[str]()
    for random, answer in drawn(exchange_pb2.ExchangeResponse, ("x",)):
        budget = MemoryBudget(1 << 30, 1 << 30)
        name = exchange_pb2.StreamName(table="t", epoch=1, generation=1, sender="me", receiver="x")
        stream = ExchangeStream(Member("x", "x:1"), name, SETTINGS, SystemClock(), budget, lambda _: None)
        for _ in range(random.randrange(4)):
            await stream.send_frames(1, [exchange_pb2.Rows(batch=b"x" * 10)], lambda: None)
        try:
            stream._receive(answer)
            outcomes["taken"] += 1
        except ExchangeError:
            outcomes["refused"] += 1
        stream.close()
        assert budget.used == 0
    assert min(outcomes.values()) > 10


async def test_whatever_a_writer_answers_the_sdk_takes_it_or_ends_the_channel_with_its_own_error() -> None:
    outcomes = Counter[str]()
    for random, answer in drawn(ingest_pb2.AppendResponse, ("t", "c")):
        channel = SharedChannel("t", "c", Encoder(), 1 << 20)
        stream = Stream(channel, "w:1", cast(Any, None), cast(Any, _Direct()), SystemClock())
        if random.random() < 0.7:
            channel.state.stream_opened(1, 0, 0, "")
            for _ in range(random.randrange(4)):
                (encoded,) = channel.encoder.encode([_ROW])
                channel.state.append_rows(FORMAT, encoded)
                channel.state.next_message()
        try:
            outcomes["taken" if stream._apply(answer) is None else "ended"] += 1
        except HeadgateError as error:
            outcomes[type(error).__name__] += 1
    assert outcomes["taken"] > 10
    assert outcomes["ended"] > 10
    assert outcomes["ProtocolViolationError"] > 10
