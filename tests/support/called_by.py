"""Which kinds of services may call which method by certificate, said once more beside the code: a change there fails here."""

from collections.abc import Mapping
from typing import Final

from headgate_runtime.peers import ServiceKind
from support.contracts import METHODS

_COORDINATORS: Final = frozenset({ServiceKind.COORDINATOR})
_WRITERS: Final = frozenset({ServiceKind.WRITER})
_COMPACTORS: Final = frozenset({ServiceKind.COMPACTOR})

OF_SERVICES: Final = {
    "headgate.cluster.v1.CoordinationService.Control": _WRITERS,
    "headgate.cluster.v1.CoordinationService.Members": _WRITERS | _COMPACTORS,
    "headgate.cluster.v1.CompactionService.Work": _COMPACTORS,
    "headgate.cluster.v1.ExchangeService.Exchange": _WRITERS,
}
FORWARDED: Final = {
    "headgate.api.v1.TableService.Status": _COORDINATORS | _WRITERS,
    **{name: _COORDINATORS for name in METHODS if name.startswith("headgate.api.v1.MaintenanceService.")},
}
"""What a coordinator passes on to another one, for a client."""
CALLED_BY: Final[Mapping[str, frozenset[ServiceKind]]] = {
    **OF_SERVICES,
    **FORWARDED,
    "headgate.api.v1.TableService.DescribeTable": _WRITERS,
    "headgate.api.v1.TableService.CreateTable": frozenset(),
    "headgate.api.v1.TableService.ListTables": frozenset(),
    "headgate.api.v1.TableService.FindWriters": frozenset(),
    "headgate.api.v1.IngestService.Append": frozenset(),
}
