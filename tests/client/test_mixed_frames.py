"""Frames of upserts and deletes: all of their rows are taken, or none."""

import pyarrow as pa
import pytest

import headgate
from headgate.rows import detect_operation_type
from support.scripted_service import Cluster, cluster_in_thread
from support.scripted_table import SCHEMA, ids, table_of

MIXED = pa.schema([("op", pa.string()), *SCHEMA])


class Frame:
    """As those of polars and pandas, and DuckDB's relations: Arrow knows it by its stream alone."""

    def __init__(self, *keys: int | None) -> None:
        columns = {"op": ["upsert"] * len(keys), "id": list(keys), "note": ["n"] * len(keys)}
        self._batches = pa.table(columns, MIXED).to_batches(max_chunksize=1)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(MIXED, self._batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)


async def test_a_bad_row_in_a_later_batch_of_a_frame_leaves_nothing_buffered(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.write(Frame(0, 1))
        with pytest.raises(headgate.RowError, match="row 1 has no value in 'id'"):
            await channel.write(Frame(2, None))
        assert channel.offset == 2
        await channel.write(Frame(2, 3))
        assert channel.offset == 4
    assert ids(cluster) == [0, 1, 2, 3]


def test_a_blocking_program_too_can_mend_a_frame_and_send_it_again() -> None:
    with cluster_in_thread(writers=1) as cluster:
        with headgate.connect(cluster.coordinator) as hg, hg.create_table("t", SCHEMA, key="id").channel("c") as channel:
            with pytest.raises(headgate.RowError, match="row 1 has no value in 'id'"):
                channel.write(Frame(0, None))
            assert channel.offset == 0
            assert channel.write(Frame(0, 1)).offset == 2
        assert ids(cluster) == [0, 1]


def test_a_reader_stays_a_stream() -> None:
    reader = Frame(0, 1).to_reader()
    assert detect_operation_type(reader, "op") == (reader, pa.string())
