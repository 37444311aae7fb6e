"""What becomes of a client's bytes: the rows as they were sent, or a typed refusal; never more memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.errors import RpcError
from headgate_writer.admission import Admission, Admitted
from headgate_writer.ipc_limits import Limits
from support.arrow_batches import admit, batch, rows_message, schema_message

ROWS = pa.record_batch({"id": ["a", "b", "c"], "n": pa.array([1, None, 3], pa.int64()), "l": [[1], [], [2, 3]]})
ADMISSION = Admission(Limits())


def refused(message: ingest_pb2.Batch, limits: Limits | None = None, schema: pa.Schema | None = None) -> errors_pb2.Error:
    with pytest.raises(RpcError) as caught:
        admit(message, Admission(limits or Limits()), schema)
    error = caught.value.error
    assert error.action == errors_pb2.ACTION_FIX_CALL
    assert error.message
    assert error.fix
    return error


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_batch_comes_out_as_it_was_sent(compression: str | None) -> None:
    admitted = admit(batch(ROWS, compression), ADMISSION)
    assert admitted.rows.equals(pa.Table.from_batches([ROWS]))
    assert admitted.deletes is None
    assert admitted.nbytes == admitted.rows.get_total_buffer_size()


def test_a_later_batch_needs_no_schema_of_its_own_and_a_new_one_counts_at_once() -> None:
    schema = ADMISSION.schema(schema_message(ROWS.schema))
    without = ingest_pb2.Batch(rows=rows_message(ROWS), operation=ingest_pb2.OPERATION_UPSERT)
    assert admit(without, ADMISSION, schema).rows.num_rows == 3
    other = pa.record_batch({"x": [1.5]})
    assert admit(batch(other), ADMISSION, schema).rows.column_names == ["x"]


def test_channels_with_the_same_schema_share_it_byte_for_byte_and_only_few_are_kept() -> None:
    def named(name: str) -> bytes:
        return schema_message(pa.schema([(name, pa.int64())]))

    admission = Admission(Limits())
    first = admission.schema(named("a"))
    assert admission.schema(bytes(bytearray(named("a")))) is first
    assert admission.schema(named("b")).names == ["b"]
    for _ in range(2):
        with pytest.raises(RpcError):
            admission.schema(named("a")[:40])
    for number in range(64):
        admission.schema(named(f"other_{number}"))
    assert admission.schema(named("a")) == first
    assert admission.schema(named("a")) is not first
    wide = schema_message(pa.schema([(f"column_{number}", pa.int64()) for number in range(500)]))
    assert admission.schema(wide) is not admission.schema(wide)


def test_a_first_batch_without_a_schema_is_refused() -> None:
    error = refused(ingest_pb2.Batch(rows=rows_message(ROWS), operation=ingest_pb2.OPERATION_UPSERT))
    assert error.code == errors_pb2.CODE_SCHEMA


def test_rows_of_another_schema_than_was_announced_are_refused() -> None:
    message = ingest_pb2.Batch(
        schema=schema_message(ROWS.schema),
        rows=rows_message(pa.record_batch({"id": [1]})),
        operation=ingest_pb2.OPERATION_UPSERT,
    )
    assert refused(message).code == errors_pb2.CODE_CORRUPT_BATCH


# Operations.


def decoded(operations: pa.Array[Any], operation: Any = ingest_pb2.OPERATION_MIXED, column: str = "op") -> Admitted:
    rows = pa.record_batch({"id": list(range(len(operations))), "op": operations})
    return admit(batch(rows, None, operation, column), ADMISSION)


@pytest.mark.parametrize(
    "operations",
    [
        pa.array([1, 2, 1], pa.int8()),
        pa.array(["upsert", "delete", "upsert"]),
        pa.array(["upsert", "delete", "upsert"], pa.large_string()),
    ],
    ids=str,
)
def test_an_operation_column_says_row_by_row_what_it_is_and_is_no_column_of_the_table(operations: pa.Array[Any]) -> None:
    admitted = decoded(operations)
    assert admitted.deletes is not None
    assert admitted.deletes.to_pylist() == [False, True, False]
    assert admitted.rows.column_names == ["id"]


def test_a_batch_of_deletes_needs_no_column_for_it() -> None:
    admitted = decoded(pa.array([1, 1], pa.int8()), ingest_pb2.OPERATION_DELETE, "")
    assert admitted.deletes is not None
    assert admitted.deletes.to_pylist() == [True, True]


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        (pa.array([1, 3], pa.int8()), errors_pb2.CODE_INVALID_ARGUMENT),
        (pa.array([1, None], pa.int8()), errors_pb2.CODE_INVALID_ARGUMENT),
        (pa.array(["upsert", "Delete"]), errors_pb2.CODE_INVALID_ARGUMENT),
        (pa.array([1, 2], pa.int32()), errors_pb2.CODE_SCHEMA),
    ],
    ids=str,
)
def test_an_operation_that_says_nothing_known_is_refused(operations: pa.Array[Any], code: Any) -> None:
    with pytest.raises(RpcError) as caught:
        decoded(operations)
    assert caught.value.error.code == code


def test_an_operation_column_that_is_missing_or_doubled_is_refused() -> None:
    assert refused(batch(ROWS, None, ingest_pb2.OPERATION_MIXED, "op")).code == errors_pb2.CODE_SCHEMA
    doubled = pa.RecordBatch.from_arrays([pa.array([1], pa.int8())] * 2, names=["op", "op"])
    assert refused(batch(doubled, None, ingest_pb2.OPERATION_MIXED, "op")).code == errors_pb2.CODE_SCHEMA


def test_an_operation_that_does_not_exist_is_refused() -> None:
    for operation in (0, 17):
        assert refused(batch(ROWS, None, operation)).code == errors_pb2.CODE_INVALID_ARGUMENT


# Damage.


def test_rows_that_are_no_arrow_message_are_refused() -> None:
    good = rows_message(ROWS)
    for bad in (b"", b"\xff" * 4, b"hello, this is no arrow", schema_message(ROWS.schema), good[4:], good + b"more"):
        message = ingest_pb2.Batch(schema=schema_message(ROWS.schema), rows=bad, operation=ingest_pb2.OPERATION_UPSERT)
        assert refused(message).code == errors_pb2.CODE_CORRUPT_BATCH


def test_a_schema_that_is_no_schema_message_is_refused() -> None:
    good = schema_message(ROWS.schema)
    for bad in (b"\xff" * 4, b"\xff" * 64, rows_message(ROWS), good[:-8], good + b"12345678"):
        with pytest.raises(RpcError) as caught:
            ADMISSION.schema(bad)
        assert caught.value.error.code == errors_pb2.CODE_CORRUPT_BATCH


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_truncated_batch_is_refused_wherever_it_ends(compression: str | None) -> None:
    whole = batch(ROWS, compression)
    rows = whole.rows
    for end in range(len(rows)):
        whole.rows = rows[:end]
        assert refused(whole).code == errors_pb2.CODE_CORRUPT_BATCH


_KINDS = pa.record_batch(
    {
        "id": ["a", "bb", None, "ccc"],
        "n": pa.array([1, None, 3, 4], pa.int64()),
        "l": [["x"], [], None, ["y", "z"]],
        "s": [{"a": 1, "b": "q"}, None, {"a": None, "b": None}, {"a": 4, "b": ""}],
        "m": pa.array([[("k", 1)], [], None, [("a", 2), ("b", None)]], pa.map_(pa.string(), pa.int32())),
        "f": pa.array([[1, 2], [3, 4], None, [5, 6]], pa.list_(pa.int16(), 2)),
        "b": [True, False, None, True],
    }
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([None, "lz4", "zstd"]),
    st.sampled_from(["schema", "rows"]),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=6),
)
def test_flipped_bytes_are_refused_with_a_type_or_make_another_valid_batch(
    compression: str | None, where: str, flips: list[tuple[int, int]]
) -> None:
    message = batch(_KINDS, compression)
    content = bytearray(getattr(message, where))
    for at, mask in flips:
        content[at % len(content)] ^= mask
    setattr(message, where, bytes(content))
    try:
        admitted = admit(message, ADMISSION)
    except RpcError as told:
        code = told.error.code
    else:
        code = 0
        admitted.rows.validate(full=True)
    assert code in (0, errors_pb2.CODE_CORRUPT_BATCH, errors_pb2.CODE_SCHEMA, errors_pb2.CODE_TOO_LARGE)


_BOMB = """
import json, sys
import pyarrow as pa
from support.arrow_batches import admit, batch
from headgate_writer.admission import Admission
from headgate_writer.ipc_limits import Limits
from headgate_runtime.errors import RpcError
message = batch(pa.record_batch({"id": pa.array([b"\\0" * 1000] * 300_000)}), sys.argv[1])
def rss():
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
open("/proc/self/clear_refs", "w").write("5")
pool = pa.default_memory_pool()
pool.release_unused()
before, arrow = rss(), pool.bytes_allocated()
try:
    admit(message, Admission(Limits()))
    code = 0
except RpcError as error:
    code = error.error.code
print(json.dumps([code, len(message.rows), rss() - before, pool.bytes_allocated() - arrow]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_bomb_costs_no_more_than_its_wire(compression: str) -> None:
    """300 MB behind a few hundred kilobytes: refused by what it declares, before anything is uncompressed."""
    done = subprocess.run([sys.executable, "-c", _BOMB, compression], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code, wire, grown, arrow = json.loads(done.stdout)
    assert code == errors_pb2.CODE_TOO_LARGE
    assert arrow == 0
    assert grown < wire + (16 << 20)


def test_a_bomb_that_lies_about_its_size_is_refused_too() -> None:
    rows = pa.record_batch({"id": pa.array([b"\0" * 1000] * 1_000)})
    message = batch(rows, "zstd")
    (at,) = _places(message.rows, (1_000_000).to_bytes(8, "little"))
    lying = bytearray(message.rows)
    lying[at : at + 8] = (1_000).to_bytes(8, "little")
    message.rows = bytes(lying)
    assert refused(message).code == errors_pb2.CODE_CORRUPT_BATCH


def _places(content: bytes, wanted: bytes) -> list[int]:
    return [at for at in range(len(content)) if content.startswith(wanted, at)]
