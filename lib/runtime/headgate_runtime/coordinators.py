"""Which coordinators there are, and a link to each: what writers and compactors have alike."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import grpc
import structlog

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.coordination_pb2_grpc import CoordinationServiceStub
from headgate_runtime.channels import connect
from headgate_runtime.settings import ServiceSettings
from headgate_runtime.world import Clock

_log = structlog.get_logger()

POLL_S = 1.0
ANSWER_S = 2.0
"""A coordinator answers `Members` from memory; one that takes longer is not asked again before the others were."""


class Link(Protocol):
    """A stream to one coordinator that is made again when it breaks."""

    @property
    def channel(self) -> grpc.aio.Channel:
        """To the coordinator; calls besides the stream may use it. Closed by who made the link."""

    @property
    def connected(self) -> bool:
        """Whether the stream has said hello and was welcomed."""

    def want(self) -> None:
        """The coordinator is on the list."""

    def forget(self) -> None:
        """It is not any more: do not connect again."""

    async def run(self) -> None:
        """Until ``forget``, and the end of the stream that is there then."""


_Link = TypeVar("_Link", bound=Link)


class Coordinators(Generic[_Link]):
    """``configured``: host:port of one or more; the others are found through them. ``make`` makes the link to one."""

    def __init__(
        self,
        configured: Sequence[str],
        make: Callable[[str, grpc.aio.Channel], _Link],
        settings: ServiceSettings,
        clock: Clock,
    ) -> None:
        self._configured = list(configured)
        self._make = make
        self._settings = settings
        self._clock = clock
        self._links: dict[str, _Link] = {}
        self._asked: dict[str, grpc.aio.Channel] = {}

    @property
    def links(self) -> Sequence[_Link]:
        """To every coordinator that is known now, connected or not."""
        return list(self._links.values())

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._follow(await self._members(), group)
                    await self._clock.sleep(POLL_S)
        finally:
            for channel in self._asked.values():
                await channel.close()

    def _follow(self, addresses: Sequence[str], group: asyncio.TaskGroup) -> None:
        """An empty list says nothing: whoever was there may still be (rule R4)."""
        for address in addresses:
            link = self._links.get(address)
            if link is None:
                link = self._links[address] = self._make(address, connect(address, self._settings))
                group.create_task(self._run(address, link))
            link.want()
        for address, link in self._links.items():
            if addresses and address not in addresses and not link.connected:
                link.forget()

    async def _run(self, address: str, link: _Link) -> None:
        try:
            await link.run()
        finally:
            del self._links[address]  # before it is closed, or _members would ask through it
            await link.channel.close()

    async def _members(self) -> Sequence[str]:
        """From the first that answers: those that are connected know, the configured ones are where it begins."""
        connected = [address for address, link in self._links.items() if link.connected]
        for address in dict.fromkeys([*connected, *self._configured]):
            try:
                stub = CoordinationServiceStub(self._channel(address))
                answer = await stub.Members(wire.MembersRequest(), timeout=ANSWER_S)
                return list(answer.addresses)
            except grpc.aio.AioRpcError as failed:
                _log.debug("coordinator does not answer", coordinator=address, reason=failed.code().name)
        return []

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address in self._links:
            return self._links[address].channel
        if address not in self._asked:
            self._asked[address] = connect(address, self._settings)
        return self._asked[address]
