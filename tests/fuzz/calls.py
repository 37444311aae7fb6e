"""What there is to call, and calls with messages that nobody should send."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import grpc
import pyarrow as pa
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from fuzz.arrow import draw_batch, draw_schema
from fuzz.frames import draw_frame, draw_frame_batch
from fuzz.messages import Vocabulary, draw
from fuzz.targets import Target
from headgate_proto.api.v1 import ingest_pb2, tables_pb2
from headgate_proto.cluster.v1 import compaction_pb2, coordination_pb2, exchange_pb2
from support.arrow_batches import batch, rows_message, schema_message
from support.methods import METHODS

EXCHANGE, TAKEN, UNREADABLE, STRANGE = "Exchange", "a frame was taken", "a frame was unreadable", "a stranger's frame was refused"
TABLE = "noise"
"""The table that strangers may send rows to. The victim's has another name, which no drawn message says."""
_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "ts": pa.int64(), "note": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
ROWS = pa.RecordBatch.from_pydict({"id": ["a", "b"], "part": ["p", "p"], "ts": [1, 2], "note": ["x", None]}, SCHEMA)
VOCABULARY = Vocabulary(
    names=(TABLE, "c", "d", "id", "part", "ts", "note", "127.0.0.1:1", "p", "20200101000000000", "hoodie.keep.max.commits"),
    blobs=(schema_message(SCHEMA), rows_message(ROWS), rows_message(ROWS, "zstd"), schema_message(pa.schema([]))),
    makers={
        "schema": draw_schema,
        "rows": lambda random: draw_batch(random, ROWS),
        "batch": lambda random: draw_frame_batch(random, ROWS),
    },
)
_OF_SERVICES = [named for named in METHODS if (named[1].containing_service.file.package or "").startswith("headgate.cluster")]
LONGEST_S = 5.0
"""A call is given up after this; a stream that the other end keeps open is no mistake."""


class Caller:
    """One stranger with one token; ``random`` decides everything that it says.

    ``target``: where frames would be taken; None: the token is not a service's, and methods of services are called as others are.
    """

    def __init__(self, channels: dict[str, grpc.aio.Channel], token: str, random: Random, target: Target | None = None) -> None:
        self._channels = channels
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._random = random
        self._target = target or Target()
        self._methods = [*METHODS, *(_OF_SERVICES * 5 if target else ())]

    async def call_once(self) -> tuple[str, str]:
        """One call of any method. Returns its name and how it ended: a status, "open" when its time was over, or what became of a
        frame.
        """
        part, method = self._random.choice(self._methods)
        part = self._target.part if method.name == EXCHANGE else part
        says = self._messages(method)
        path = f"/{method.containing_service.full_name}/{method.name}"
        make: Any = (
            self._channels[part].stream_stream(path) if method.client_streaming else self._channels[part].unary_stream(path)
        )
        said = [each.SerializeToString() for each in says]
        call = make(_paced(said), metadata=self._metadata) if method.client_streaming else make(said[0], metadata=self._metadata)
        try:
            async with asyncio.timeout(LONGEST_S):
                answers = [answer async for answer in call]
                status = (await call.code()).name
                return method.name, _of_frames(answers) or status if method.name == EXCHANGE else status
        except grpc.aio.AioRpcError as failed:
            # grpcio hides the status of a call from whoever writes on it at the moment of its end.
            hidden = failed.details() == "Internal error from Core"
            return method.name, "ended while it was writing" if hidden else failed.code().name
        except TimeoutError:
            call.cancel()
            return method.name, "open"

    def _messages(self, method: MethodDescriptor) -> Sequence[Message]:
        """A stream mostly begins as it should, so that what follows is looked at."""
        if not method.client_streaming:
            drawn: Any = draw(method.input_type, self._random, VOCABULARY)
            if "table" in drawn.DESCRIPTOR.fields_by_name and self._random.random() < 0.7:
                drawn.table = TABLE  # what an operator asks of no table is refused before it is looked at
            return [self._nearly_right(drawn) if isinstance(drawn, tables_pb2.CreateTableRequest) else drawn]
        fewest = 0 if method.name == EXCHANGE else 1  # what follows a frame may end the stream before its answer is there
        most = self._random.choice((fewest, 12))
        rest = [draw(method.input_type, self._random, VOCABULARY) for _ in range(self._random.randint(fewest, most))]
        return [*self._opening(method.name), *rest] if self._random.random() < 0.8 else rest

    def _nearly_right(self, drawn: tables_pb2.CreateTableRequest) -> tables_pb2.CreateTableRequest:
        """Mostly a request that would succeed, but for one field, which comes from ``drawn``. Few names: nothing drops tables."""
        if self._random.random() < 0.3:
            return drawn
        right = tables_pb2.CreateTableRequest(
            name=f"t{self._random.randrange(3)}",
            schema=schema_message(SCHEMA),
            record_key=["id"],
            partition_by=["part"],
            ordering="ts",
            buckets=2,
            exist_ok=True,
        )
        wrong = self._random.choice([field for field in drawn.DESCRIPTOR.fields if field.name != "name"])
        right.ClearField(wrong.name)  # type: ignore[arg-type]
        for field in drawn.DESCRIPTOR.fields:
            if field.name != wrong.name:
                drawn.ClearField(field.name)  # type: ignore[arg-type]
        right.MergeFrom(drawn)
        return right

    def _opening(self, method: str) -> Sequence[Message]:
        process = f"{self._random.getrandbits(64):016x}"
        match method:
            case "Append":
                opening = ingest_pb2.OpenChannel(table=TABLE, channel=f"c{self._random.randrange(20)}")
                first = batch(ROWS)
                first.offset = 2
                sent = [ingest_pb2.AppendRequest(open=opening), ingest_pb2.AppendRequest(batch=first)]
                return sent[: self._random.randint(1, 2)]
            case "Control":
                return [coordination_pb2.ControlRequest(hello=coordination_pb2.Hello(process=process, address="127.0.0.1:1"))]
            case "Work":
                hello = compaction_pb2.CompactorHello(process=process, host="stranger")
                return [compaction_pb2.WorkRequest(hello=hello)]
            case _:
                frame = draw_frame(self._random, ROWS, self._target.checkpoint)
                # Frames of a process that has no part in the table are refused unread (rule EX7).
                name = self._target.stream(TABLE, process if self._random.random() < 0.3 else self._target.process)
                return [exchange_pb2.ExchangeRequest(name=name), exchange_pb2.ExchangeRequest(frame=frame)]


def _of_frames(answers: Sequence[bytes]) -> str:
    """What the answers of an exchange say about frames; "" nothing."""
    said = [exchange_pb2.ExchangeResponse.FromString(answer) for answer in answers]
    if any(each.credit.last_number for each in said):
        return TAKEN
    if any("has no part in checkpoint" in each.refused.why for each in said):
        return STRANGE
    return UNREADABLE if any(each.refused.why.startswith("a frame cannot be read") for each in said) else ""


async def _paced(messages: Sequence[bytes]) -> Any:
    """With a moment between them, so that answers come in between, and some behind the last, so that it is read."""
    for message in messages:
        yield message
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
