"""Our side of the comparison: a process that compacts all slices of a table, one after the other, warm as Spark's session is.

And what no compaction can be faster than by much: the base files alone, read and written again by pyarrow, nothing merged.
"""

from pathlib import Path

import pyarrow.parquet as pq

from bench.tables.usage import Moment, peak_bytes


def compact(folder: str, warm_up: str = "") -> dict[str, float]:
    """Opens the table, plans, merges and commits; before that, in another one, ``warm_up``.

    ``cpu`` and ``wall``: seconds of that; ``process_cpu``: of the process from its start on, imports too.
    """
    from headgate_tables import hudi

    if warm_up:
        compact(warm_up)
    begin = Moment.now()
    with hudi.open_table(f"file://{folder}") as table:
        result = table.compact()
    end = Moment.now()
    if result.dropped or not result.finished:
        raise AssertionError(f"{len(result.finished)} slices were compacted, {result.dropped} were not")
    used, written = end - begin, sum(each.file.size for each in result.finished)
    return {"cpu": used.cpu, "wall": used.wall, "process_cpu": end.cpu, "peak": peak_bytes(), "bytes": written}


def rewrite(folder: str) -> dict[str, float]:
    """Returns as ``compact``; warm, too."""
    files = sorted(Path(folder).glob("*.parquet"))
    pq.read_table(files[0])
    begin = Moment.now()
    for file in files:
        pq.write_table(pq.read_table(file), file.with_suffix(".again"), compression="zstd")
    used = Moment.now() - begin
    return {"cpu": used.cpu, "wall": used.wall, "peak": peak_bytes()}
