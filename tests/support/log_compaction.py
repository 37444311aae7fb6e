"""Log compactions as Hudi makes them, written by hand: nothing of the library writes any."""

from collections.abc import Collection
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables import hudi
from headgate_tables.arrow import Field
from headgate_tables.commitlog.records import DataFile
from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.hudi.log.block import BlockKind, HeaderKey, encode_block
from headgate_tables.hudi.log.names import log_name, parse_log_name
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file
from headgate_tables.hudi.schema.meta_columns import RECORD_KEY
from headgate_tables.hudi.timeline.commit_metadata import decode_commit, encode_commit
from support.table_files import data_files, instant_of, kind

MARK = "of the log compaction"
"""The note of all its rows, so that one sees who reads them."""


def logs_of(table: Path, instant: str) -> list[Path]:
    """The log files of one instant."""
    return [file for file in data_files(table) if kind(file) == "log" and instant_of(file) == instant]


def write_log_compaction(table: Path, instant: str, replaced: Collection[str]) -> None:
    """A completed log compaction of the logs of the instants ``replaced``, in a table of one file group."""
    files = [file for each in sorted(replaced) for file in logs_of(table, each)]
    blocks = [block for file in files for block in read_log_file(pa.py_buffer(file.read_bytes()), file.name, lambda _: True)]
    headers = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.SCHEMA: blocks[0].block.headers[HeaderKey.SCHEMA],
        HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(sorted(replaced)),
    }
    pieces = encode_block(BlockKind.PARQUET_DATA, headers, [_merged([each for each in blocks if isinstance(each, RowsBlock)])])
    for block in blocks:
        if isinstance(block, DeleteBlock):
            pieces += encode_block(BlockKind.DELETE, headers, [block.block.content])
    name = parse_log_name(files[0].name)
    assert name is not None
    written = table / log_name(name.file_id, instant, 1, "0-0-0")
    written.write_bytes(b"".join(bytes(memoryview(piece)) for piece in pieces))
    _complete(table / ".hoodie" / "timeline", instant, name.file_id, written)


def _merged(blocks: Collection[RowsBlock]) -> bytes:
    newest = {row[RECORD_KEY]: row | {"note": MARK} for block in blocks for row in block.read().to_pylist()}
    written = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(newest.values()), schema=next(iter(blocks)).schema), written)
    return written.getvalue()


def _complete(timeline: Path, instant: str, file_id: str, log: Path) -> None:
    newest = max(timeline.glob("*_*.deltacommit"), key=lambda file: file.name.partition("_")[2])
    schema = decode_commit(newest.read_bytes(), newest.name).extra["schema"]
    stat = WriteStat(file_id, "", log.name, log.stat().st_size, 0, 0, 1)
    metadata = encode_commit(instant, [WriteStatus(stat, DataFile(log.name, stat.size, "", ""))], schema, "LOG_COMPACT", {})
    for state in ("requested", "inflight"):
        (timeline / f"{instant}.logcompaction.{state}").touch()
    completion = int(newest.name.partition("_")[2].partition(".")[0]) + 1
    (timeline / f"{instant}_{completion}.deltacommit").write_bytes(metadata)


class LogCompacted:
    """A table with one slice of a base file and three logs; ``ordering`` as in ``create_table``, "" by commits.

    Its keys say what the logs do to them; all rows have one ordering value, so the later log wins.
    """

    def __init__(self, path: Path, ordering: str) -> None:
        self.path = path
        fields: list[Field] = [pa.field("id", pa.string()), pa.field("ts", pa.int64()), pa.field("note", pa.string())]
        schema = pa.schema(fields)
        table = hudi.create_table(str(path), schema, record_key="id", ordering=ordering or None, buckets=1)

        def rows(note: str, *keys: str) -> pa.Table:
            return pa.table([list(keys), [1] * len(keys), [note] * len(keys)], schema=schema)

        table.upsert(rows("base", "updated once", "updated again", "deleted"))
        first = table.upsert(rows("first", "updated once", "updated again")).instant
        with table.transaction() as both:
            both.upsert(rows("second", "updated again"))
            both.delete(rows("", "deleted").select(["id", "ts"] if ordering else ["id"]))
        second = table.commits()[-1].instant
        self.replaced = [first, second]
        self._newest = table.upsert(rows("third", "updated again")).instant

    def compact_logs(self) -> None:
        """The two older logs; the log compaction's instant is younger than that of the third."""
        write_log_compaction(self.path, str(int(self._newest) + 1), self.replaced)

    def remove(self, which: int) -> None:
        """Deletes the files of a replaced instant."""
        for file in logs_of(self.path, self.replaced[which]):
            file.unlink()
