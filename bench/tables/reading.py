"""Reading what we wrote: the merge of base and log files, and how fast a long timeline opens; hudi-rs beside us."""

import gc
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from bench.tables.compare import differences
from bench.tables.usage import Moment, peak_bytes
from support.events import EVENTS_SCHEMA

_FEW = ["event_id", "amount", "version"]


def snapshot(contender: str, folder: str, how: str, times: int, oracle: str | None) -> dict[str, object]:
    """Reads the table ``times`` times after a first read that warms up. ``contender``: ``headgate`` or ``hudi-rs``.

    ``how``: ``table`` (all 12 columns at once), ``stream`` (the same as batches that are let go), ``few`` (3 columns at once).
    Returns ``walls`` and ``cpus`` in seconds, ``rows`` and ``peak`` bytes; with an ``oracle`` only the ``differences``.
    """
    columns = _FEW if how == "few" else EVENTS_SCHEMA.names
    read = _headgate if contender == "headgate" else _hudi_rs
    if oracle is not None:
        rows = pa.Table.from_batches(read(folder, columns, stream=how == "stream"))
        return {"differences": differences(rows, oracle, columns)}
    walls, cpus, count = [], [], 0
    for _ in range(times + 1):
        gc.collect()
        begin = Moment.now()
        count = sum(batch.num_rows for batch in read(folder, columns, stream=how == "stream"))
        used = Moment.now() - begin
        walls.append(used.wall)
        cpus.append(used.cpu)
    return {"walls": walls[1:], "cpus": cpus[1:], "rows": count, "peak": peak_bytes()}


def opening(contender: str, folder: str) -> dict[str, object]:
    """Opens the table and lists its newest file slices, once, in a process that has only done its imports."""
    if contender == "headgate":
        from headgate_tables import hudi

        begin = Moment.now()
        groups = len([group.slices() for group in hudi.open_table(f"file://{folder}").file_groups()])
        used = Moment.now() - begin
    else:
        from hudi import HudiTable

        begin = Moment.now()
        groups = len(HudiTable(f"file://{folder}").get_file_slices())
        used = Moment.now() - begin
    return {"wall": used.wall, "cpu": used.cpu, "groups": groups, "peak": peak_bytes()}


def _headgate(folder: str, columns: list[str], *, stream: bool) -> Iterable[pa.RecordBatch]:
    from headgate_tables import hudi

    scan = hudi.open_table(f"file://{folder}").scan(columns)
    return scan.to_reader() if stream else scan.to_table().to_batches()


def _hudi_rs(folder: str, columns: list[str], *, stream: bool) -> Iterable[pa.RecordBatch]:
    from hudi import HudiReadOptions, HudiTable

    table, options = HudiTable(f"file://{folder}"), HudiReadOptions(projection=columns)
    return table.read_stream(options) if stream else table.read(options)


def fill_page_cache(folder: Path) -> None:
    """Reads every file below ``folder`` once."""
    for file in folder.rglob("*"):
        if file.is_file():
            file.read_bytes()
