"""All methods that a cluster serves, by the program that serves them."""

from collections.abc import Sequence

from google.protobuf.descriptor import MethodDescriptor

from headgate_proto.api.v1 import ingest_pb2, maintenance_pb2, tables_pb2
from headgate_proto.cluster.v1 import compaction_pb2, coordination_pb2, exchange_pb2

SERVED = {
    "coordinator-1": (tables_pb2, maintenance_pb2, compaction_pb2, coordination_pb2),
    "writer-1": (ingest_pb2, exchange_pb2),
}
METHODS: Sequence[tuple[str, MethodDescriptor]] = [
    (part, method)
    for part, modules in SERVED.items()
    for module in modules
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
