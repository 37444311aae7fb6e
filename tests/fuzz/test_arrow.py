"""Arrow bytes that the fuzzer draws: repeatable, of every kind, and harmless where a writer reads them."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

from fuzz.arrow import draw_batch, draw_schema
from fuzz.calls import ROWS, SCHEMA
from headgate_coordinator.services.schemas import read_schema
from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_runtime.errors import RpcError
from headgate_writer.admission import Admission
from headgate_writer.ipc_limits import Limits

SEEDS = 300
"""`./task fuzz` draws them by the thousand."""


def test_the_same_seed_draws_the_same() -> None:
    for seed in range(20):
        assert draw_schema(Random(seed)) == draw_schema(Random(seed))
        assert draw_batch(Random(seed), ROWS) == draw_batch(Random(seed), ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("read", [Admission(Limits()).schema, read_schema], ids=["writer", "coordinator"])
def test_a_drawn_schema_is_read_or_refused_in_words(read: Callable[[bytes], pa.Schema]) -> None:
    outcomes = Counter[str]()
    for seed in range(SEEDS):
        try:
            str(read(draw_schema(Random(seed))))  # every name and zone is looked at
            outcomes["read"] += 1
        except RpcError as refused:
            outcomes[errors_pb2.Code.Name(refused.error.code)] += 1
    assert outcomes["read"]
    assert outcomes.total() > outcomes["read"]


def test_a_drawn_batch_is_read_or_refused_in_words() -> None:
    outcomes = Counter[str]()
    for seed in range(SEEDS):
        batch = ingest_pb2.Batch(rows=draw_batch(Random(seed), ROWS), operation=ingest_pb2.OPERATION_UPSERT)
        try:
            admitted = Admission(Limits()).decode(batch, batch.rows, SCHEMA)
            outcomes["right" if admitted.rows.equals(pa.Table.from_batches([ROWS])) else "read"] += 1
        except RpcError as refused:
            outcomes[errors_pb2.Code.Name(refused.error.code)] += 1
    assert {"right", "CODE_CORRUPT_BATCH", "CODE_TOO_LARGE"} <= set(outcomes)
