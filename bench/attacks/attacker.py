"""The attacks themselves, each in a process of its own: what it costs to attack is no part of what others notice."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final, TypeAlias

from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.api.v1.parts_pb2 import Part
from headgate_proto.serialized import PART_BYTES
from support.raw_http2 import RawConnection, RawStream, message_start, raw_connection

Metadata: TypeAlias = tuple[tuple[str, str], ...]
Start: TypeAlias = Callable[[RawConnection, RawStream], Coroutine[object, object, None]]

_MIB: Final = 1 << 20
_LARGE: Final = 9 * _MIB - 100
_LARGE_MESSAGE: Final = message_start(_LARGE) + bytes(_LARGE - 1_000)
_LARGEST_MESSAGE: Final = message_start(PART_BYTES) + bytes(PART_BYTES - 1)
_PART_MIB: Final = PART_BYTES >> 20
_SECONDS: Final = 5.0
"""How long an attack sends what the server takes."""
_HEALTH: Final = "/grpc.health.v1.Health/Check"
_LIST: Final = "/headgate.api.v1.TableService/ListTables"
_APPEND: Final = "/headgate.api.v1.IngestService/Append"
TOKEN: Final[Metadata] = (("authorization", "Bearer alice-token"),)


@dataclass(frozen=True, slots=True)
class Attack:
    """``streams`` calls of ``path`` on ``connections``, each with a message that ``send`` begins and does not end. A call that
    the server has refused is made again.
    """

    part: str
    path: str
    streams: int
    send: Start
    connections: int = 4
    metadata: Metadata = ()


async def _one_large(connection: RawConnection, call: RawStream) -> None:
    await connection.send_all(call, _LARGE_MESSAGE)


async def _largest_taken(connection: RawConnection, call: RawStream) -> None:
    """All but the end of a message that a server takes."""
    await connection.send_all(call, _LARGEST_MESSAGE)


async def _parts(connection: RawConnection, call: RawStream) -> None:
    """A request of 8 MiB in parts, but for the last ones."""
    total = 8 * _MIB
    for at in range(0, total - 2 * PART_BYTES, PART_BYTES):
        part = Part(content=bytes(PART_BYTES), request_bytes=0 if at else total)
        request = ingest_pb2.AppendRequest(part=part).SerializeToString()
        await connection.send_all(call, message_start(len(request)) + request)


async def _small_frames(connection: RawConnection, call: RawStream) -> None:
    """A message in frames of 64 bytes, each behind 2 KB that count for nothing: gRPC keeps what it read together."""
    await connection.send_all(call, message_start(PART_BYTES))
    while not (call.ended.is_set() or connection.refused.is_set()):
        connection.send(call, bytes(64))
        connection.send_ignored(2_000)
        await connection.drain()
        await asyncio.sleep(0)


ATTACKS: Final = {
    "writer, health check, 120 x 9 MiB": Attack("writer-1", _HEALTH, 120, _one_large),
    "writer, no token, 1,024 streams": Attack("writer-1", _APPEND, 1_024, _one_large),
    "writer, token, 120 x 9 MiB": Attack("writer-1", _APPEND, 120, _one_large, metadata=TOKEN),
    f"writer, token, 1,024 streams of {_PART_MIB} MiB": Attack("writer-1", _APPEND, 1_024, _largest_taken, metadata=TOKEN),
    "writer, token, 120 x 8 MiB in parts": Attack("writer-1", _APPEND, 120, _parts, metadata=TOKEN),
    "writer, token, 178 streams in small frames": Attack("writer-1", _APPEND, 178, _small_frames, metadata=TOKEN),
    "writer, no token, 900 connections": Attack("writer-1", _HEALTH, 900, _one_large, connections=900),
    "coordinator, health check, 120 x 9 MiB": Attack("coordinator-1", _HEALTH, 120, _one_large),
    "coordinator, no token, 120 x 9 MiB": Attack("coordinator-1", _LIST, 120, _one_large),
    "coordinator, token, 120 x 9 MiB": Attack("coordinator-1", _LIST, 120, _one_large, metadata=TOKEN),
    f"coordinator, health check, 1,024 streams of {_PART_MIB} MiB": Attack("coordinator-1", _HEALTH, 1_024, _largest_taken),
    f"coordinator, token, 1,024 streams of {_PART_MIB} MiB": Attack(
        "coordinator-1", _LIST, 1_024, _largest_taken, metadata=TOKEN
    ),
}


def attack(name: str, address: str, streams: int) -> None:
    """Attacks the server at ``address``; ends its connections when it is done."""
    asyncio.run(attack_for(_SECONDS, ATTACKS[name], address, streams))


async def _call_again_and_again(attack: Attack, connection: RawConnection) -> None:
    while not connection.refused.is_set():
        call = connection.open_call(attack.path, attack.metadata)
        await attack.send(connection, call)
        await call.ended.wait()


async def attack_for(seconds: float, attack: Attack, address: str, streams: int, tls: ssl.SSLContext | None = None) -> int:
    """Sends what the server takes in that time. Returns how many bytes of messages it took. ``tls``: of a server that has it."""
    async with contextlib.AsyncExitStack() as stack:
        made = [await stack.enter_async_context(raw_connection(address, tls)) for _ in range(min(attack.connections, streams))]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
                for number in range(streams):
                    tasks.create_task(_call_again_and_again(attack, made[number % len(made)]))
        return sum(call.sent for connection in made for call in connection.streams.values())
