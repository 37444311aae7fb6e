"""One contender, one table, all phases of the workload: runs in the contender's own process and environment."""

import gc
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import pyarrow as pa

from bench.tables.compare import differences
from bench.tables.contenders.contender import Contender
from bench.tables.scratch import scratch_folder
from bench.tables.usage import Moment, folder_bytes, peak_bytes


class PhaseUse(TypedDict):
    """What a phase took; see ``run``."""

    walls: list[float]
    cpus: list[float]
    rows: int
    kept: int
    bytes: int


class Answer(TypedDict):
    """What ``run`` returns."""

    phases: dict[str, PhaseUse]
    peak: int
    differences: dict[str, str]


def run(contender: str, workload: str, phases: Mapping[str, tuple[int, int]], partitioned: bool, oracle: str | None) -> Answer:
    """Upserts every batch and measures each. ``contender``: ``module:class``; ``oracle``: the end state to compare with.

    Returns under ``phases`` the ``walls`` and ``cpus`` of the commits in seconds, ``rows`` handed in, ``kept`` (distinct keys of
    each batch: what has to be stored) and ``bytes`` that the table's folder grew by; the process's ``peak`` in bytes; and under
    ``differences`` what each reader found different.
    """
    module, _, name = contender.partition(":")
    with scratch_folder(name.lower()) as scratch:
        folder = scratch / "data"
        batches = {phase: pa.ipc.open_file(pa.memory_map(f"{workload}/{phase}.arrow")) for phase in phases}
        schema = next(iter(batches.values())).schema
        table = getattr(importlib.import_module(module), name)(folder, schema, partitioned=partitioned)
        measured = {phase: _phase(table, batches[phase], commits, folder) for phase, (_, commits) in phases.items()}
        peak = peak_bytes(table.processes)
        found = {reader: differences(rows, oracle) for reader, rows in table.states()} if oracle else {}
        return {"phases": measured, "peak": peak, "differences": found}


def _phase(table: Contender, batches: pa.ipc.RecordBatchFileReader, count: int, folder: Path) -> PhaseUse:
    walls, cpus, rows, kept = [], [], 0, 0
    before = folder_bytes(folder)
    gc.collect()
    for number in range(count):
        batch = pa.Table.from_batches([batches.get_batch(number)])
        rows += batch.num_rows
        kept += len(batch["event_id"].unique())
        data = table.prepare(batch)
        begin = Moment.now(table.processes)
        table.upsert(data)
        used = Moment.now(table.processes) - begin
        walls.append(used.wall)
        cpus.append(used.cpu)
    return {"walls": walls, "cpus": cpus, "rows": rows, "kept": kept, "bytes": folder_bytes(folder) - before}
