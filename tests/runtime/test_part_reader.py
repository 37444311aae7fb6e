"""Requests of a stream that come in parts: joined within a budget, refused when they make no request."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.api.v1.parts_pb2 import Part
from headgate_proto.serialized import PART_BYTES
from headgate_runtime.errors import RpcError
from headgate_runtime.limits import MAX_MESSAGE_BYTES
from headgate_runtime.part_reader import PartReader
from headgate_runtime.read_budget import ReadBudget
from headgate_runtime.requests import RequestReader
from support.hand_clock import HandClock
from support.parts import messages_of, parts_of
from support.processes import READY_S

Message = ingest_pb2.AppendRequest
APPEND = "/headgate.api.v1.IngestService/Append"
FLUSH = Message(flush=ingest_pb2.Flush())


class Sender:
    """The context of a stream that brings these messages, then ends; or stays open for ever."""

    def __init__(self, messages: Iterable[Message], *, ends: bool = True) -> None:
        self._messages = iter(messages)
        self._ends = ends
        self.read_so_far = 0

    async def read(self) -> Any:
        if (message := next(self._messages, None)) is not None:
            self.read_so_far += 1
            return message
        if not self._ends:
            await asyncio.Event().wait()
        return grpc.aio.EOF


def batch(nbytes: int, offset: int = 1) -> Message:
    return Message(batch=ingest_pb2.Batch(offset=offset, rows=bytes(nbytes)))


def in_parts(request: Message) -> Iterator[Message]:
    for part in parts_of(request.SerializeToString()):
        yield Message(part=part)


def reader_of(sender: Sender, budget: ReadBudget | None = None, seconds: float = 3_600) -> PartReader[Message]:
    return PartReader(sender, RequestReader(HandClock()).of_method(APPEND), budget, "alice", seconds=seconds)


async def test_requests_whole_and_in_parts_come_as_they_were_sent() -> None:
    sent = [batch(10), batch(PART_BYTES), batch(PART_BYTES + 1), FLUSH, batch(8 << 20), batch(3, offset=9)]
    messages = [message for request in sent for message in messages_of(request)]
    assert max(message.ByteSize() for message in messages) < PART_BYTES + 64
    reader = reader_of(Sender(messages), ReadBudget(64 << 20, 1))
    assert [await reader.read() for _ in sent] == sent
    assert await reader.read() is None


async def test_the_second_part_is_read_when_there_is_room_for_all_of_them() -> None:
    budget = ReadBudget(4 << 20, 0.01)
    await budget.reserve("bob", 3 << 20)
    sender = Sender(in_parts(batch(1 << 20)))
    reading = asyncio.create_task(reader_of(sender, budget).read())
    await asyncio.sleep(0)
    while sender.read_so_far < 1:
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert (sender.read_so_far, reading.done()) == (1, False)
    budget.free("bob", 3 << 20)
    assert await reading == batch(1 << 20)


@pytest.mark.parametrize("by", ["release", "the next read"])
async def test_the_room_is_free_again_when_the_request_is_gone(by: str) -> None:
    budget = ReadBudget(8 << 20, 1)
    reader = reader_of(Sender([*in_parts(batch(1 << 20)), FLUSH]), budget)
    await reader.read()
    assert budget.used >= 2 << 20
    if by == "release":
        reader.release()
    else:
        await reader.read()
    assert budget.used == 0


def nested() -> Iterator[Message]:
    yield from in_parts(Message(part=Part(content=bytes(PART_BYTES + 1))))


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([Message(part=Part(content=b"x", request_bytes=1))], errors_pb2.CODE_INVALID_ARGUMENT),
        ([Message(part=Part(content=b"x"))], errors_pb2.CODE_INVALID_ARGUMENT),
        ([Message(part=Part(content=b"x", request_bytes=MAX_MESSAGE_BYTES + 1))], errors_pb2.CODE_TOO_LARGE),
        ([Message(part=Part(content=b"x", request_bytes=9)), FLUSH], errors_pb2.CODE_INVALID_ARGUMENT),
        ([Message(part=Part(content=b"x", request_bytes=9)), Message(part=Part())], errors_pb2.CODE_INVALID_ARGUMENT),
        ([Message(part=Part(content=b"x", request_bytes=9))], errors_pb2.CODE_INVALID_ARGUMENT),
        (
            [Message(part=Part(content=b"x", request_bytes=3)), Message(part=Part(content=b"xxx"))],
            errors_pb2.CODE_INVALID_ARGUMENT,
        ),
        (
            [Message(part=Part(content=b"\xff", request_bytes=2)), Message(part=Part(content=b"\xff"))],
            errors_pb2.CODE_INVALID_ARGUMENT,
        ),
        (list(nested()), errors_pb2.CODE_INVALID_ARGUMENT),
    ],
    ids=[
        "one alone",
        "no size",
        "too large",
        "another between",
        "an empty one",
        "the end between",
        "too many",
        "no request",
        "nested",
    ],
)
async def test_parts_that_make_no_request_are_refused(messages: list[Message], code: int) -> None:
    budget = ReadBudget(64 << 20, 1)
    reader = reader_of(Sender(messages), budget)
    with pytest.raises(RpcError) as refused:
        await reader.read()
    assert refused.value.error.code == code
    reader.release()
    assert budget.used == 0


@pytest.mark.slow
async def test_parts_that_come_too_slowly_are_given_up() -> None:
    sender = Sender(list(in_parts(batch(PART_BYTES + 1)))[:1], ends=False)
    with pytest.raises(RpcError) as refused:
        await asyncio.wait_for(reader_of(sender, ReadBudget(8 << 20, 1), seconds=-1.0).read(), READY_S)
    assert refused.value.error.action == errors_pb2.ACTION_RETRY
