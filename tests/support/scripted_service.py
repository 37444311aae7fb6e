"""A cluster in one object, over real gRPC: coordinator and writers that behave as the protos say, and misbehave when told to.

Rows are kept decoded, in the order of their commit, so that a test can compare them with what it sent. ``Knobs`` break streams,
lose answers, hold checkpoints back and lie. Used where a real cluster could not be made to fail at that place.
"""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import grpc
import pyarrow as pa
from grpc import aio

from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2, ingest_pb2_grpc, tables_pb2, tables_pb2_grpc
from headgate_proto.api.v1.maintenance_pb2_grpc import add_MaintenanceServiceServicer_to_server as add_maintenance
from headgate_proto.api.v1.tables_pb2_grpc import add_TableServiceServicer_to_server as add_tables
from headgate_runtime.part_reader import PartReader
from support.scripted_knobs import Answer, Knobs, Row
from support.scripted_maintenance import ScriptedMaintenance

Tls = grpc.ServerCredentials | Callable[[], grpc.ServerCredentials]
"""Of all servers, or made for each, as those that read files again have to be."""


def error(code: "err.Code.ValueType", message: str = "scripted", *, address: str = "", retry_after_ms: int = 0) -> err.Error:
    """An error whose action follows from its code's range, as services make them."""
    for least, action in ((40, err.ACTION_GIVE_UP), (20, err.ACTION_FIX_CALL), (10, err.ACTION_RESUME), (1, err.ACTION_RETRY)):
        if code >= least:
            fix = "Do what the test wants."
            return err.Error(code=code, action=action, message=message, fix=fix, address=address, retry_after_ms=retry_after_ms)
    raise ValueError(code)


@dataclass
class Channel:
    """What is durable of a channel, and its present stream."""

    incarnation: int = 0
    committed: int = 0
    stream: object = None


@dataclass
class Stored:
    """A table: its description, its channels, its committed rows in order, and the batches of which they came.

    ``log`` holds channel, offset, operation and rows of each. ``restored`` names the newest restore.
    """

    description: tables_pb2.TableDescription
    channels: dict[str, Channel] = field(default_factory=lambda: defaultdict(Channel))
    rows: list[Row] = field(default_factory=list)
    log: list[tuple[str, int, int, list[Row]]] = field(default_factory=list)
    restored: str = ""


class Cluster:
    """One coordinator and as many writers as asked for, all in this process and over one set of tables."""

    def __init__(self, credentials: Tls | None = None) -> None:
        self.knobs = Knobs()
        self.tables: dict[str, Stored] = {}
        self.writers: list[str] = []
        self.listed: list[str] | None = None
        self.coordinator = ""
        self.opens: list[tuple[str, str, int]] = []
        """Every open that came in: writer, channel, incarnation."""
        self.batches: list[ingest_pb2.Batch] = []
        """Every batch that came in, also those sent again."""
        self.flushes = 0
        self.created: list[tables_pb2.CreateTableRequest] = []
        self.unreadable: list[str] = []
        self.listings = 0
        self.others: list[tuple[str, str]] = []  # names and addresses of coordinators besides the one
        self.greeting: tuple[tuple[str, str], ...] = ()  # initial metadata of every answer
        self.calls: list[dict[str, Any]] = []  # the metadata of each
        self.certificates: list[str] = []  # the common name of that which each call came with; "" for none
        self._servers: list[aio.Server] = []
        self._credentials = credentials

    async def start(self, writers: int = 1) -> None:
        def add(server: aio.Server, _: list[str]) -> None:
            add_tables(Tables(self), server)
            add_maintenance(ScriptedMaintenance(lambda table: self.tables[table].description), server)  # type: ignore[abstract]

        self.coordinator = await self.serve(add)
        for _ in range(writers):
            await self.add_writer()

    async def add_writer(self) -> str:
        address = await self.serve(lambda server, at: _add_ingest(self, server, at))
        self.writers.append(address)
        return address

    def restore(self, table: str, channel: str, offset: int, rows: int) -> None:
        """An operator takes the table back to its first ``rows`` rows (rule CH8)."""
        stored = self.tables[table]
        stored.channels[channel].committed = offset
        stored.channels[channel].stream = "restored"
        stored.restored = f"restored to {rows} rows"
        del stored.rows[rows:]

    async def stop_writer(self, address: str) -> None:
        """As a kill: its streams break, it is listed no more."""
        await self._servers[1 + self.writers.index(address)].stop(None)
        self.listed = [writer for writer in (self.listed or self.writers) if writer != address]

    async def stop(self) -> None:
        for server in self._servers:
            await server.stop(None)

    async def serve(self, add: Callable[[aio.Server, "list[str]"], None]) -> str:
        server = aio.server(
            options=[
                ("grpc.max_receive_message_length", 8 * 1024 * 1024),
                ("grpc.max_concurrent_streams", 64),
                ("grpc.so_reuseport", 0),
                # As our servers: left to itself gRPC ends a connection after five pings, which would end a silence for the SDK.
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        at = [""]
        add(server, at)
        if self._credentials is None:
            at[0] = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        else:
            credentials = self._credentials() if callable(self._credentials) else self._credentials
            at[0] = f"localhost:{server.add_secure_port('127.0.0.1:0', credentials)}"
        await server.start()
        self._servers.append(server)
        return at[0]

    async def authorize(self, context: aio.ServicerContext[Any, Any]) -> None:
        metadata = dict(context.invocation_metadata() or ())
        self.calls.append(metadata)
        self.certificates.append(b"".join(context.auth_context().get("x509_common_name", ())).decode())
        if self.greeting:
            await context.send_initial_metadata(self.greeting)
        if self.knobs.token is not None and metadata.get("authorization") != f"Bearer {self.knobs.token}":
            await abort(context, error(err.CODE_UNAUTHENTICATED, "no such token"), grpc.StatusCode.UNAUTHENTICATED)


async def abort(context: aio.ServicerContext[Any, Any], why: err.Error, status: grpc.StatusCode) -> None:
    await context.abort(status, why.message, trailing_metadata=(("headgate-error-bin", why.SerializeToString()),))


class Tables(tables_pb2_grpc.TableServiceServicer):
    """``TableService`` over the cluster's tables."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def _fail(self, context: Any, *, before: bool) -> None:
        if before:
            await self.cluster.authorize(context)
        script = self.cluster.knobs.unary
        if script and isinstance(script[0], err.Error) is before:
            why = script.pop(0)
            if isinstance(why, err.Error):
                await abort(context, why, grpc.StatusCode.FAILED_PRECONDITION)
            else:
                await context.abort(why, "scripted")

    async def CreateTable(self, request: tables_pb2.CreateTableRequest, context: Any) -> Any:
        await self._fail(context, before=True)
        self.cluster.created.append(request)
        if request.name in self.cluster.tables and not request.exist_ok:
            await abort(context, error(err.CODE_TABLE_EXISTS, f"table {request.name} exists"), grpc.StatusCode.ALREADY_EXISTS)
        description = tables_pb2.TableDescription(
            name=request.name,
            schema=request.schema,
            record_key=request.record_key,
            partition_by=request.partition_by,
            ordering=request.ordering,
            buckets=request.buckets or 8,
            hive_style=request.hive_style,
            table_version=request.table_version or 8,
            url=f"memory://{request.name}",
            table_uuid="00000000-0000-0000-0000-000000000000",
            evolution=self.cluster.knobs.evolution,
        )
        self.cluster.tables.setdefault(request.name, Stored(description))
        await self._fail(context, before=False)
        return tables_pb2.CreateTableResponse(table=self.cluster.tables[request.name].description)

    async def DescribeTable(self, request: tables_pb2.DescribeTableRequest, context: Any) -> Any:
        await self._fail(context, before=True)
        if request.name not in self.cluster.tables:
            await abort(context, error(err.CODE_TABLE_NOT_FOUND, f"no table {request.name}"), grpc.StatusCode.NOT_FOUND)
        return tables_pb2.DescribeTableResponse(table=self.cluster.tables[request.name].description)

    async def ListTables(self, request: tables_pb2.ListTablesRequest, context: Any) -> Any:
        await self._fail(context, before=True)
        self.cluster.listings += 1
        return tables_pb2.ListTablesResponse(
            tables=[self.cluster.tables[name].description for name in sorted(self.cluster.tables)],
            unreadable=self.cluster.unreadable,
        )

    async def FindWriters(self, request: tables_pb2.FindWritersRequest, context: Any) -> Any:
        await self.cluster.authorize(context)
        return tables_pb2.FindWritersResponse(
            addresses=self.cluster.writers if self.cluster.listed is None else self.cluster.listed
        )

    async def Status(self, request: tables_pb2.StatusRequest, context: Any) -> Any:
        await self._fail(context, before=True)
        return tables_pb2.StatusResponse(
            coordinator="one",
            coordinators=[
                tables_pb2.CoordinatorStatus(name=name, address=address)
                for name, address in (("one", self.cluster.coordinator), *self.cluster.others)
            ],
            writers=[tables_pb2.WriterStatus(process="p", address=writer) for writer in self.cluster.writers],
            tables=[tables_pb2.TableStatus(name=name, state="owned", alarms=["all is well"]) for name in self.cluster.tables],
            redis_reachable=True,
        )


def _add_ingest(cluster: Cluster, server: aio.Server, at: list[str]) -> None:
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(Ingest(cluster, at), server)


class StreamEndError(Exception):
    """The stream ends here, with this answer or (None) by an abort."""

    def __init__(self, why: err.Error | None) -> None:
        super().__init__(why)
        self.why = why


class Ingest(ingest_pb2_grpc.IngestServiceServicer):
    """``IngestService`` of one writer. Each accepted batch is a checkpoint of its own, unless checkpoints are held back."""

    def __init__(self, cluster: Cluster, address: list[str]) -> None:
        self.cluster = cluster
        self.address = address

    async def Append(self, request_iterator: Any, context: Any) -> AsyncIterator[Answer]:
        if self.cluster.knobs.mute:
            self.cluster.knobs.mute -= 1
            await asyncio.Event().wait()
        await self.cluster.authorize(context)
        requests = PartReader(context, ingest_pb2.AppendRequest.FromString, None, "")
        try:
            if (first := await requests.read()) is None:
                return
            stream = self._open(first.open)
            yield stream.opened()
            while (request := await requests.read()) is not None:
                if self.cluster.knobs.hang and request.HasField("batch"):
                    self.cluster.knobs.hang -= 1
                    await asyncio.Event().wait()
                for answer in stream.answers(request):
                    yield answer
        except StreamEndError as end:
            if end.why is None:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "scripted break")
                raise AssertionError("abort raises") from end
            yield Answer(ended=ingest_pb2.Ended(error=end.why) if end.why.code else ingest_pb2.Ended())

    def _open(self, asked: ingest_pb2.OpenChannel) -> "Stream":
        knobs = self.cluster.knobs
        self.cluster.opens.append((self.address[0], asked.channel, asked.incarnation))
        if knobs.refuse_open:
            raise StreamEndError(knobs.refuse_open.pop(0))
        if asked.table not in self.cluster.tables:
            raise StreamEndError(error(err.CODE_TABLE_NOT_FOUND))
        table = self.cluster.tables[asked.table]
        channel = table.channels[asked.channel]
        if asked.incarnation == 0:
            channel.incarnation += 1
        elif asked.incarnation != channel.incarnation:
            raise StreamEndError(error(err.CODE_CHANNEL_TAKEN_OVER, "a newer producer has this channel"))
        if knobs.lose_opened:
            knobs.lose_opened -= 1
            raise StreamEndError(None)
        return Stream(self.cluster, table, asked.channel, channel)


class Stream:
    """One stream: checks cut and order as rule CH1 and CH2 say, decodes, commits."""

    def __init__(self, cluster: Cluster, table: Stored, name: str, channel: Channel) -> None:
        channel.stream = self  # an older stream of the channel is over (rule CH3)
        self.cluster, self.table, self.name, self.channel = cluster, table, name, channel
        self.incarnation = channel.incarnation
        self.accepted = channel.committed
        self.failed = False
        self.schema: pa.Schema | None = None
        self.taken = 0
        self.pending: list[tuple[str, int, int, list[Row]]] = []
        self.break_after = cluster.knobs.break_after.pop(0) if cluster.knobs.break_after else None

    def opened(self) -> Answer:
        lies = self.cluster.knobs.opened
        if lies:
            return Answer(opened=lies.pop(0))
        return Answer(
            opened=ingest_pb2.Opened(
                incarnation=self.incarnation,
                committed_offset=self.channel.committed,
                table=self.table.description,
                max_in_flight_bytes=self.cluster.knobs.max_in_flight_bytes,
                restored=self.table.restored,
            )
        )

    def answers(self, request: ingest_pb2.AppendRequest) -> Iterator[Answer]:
        if self.channel.stream == "restored":
            raise StreamEndError(error(err.CODE_TABLE_RESTORED))
        if self.channel.stream is not self:
            raise StreamEndError(
                error(err.CODE_CHANNEL_TAKEN_OVER if self.channel.incarnation != self.incarnation else err.CODE_REWOUND)
            )
        match request.WhichOneof("message"):
            case "batch":
                yield from self._batch(request.batch)
            case "skip":
                assert request.skip.after == self.accepted, f"a gap or overlap: {request.skip} at {self.accepted}"
                if request.skip.offset > self.accepted:
                    self.accepted = request.skip.offset
                    self.pending.append((self.name, self.accepted, 0, []))
                self.failed = False
                yield from self._commit()
            case "flush":
                self.cluster.flushes += 1
                yield from self._commit()
            case "close":
                yield from self._commit()
                raise StreamEndError(err.Error())
            case "open" | "part" | None:
                raise AssertionError("a client says no such thing on an open stream")

    def _batch(self, batch: ingest_pb2.Batch) -> Iterator[Answer]:
        knobs = self.cluster.knobs
        self.cluster.batches.append(batch)
        if knobs.answers:
            yield knobs.answers.pop(0)
            return
        why = self._judge(batch)
        if why is not None:
            refused = ingest_pb2.Refused(offset=batch.offset, accepted=self.accepted, error=why)
            if why.code == err.CODE_SLICE_SET_ASIDE:
                refused.rows = self._at_fault(batch)
            yield Answer(refused=refused)
            return
        self.taken += 1
        if self.break_after is not None and self.taken > self.break_after:
            if knobs.commit_before_break:
                list(self._commit())
            raise StreamEndError(None)
        yield from self._commit() if self.taken % knobs.commit_every == 0 else [self._acks()]
        if knobs.ended:
            raise StreamEndError(knobs.ended.pop(0))

    def _judge(self, batch: ingest_pb2.Batch) -> err.Error | None:
        """Takes the batch, or says why not."""
        if batch.schema:
            self.schema = pa.ipc.read_schema(pa.py_buffer(batch.schema))
        if batch.offset <= self.accepted:
            return None
        if batch.after != self.accepted:
            if self.failed:
                return error(err.CODE_AFTER_FAILED_BATCH)
            return error(err.CODE_OFFSET_OVERLAP if batch.after < self.accepted else err.CODE_OFFSET_GAP)
        if self.schema is None:
            return error(err.CODE_CORRUPT_BATCH, "no schema yet")
        if self.cluster.knobs.stopped is not None:
            self.failed = True
            return self.cluster.knobs.stopped
        rows = pa.ipc.read_record_batch(pa.py_buffer(batch.rows), self.schema).to_pylist()
        for row in rows:
            code = self.cluster.knobs.refuse(row)
            if code is not None:
                self.failed = True
                return error(code, f"{row} is refused")
        self.failed = False
        self.accepted = batch.offset
        self.pending.append((self.name, batch.offset, batch.operation, rows))
        return None

    def _at_fault(self, batch: ingest_pb2.Batch) -> bytes:
        """A bit for each row that is refused, as the contract has it."""
        assert self.schema is not None
        rows = pa.ipc.read_record_batch(pa.py_buffer(batch.rows), self.schema).to_pylist()
        bits = sum(1 << at for at, row in enumerate(rows) if self.cluster.knobs.refuse(row) is not None)
        return bits.to_bytes(-(-len(rows) // 8), "little")

    def _commit(self) -> Iterator[Answer]:
        if not self.cluster.knobs.hold_checkpoints:
            for entry in self.pending:
                self.table.log.append(entry)
                self.table.rows.extend(entry[3])
            self.pending.clear()
            self.channel.committed = max(self.channel.committed, self.accepted)
        yield self._acks()

    def _acks(self) -> Answer:
        done = self.channel.committed
        return Answer(acks=ingest_pb2.Acks(received=self.accepted, durable=done, queryable=done))


@contextlib.asynccontextmanager
async def scripted_cluster(writers: int = 1, credentials: Tls | None = None) -> AsyncIterator[Cluster]:
    """On the running loop. With credentials it is reached as "localhost"."""
    cluster = Cluster(credentials)
    await cluster.start(writers)
    try:
        yield cluster
    finally:
        await cluster.stop()


@contextlib.contextmanager
def cluster_in_thread(writers: int = 1) -> Iterator[Cluster]:
    """On a loop of its own, for blocking callers."""
    ready: Future[tuple[Cluster, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        stop = asyncio.Event()
        async with scripted_cluster(writers) as cluster:
            ready.set_result((cluster, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    cluster, loop, stop = ready.result()
    try:
        yield cluster
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
