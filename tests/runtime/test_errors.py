"""Errors on the wire: every code has its action and status, every error of the tables its code."""

import inspect

import grpc
import pytest

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.api.v1.errors_pb2 import Action, Code
from headgate_runtime.errors import RpcError, cut, from_tables, rpc_error, status_of, wire_error
from headgate_tables import errors as tables_errors

SECRET = "file:///secret/place"
CODES = [code for code in Code.values() if code]
TABLES_ERRORS = [
    kind for _, kind in inspect.getmembers(tables_errors, inspect.isclass) if kind.__module__ == tables_errors.__name__
]


@pytest.mark.parametrize("code", CODES, ids=[Code.Name(code) for code in CODES])
def test_every_code_has_the_action_under_which_the_contract_lists_it_and_a_status_that_is_no_success(code: int) -> None:
    sections = {0: "ACTION_RETRY", 1: "ACTION_RESUME", 2: "ACTION_FIX_CALL", 3: "ACTION_FIX_CALL", 4: "ACTION_GIVE_UP"}
    error = wire_error(Code.Name(code) and code, "message", "fix")  # type: ignore[arg-type]
    assert Action.Name(error.action) == sections[code // 10]
    assert status_of(error) not in (grpc.StatusCode.OK, grpc.StatusCode.UNKNOWN)


def test_who_is_told_to_retry_is_told_when() -> None:
    assert wire_error(errors_pb2.CODE_UNAVAILABLE, "m", "f").retry_after_ms > 0
    assert wire_error(errors_pb2.CODE_UNAVAILABLE, "m", "f", retry_after_ms=7).retry_after_ms == 7
    assert wire_error(errors_pb2.CODE_SCHEMA, "m", "f").retry_after_ms == 0


def test_an_error_says_message_and_next_step() -> None:
    raised = rpc_error(errors_pb2.CODE_NOT_OWNER, "not here", "Go there.", address="h:1")
    assert isinstance(raised, RpcError)
    assert (raised.error.address, raised.error.fix) == ("h:1", "Go there.")
    assert "CODE_NOT_OWNER: not here. Go there." in str(raised)


@pytest.mark.parametrize("kind", TABLES_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_tables_keeps_what_the_caller_can_do(kind: type[tables_errors.TablesError]) -> None:
    told = from_tables(kind(f"cannot use {SECRET}", fix=f"See {SECRET}."))
    if issubclass(kind, tables_errors.RetryLater | tables_errors.ReopenTable):
        assert told.action == errors_pb2.ACTION_RETRY
    elif issubclass(kind, tables_errors.FixCall) and not issubclass(kind, tables_errors.TransactionError):
        assert told.action == errors_pb2.ACTION_FIX_CALL
    else:
        assert told.action == errors_pb2.ACTION_GIVE_UP
    told_as_they_are = (
        tables_errors.SchemaError,
        tables_errors.NullKeyError,
        tables_errors.NullOrderingError,
        tables_errors.PartitionValueError,
        tables_errors.OptionError,
        tables_errors.OtherDefinitionError,
        tables_errors.RangeGoneError,
        tables_errors.TableRenamedError,
        tables_errors.TableDroppedError,  # says when and by whom, and no address (``tombstone.dropped_error``)
    )
    assert (SECRET in told.message) == (issubclass(kind, told_as_they_are) or kind is tables_errors.FixCall)
    assert told.message
    assert told.fix


def test_a_subclass_that_is_not_known_is_treated_as_its_parent() -> None:
    class NewSchemaError(tables_errors.SchemaError):
        pass

    assert from_tables(NewSchemaError("x", fix="y")).code == errors_pb2.CODE_SCHEMA


def test_texts_are_cut_where_gRPC_would_refuse_them() -> None:
    error = wire_error(errors_pb2.CODE_SCHEMA, "ä" * 1_000, "x" * 1_000)
    assert error.message == "ä" * 500 + "…"
    assert error.fix == "x" * 1_000
    assert cut("ä" * 30) == "ä" * 30
    assert cut("ä" * 30 + "a") == "ä" * 30 + "…"
    assert cut("aä" * 30) == ("aä" * 30)[:40] + "…"
