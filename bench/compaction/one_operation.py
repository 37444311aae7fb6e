"""Runs in a process of its own: one slice is compacted, or read to see that nothing was lost."""

import pyarrow as pa

from bench.compaction.slices import end_totals, slice_table
from bench.tables.usage import Moment, peak_bytes
from headgate_tables.arrow import pc

_SUMMED = ("user_id", "version", "qty")


def build(base_rows: int, log_rows: list[int], buckets: int = 1) -> str:
    """The table's folder; ``slice_table`` in a process whose memory nobody measures."""
    return str(slice_table(base_rows, log_rows, buckets))


def compact(folder: str) -> dict[str, object]:
    """Plans, merges and commits. ``rows``: in the new base file; ``bytes``: of it; ``cpu`` and ``wall`` in seconds."""
    from headgate_tables import hudi

    table = hudi.open_table(f"file://{folder}")
    begin = Moment.now()
    result = table.compact()
    used = Moment.now() - begin
    [done] = result.finished
    return {
        "cpu": used.cpu,
        "wall": used.wall,
        "peak": peak_bytes(),
        "rows": done.rows,
        "bytes": done.file.size,
        "input_bytes": done.operation.input_bytes,
    }


def wanted(base_rows: int, log_rows: list[int]) -> list[int]:
    """The totals that the table must have."""
    return end_totals(base_rows, log_rows, _SUMMED)


def totals(folder: str) -> list[int]:
    """The table's number of rows and sums, as hudi-rs reads it."""
    from hudi import HudiReadOptions, HudiTable

    found = [0] * (1 + len(_SUMMED))
    for each in HudiTable(f"file://{folder}").read_stream(HudiReadOptions(projection=list(_SUMMED))):
        batch = pa.record_batch(each)
        for at, number in enumerate([batch.num_rows, *(pc.sum(batch.column(name)).as_py() or 0 for name in _SUMMED)]):
            found[at] += number
    return found
