"""``MaintenanceService`` of a scripted cluster: tables take every column that a batch brings."""

from typing import Any

import pyarrow as pa

from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1 import maintenance_pb2_grpc, tables_pb2


class ScriptedMaintenance(maintenance_pb2_grpc.MaintenanceServiceServicer):
    """``describe``: the table of that name, which is changed here."""

    def __init__(self, describe: Any) -> None:
        self._describe = describe

    async def Evolve(self, request: api.EvolveRequest, context: Any) -> api.EvolveResponse:
        description: tables_pb2.TableDescription = self._describe(request.table)
        schema = pa.ipc.read_schema(pa.py_buffer(description.schema))
        new = [field for field in pa.ipc.read_schema(pa.py_buffer(request.columns)) if field.name not in schema.names]
        description.schema = pa.schema([*schema, *new]).serialize().to_pybytes()
        return api.EvolveResponse(added=[f"{field.name}: {field.type}" for field in new], table=description)
