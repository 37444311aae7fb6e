"""The standard health service of a process."""

from collections.abc import Collection

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

LIVE = "live"
"""Name of the health service that says serving as long as the process answers, whatever it waits for: for liveness probes. One
that asked for more would restart processes because Redis or the store is away."""


class Health:
    """The standard health service; "" is the process as a whole. Reports not serving until ``set``, but for ``LIVE``."""

    def __init__(self, servers: Collection[grpc.aio.Server]) -> None:
        self._servicer = health_aio.HealthServicer()
        self._told = False
        for server in servers:
            health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def set(self, serving: bool, *services: str) -> None:
        """For the process and the named services ("headgate.api.v1.IngestService")."""
        self._told = True
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", *services):
            await self._servicer.set(service, status)

    async def begin(self) -> None:
        """Before the server answers: grpcio's servicer would say serving by itself."""
        await self._servicer.set(LIVE, health_pb2.HealthCheckResponse.SERVING)
        if not self._told:
            await self.set(False)

    async def stop(self) -> None:
        """Not serving, for good."""
        await self._servicer.enter_graceful_shutdown()
