"""What loads a file, each function in a process of its own. Returns ``wall`` and ``cpu`` seconds, and bytes of that process:
``peak`` and ``idle``, its peak before the load.

What a process imports is a part of its time, as it is for a user. At the module's top is the standard library alone, so that
PyPaimon's environment has what it needs, and nobody's memory holds what others need.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.tables.usage import Moment, peak_bytes

if TYPE_CHECKING:
    import pyarrow as pa

PAIMON_ROWS = 1_000_000
"""Rows of one commit of PyPaimon."""


def by_headgate(file: str, address: str, table: str, processes: Sequence[int]) -> dict[str, float]:
    """`headgate load`, until all rows are committed. ``processes``: those of the cluster, whose CPU counts, too."""

    def load() -> None:
        from headgate_cli.main import run

        code = run(["load", file, "--table", table, "--connect", address])
        if code != 0:
            raise RuntimeError(f"headgate load ended with {code}")

    return _measured(load, ["headgate_cli.load.command", "pyarrow"], processes)


def by_duckdb(file: str, folder: str) -> dict[str, float]:
    """DuckDB's COPY of the file to one Parquet file, by all its threads."""

    def load() -> None:
        import duckdb

        types = "{'qty': 'INTEGER', 'amount': 'DECIMAL(18, 4)', 'ts': 'TIMESTAMPTZ', 'dt': 'VARCHAR'}"
        source = f"read_csv('{file}', types = {types})" if file.endswith(".csv") else f"read_parquet('{file}')"
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"COPY (FROM {source}) TO '{folder}/rows.parquet' (FORMAT parquet, COMPRESSION zstd)")

    return _measured(load, ["duckdb"])


def by_paimon(file: str, folder: str, schema: str) -> dict[str, float]:
    """PyPaimon's native writer, with a commit for each million rows that pyarrow reads from the file.

    ``schema``: that of the rows, in Arrow's form, hexadecimal.
    """

    def load() -> None:
        import pyarrow as pa

        from bench.tables.contenders.paimon import Paimon

        columns = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(schema)))
        table = Paimon(Path(folder), columns, partitioned=True)
        held: list[pa.RecordBatch] = []
        for batch in _batches(file, columns):
            held.append(batch)
            if sum(each.num_rows for each in held) >= PAIMON_ROWS:
                table.upsert(pa.Table.from_batches(held))
                held = []
        if held:
            table.upsert(pa.Table.from_batches(held))

    return _measured(load, ["bench.tables.contenders.paimon"])


def digest_by_hudi_rs(url: str, schema: "pa.Schema | None" = None) -> list[int]:
    """The digest of a table's rows (events, or those of ``schema``), as hudi-rs reads them, which shares no code with us."""
    import pyarrow as pa
    from hudi import HudiReadOptions, HudiTable

    from bench.load.big_files import connect, digest_of
    from support.events import EVENTS_SCHEMA

    schema = schema or EVENTS_SCHEMA
    names = schema.names
    found = pa.Table.from_batches(HudiTable(url).read(HudiReadOptions(projection=names))).select(names).cast(schema)
    connection = connect()
    connection.register("found", found)
    return digest_of("found", connection, names)


def _batches(file: str, columns: "pa.Schema") -> Iterator["pa.RecordBatch"]:
    if file.endswith(".csv"):
        import pyarrow.csv as pa_csv

        options = pa_csv.ConvertOptions(column_types=columns, strings_can_be_null=True, quoted_strings_can_be_null=False)
        yield from pa_csv.open_csv(file, pa_csv.ReadOptions(block_size=8 << 20), convert_options=options)
        return
    import pyarrow.parquet as pq

    yield from pq.ParquetFile(file).iter_batches(batch_size=131_072)


def _measured(load: Callable[[], None], modules: Sequence[str], processes: Sequence[int] = ()) -> dict[str, float]:
    begin = Moment.now(processes)
    for module in modules:
        importlib.import_module(module)
    idle = peak_bytes()
    load()
    os.sync()  # what is promised to be on the disk is there in each case
    used = Moment.now(processes) - begin
    return {"wall": used.wall, "cpu": used.cpu, "peak": peak_bytes(), "idle": idle}
