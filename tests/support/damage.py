"""A small table of ours, and ways to hurt its files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables import hudi
from support.tables import as_text, create, keys, rows


def layered_table(folder: Path) -> Path:
    """Partition ``p``: one base file, a log of rows, a log of deletes. Partition ``q``: a base file. Tests copy it."""
    made = create(folder, buckets=1)
    made.upsert(rows(*((f"k{number}", number, f"note {number}") for number in range(10))))
    made.upsert(rows(("k1", 100, "new"), ("k3", 2, "late"), ("z", 5, "fresh")))
    made.delete(keys(("k5", 100), ("k6", 2)))
    made.upsert(rows(("elsewhere", 1, "x"), part="q"))
    return folder / "table"


def path_of(table: hudi.Table, kind: str) -> str:
    """From the table's root: the ``base`` file of partition p, its log of ``rows``, its log of ``deletes``."""
    (group,) = (group for group in table.file_groups() if group.partition == "p")
    (part,) = group.slices()
    assert part.base is not None
    return part.path({"base": part.base, "rows": part.logs[0].name, "deletes": part.logs[1].name}[kind])


def full(table: hudi.Table, path: str) -> Path:
    """Where a path of the table lies."""
    return Path(table.url.removeprefix("file://")) / path


def text(table: hudi.Table) -> list[str]:
    """The rows, comparable."""
    return as_text(table.scan().to_table().to_pylist())


def wrong_paths(table: hudi.Table) -> list[str]:
    """What verify() names."""
    return [finding.path for finding in table.verify().findings]


def flip(content: bytes, at: int, bit: int = 0) -> bytes:
    """One bit is another."""
    flipped = bytearray(content)
    flipped[at] ^= 1 << bit
    return bytes(flipped)


def end_of_last_page(content: bytes, column: str = "") -> int:
    """In a Parquet file, or in a log file with a block of one; of the last column, or of that one.

    Only the keys of rows that newer ones replace are read, so damage to another column of theirs stays unseen.
    """
    start, end = content.index(b"PAR1"), content.rindex(b"PAR1") + 4
    group = pq.read_metadata(pa.BufferReader(content[start:end])).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    chunk = next(each for each in reversed(chunks) if each.path_in_schema == (column or each.path_in_schema))
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    return int(start + begin + chunk.total_compressed_size - 1)


@contextmanager
def changed(path: Path, content: bytes | None) -> Iterator[None]:
    """The file holds ``content`` for a while, or is gone."""
    before = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    yield
    path.write_bytes(before)
