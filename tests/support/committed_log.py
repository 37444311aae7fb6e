"""What is committed to a table, block by block and *unmerged*: timeline, files that completed instants name, blocks, rows.

Compactions are no part of it: what they write is merged from these blocks, which stay where they are until they are cleaned.
Commits that were archived are: they are read from the timeline's history.

Two readers that share nothing but the bytes: ``independent`` knows the format from its specification (fastavro for the metadata,
the deletes and rows in Avro, struct for the framing, DuckDB for Parquet), ``ours`` uses the library.
"""

import io
import json
import struct
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import fastavro
import pyarrow as pa

from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.log.reader import RowsBlock, open_parquet, read_log_file
from headgate_tables.hudi.timeline.active import read_timeline
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.hudi.timeline.history import archived_completions, archived_metadata
from headgate_tables.storage.open import open_store
from headgate_tables.storage.store import Store
from headgate_tables.system import SystemIds
from support.workload import SCHEMA

HISTORY = "history"
"""The timeline's folder of archived instants."""
HISTORY_FOLDER = f".hoodie/timeline/{HISTORY}"
ENTRIES = pa.schema(
    [
        pa.field("instant", pa.string()),
        pa.field("rank", pa.int64()),
        pa.field("file_id", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("block", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("deleted", pa.bool_()),
        *SCHEMA,
    ]
)
"""One entry a row or delete record, in order of (rank, file_id, version, block, position); ``rank`` counts instants by their
completion. Of a delete only ``id``, ``part`` and ``ts`` are known (``ts`` null without an ordering)."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One data file that a completed instant names. ``version``: of a log. ``path`` from the table's root."""

    instant: str
    rank: int
    partition: str
    file_id: str
    version: int | None
    path: str


def open_bytes(url: str, options: Mapping[str, str] | None = None) -> Store:
    """The table's folder, for its bytes."""
    return open_store(url, options, SystemIds())


def independent(store: Store) -> pa.Table:
    """ENTRIES, read without the library."""
    with duckdb.connect() as db:
        db.execute("SET threads = 1")
        return _entries((file, _blocks(store.get(file.path).to_pybytes(), db)) for file in named_files(store))


def ours(store: Store) -> pa.Table:
    """ENTRIES, read with the library."""
    known = archived_completions(store, HISTORY)
    archived = {time: known[time] for time in (name.split("_")[0] for name in _archived(store))}
    active = {instant.time: instant for instant in read_timeline(store).writes() if instant.action == "deltacommit"}
    completed = archived | {time: instant.completion for time, instant in active.items()}
    metadata = archived_metadata(store, HISTORY, archived) | {
        time: store.get(instant.path).to_pybytes() for time, instant in active.items()
    }
    found = []
    for rank, time in enumerate(sorted(metadata, key=completed.__getitem__)):
        for partition, files in sorted(decode_commit(metadata[time], time).files.items()):
            for each in files:
                file_id, version = _place(each.name)
                file = LogFile(time, rank, partition, file_id, version, each.path)
                found.append((file, _read_by_ours(store, each.path, completed)))
    return _entries(iter(found))


def _place(name: str) -> tuple[str, int | None]:
    """File id and version, None of a base file."""
    if log := parse_log_name(name):
        return log.file_id, log.version
    base = parse_base_name(name)
    assert base is not None, name
    return base.file_id, None


def named_files(store: Store) -> list[LogFile]:
    """What the metadata of completed delta commits name, by completion. (The library also commits base files with them.)"""
    names = [name for name in store.list_folder(".hoodie/timeline").files if name.endswith(".deltacommit")]
    commits = {name.split(".")[0]: store.get(f".hoodie/timeline/{name}").to_pybytes() for name in names}
    commits |= _archived(store)
    files = []
    for rank, name in enumerate(sorted(commits, key=lambda name: name.split("_")[1])):
        [commit] = fastavro.reader(io.BytesIO(commits[name]))
        assert isinstance(commit, dict)
        for partition, stats in sorted((commit["partitionToWriteStats"] or {}).items()):
            for stat in stats:
                files.append(LogFile(name.split("_")[0], rank, partition, stat["fileId"], stat["logVersion"], stat["path"]))
    return files


def _archived(store: Store) -> dict[str, bytes]:
    """Metadata of delta commits in the history that the newest manifest names, by "instant_completion"."""
    if "_version_" not in store.list_folder(HISTORY_FOLDER).files:
        return {}
    version = store.get(f"{HISTORY_FOLDER}/_version_").to_pybytes().decode()
    manifest = json.loads(store.get(f"{HISTORY_FOLDER}/manifest_{version}").to_pybytes())
    found: dict[str, bytes] = {}
    with duckdb.connect() as db:
        for entry in manifest["files"]:
            rows = _parquet(store.get(f"{HISTORY_FOLDER}/{entry['fileName']}").to_pybytes(), db).to_pylist()
            found |= {
                f"{row['instantTime']}_{row['completionTime']}": row["metadata"] for row in rows if row["action"] == "deltacommit"
            }
    return found


def stray_files(store: Store) -> list[str]:
    """Data files under the name of a completed instant that its metadata does not name: readers would read them (rule FI3)."""
    named = named_files(store)
    paths, instants = {file.path for file in named}, {file.instant for file in named}
    found = []
    for folder in {file.partition for file in named}:
        for name in store.list_folder(folder).files:
            path = f"{folder}/{name}" if folder else name
            if ".log." in name and path not in paths and name.split("_")[1].split(".")[0] in instants:
                found.append(path)
    return sorted(found)


_Blocks = list[tuple[bool, pa.Table]]
"""In file order: whether it is a block of deletes, and its rows."""


def _entries(files: Iterator[tuple[LogFile, _Blocks]]) -> pa.Table:
    tables = []
    for file, blocks in files:
        for number, (deleted, rows) in enumerate(blocks):
            place: dict[str, Any] = {"instant": file.instant, "rank": file.rank, "file_id": file.file_id}
            place |= {"version": file.version, "block": number, "deleted": deleted}
            columns: dict[str, Any] = {name: pa.repeat(value, len(rows)) for name, value in place.items()}
            columns["position"] = pa.array(range(len(rows)), pa.int64())
            columns |= {
                name: rows[name].cast(SCHEMA.field(name).type) if name in rows.column_names else pa.nulls(len(rows))
                for name in SCHEMA.names
            }
            tables.append(pa.table(columns).select(ENTRIES.names).cast(ENTRIES))
    entries = pa.concat_tables([ENTRIES.empty_table(), *tables])
    return entries.sort_by([(name, "ascending") for name in ("rank", "file_id", "version", "block", "position")])


def _read_by_ours(store: Store, path: str, completed: Collection[str]) -> _Blocks:
    if path.endswith(".parquet"):
        return [(False, open_parquet(store.open_input(path)).read())]
    return [_of_ours(block) for block in read_log_file(store.get(path), path, completed.__contains__, strict=True)]


def _of_ours(block: Any) -> tuple[bool, pa.Table]:
    if isinstance(block, RowsBlock):
        return False, block.read()
    rows = block.rows
    return True, pa.table({"id": rows.keys, "part": rows.partitions, "ts": _or_nulls(rows.ordering, len(rows.keys))})


def _or_nulls(values: Any, length: int) -> Any:
    return pa.nulls(length, pa.int64()) if values is None else values


# --- the format, as Hudi's log blocks have it ---


def _blocks(data: bytes, db: duckdb.DuckDBPyConnection) -> _Blocks:
    if data[:4] == b"PAR1":
        return [(False, _parquet(data, db))]
    found: _Blocks = []
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"#HUDI#", f"no block at byte {at}"
        [size] = struct.unpack_from(">q", data, at + 6)
        _, kind = struct.unpack_from(">ii", data, at + 14)
        headers, position = _headers(data, at + 22)
        [length] = struct.unpack_from(">q", data, position)
        content = data[position + 8 : position + 8 + length]
        if kind == 5:
            found.append((False, _parquet(content, db)))
        elif kind == 3:
            found.append((False, avro_rows(content, headers[2])))
        elif kind == 1:
            found.append((True, _delete_list(content)))
        else:
            raise AssertionError(f"a block of kind {kind}, which the cluster does not write")
        at += 14 + size
    return found


def _headers(data: bytes, at: int) -> tuple[dict[int, bytes], int]:
    """And the position behind them."""
    [count] = struct.unpack_from(">i", data, at)
    found = {}
    at += 4
    for _ in range(count):
        key, length = struct.unpack_from(">ii", data, at)
        found[key] = data[at + 8 : at + 8 + length]
        at += 8 + length
    return found, at


def avro_rows(content: bytes, schema: bytes | str) -> pa.Table:
    """The rows of a block, by fastavro. ``schema``: its header."""
    version, count = struct.unpack_from(">ii", content)
    assert version == 3
    parsed, stream = fastavro.parse_schema(json.loads(schema)), io.BytesIO(content[8:])
    rows: list[Any] = []
    for _ in range(count):
        [length] = struct.unpack(">i", stream.read(4))
        rows.append(fastavro.schemaless_reader(io.BytesIO(stream.read(length)), parsed, None))
    assert not stream.read()
    return pa.Table.from_pylist(rows)


def _parquet(content: bytes, db: duckdb.DuckDBPyConnection) -> pa.Table:
    """Through a file: DuckDB reads no buffers."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(content)
        file.flush()
        return pa.table(db.sql("SELECT * FROM read_parquet(?)", params=[file.name]).to_arrow_table())


_WRAPPER = "org.apache.hudi.avro.model"
_TEXT = ["null", "string"]
_KINDS = ["boolean", "int", "long"]
_DELETES = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "namespace": _WRAPPER,
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "HoodieDeleteRecord",
                        "fields": [
                            {"name": "recordKey", "type": _TEXT},
                            {"name": "partitionPath", "type": _TEXT},
                            {
                                "name": "orderingVal",
                                "type": [
                                    "null",
                                    *(
                                        {"type": "record", "name": f"{kind}Wrapper", "fields": [{"name": "value", "type": kind}]}
                                        for kind in _KINDS
                                    ),
                                ],
                            },
                        ],
                    },
                },
            }
        ],
    }
)
"""As far as the workload needs it: ordering values are longs; an int 0 stands for none."""


def _delete_list(content: bytes) -> pa.Table:
    version, length = struct.unpack_from(">ii", content)
    assert version == 3, f"delete block of version {version}"
    read: Any = fastavro.schemaless_reader(io.BytesIO(content[8 : 8 + length]), _DELETES, None, return_record_name=True)
    records = read["deleteRecordList"]
    ordering = [record["orderingVal"] for record in records]
    values = [None if value is None or value[0].endswith("intWrapper") else value[1]["value"] for value in ordering]
    columns = {
        "id": pa.array([record["recordKey"] for record in records], pa.string()),
        "part": pa.array([record["partitionPath"] for record in records], pa.string()),
        "ts": pa.array(values, pa.int64()),
    }
    return pa.table(columns)
