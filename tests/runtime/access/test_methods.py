"""What contracts declare of their methods, as the server reads it."""

from grpc_health.v1 import health_pb2

from headgate_proto.api.v1 import ingest_pb2, maintenance_pb2, tables_pb2
from headgate_proto.cluster.v1 import coordination_pb2
from headgate_runtime.access.methods import MethodAccess, method_access
from headgate_runtime.access.rights import Right


def method(path: str) -> MethodAccess:
    found = method_access(path)
    assert found is not None
    return found


def test_a_method_names_its_right_and_its_table() -> None:
    create = method("/headgate.api.v1.TableService/CreateTable")
    assert (create.right, create.streams) == (Right.CREATE, False)
    assert create.table_of(tables_pb2.CreateTableRequest(name="t")) == "t"
    append = method("/headgate.api.v1.IngestService/Append")
    assert (append.right, append.streams) == (Right.WRITE, True)
    opening = ingest_pb2.AppendRequest(open=ingest_pb2.OpenChannel(table="t", channel="c"))
    assert append.table_of(opening) == "t"


def test_a_request_without_a_name_is_about_any_table_only_where_the_contract_says_so() -> None:
    assert method("/headgate.api.v1.MaintenanceService/Restore").table_of(maintenance_pb2.RestoreRequest()) == ""
    status = method("/headgate.api.v1.TableService/Status")
    assert status.table_of(tables_pb2.StatusRequest()) is None
    assert status.table_of(tables_pb2.StatusRequest(table="t")) == "t"
    assert method("/headgate.api.v1.TableService/ListTables").table_of(tables_pb2.ListTablesRequest()) is None


def test_a_method_of_the_cluster_wants_no_right_of_a_client() -> None:
    assert method(f"/{coordination_pb2.DESCRIPTOR.services_by_name['CoordinationService'].full_name}/Members").right is None


def test_nobody_may_call_what_no_contract_declares() -> None:
    assert health_pb2.DESCRIPTOR.services_by_name["Health"].methods_by_name["Check"]
    for path in ("/grpc.health.v1.Health/Check", "/headgate.api.v1.TableService/Nothing", "/nothing.Service/Method", "", "/"):
        assert method_access(path) is None
