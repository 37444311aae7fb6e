"""Opens the files that an operation pins: the base file and the blocks of its logs, each read in batches.

Only small log files are kept in memory; rows of other blocks are read from their place in the file, as often as needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import pyarrow as pa

from headgate_tables.errors import CorruptFileError, MissingFileError
from headgate_tables.face.operation import Operation, PinnedFile
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.base_reader import gone
from headgate_tables.hudi.entries import EntryReader
from headgate_tables.hudi.log.block import BlockKind, HeaderKey
from headgate_tables.hudi.log.frames import FilePart, Frames, read_frames
from headgate_tables.hudi.log.names import parse_base_name, parse_log_name
from headgate_tables.hudi.log.reader import DeleteBlock, RowsBlock, read_log_file, select_blocks, whole_if_small
from headgate_tables.hudi.log.together import read_together
from headgate_tables.hudi.merge import Entries
from headgate_tables.hudi.parquet_checks import damaged
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.services.compaction.parquet_batches import BATCH_ROWS, ParquetBatches, RepeatingTexts
from headgate_tables.hudi.slice_reader import drop_compacted
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import Workers

_KEPT_BYTES = 32 * 1024 * 1024
"""Total of the small log files, which are read once and kept: most slices have no others."""
_SMALL_BYTES = 4 * 1024 * 1024
_PARALLEL = 16
_SHORT_ENTRY = 24
"""Bytes of a delete with a short key; most entries are longer, and rows in Avro much longer."""


class PinnedSlice:
    """The pinned files. Raises MissingFileError or CorruptFileError when one is not as it was pinned, here and in reads."""

    def __init__(self, store: Store, operation: Operation) -> None:
        self._store = store
        self.operation = operation
        self._texts = RepeatingTexts()
        self._check_sizes()
        self._kept = self._read_small()
        self.blocks: list[PinnedBlock] = drop_compacted(_together([b for log in operation.logs for b in self._blocks(log)]))

    @contextlib.contextmanager
    def base(self) -> Iterator[ParquetBatches | None]:
        """The base file, open; None for a slice without one."""
        pinned = self.operation.base
        if pinned is None:
            yield None
            return
        path = self.operation.at(pinned.name)
        with _opened(self._store, path) as (source, remote):
            base = ParquetBatches(source, path, self._texts, remote=remote)
            name = parse_base_name(pinned.name)
            if name is not None and name.token == WRITE_TOKEN:
                base.check_columns()
            yield base

    def _check_sizes(self) -> None:
        pinned = [*self.operation.logs, *([self.operation.base] if self.operation.base else [])]
        paths = [self.operation.at(file.name) for file in pinned]
        for path, file, found in zip(paths, pinned, Workers(_PARALLEL).map(self._store.size, paths), strict=True):
            if found is None:
                raise MissingFileError(
                    f"{path} is pinned by a compaction, but not there",
                    fix="Restore it from a copy of the table. Without a copy its rows are lost: "
                    "`headgate table slice readmit TABLE SLICE --accept-loss` goes on without them.",
                )
            if found != file.size:
                raise CorruptFileError(
                    f"{path} has {found} bytes, and had {file.size} when its compaction was planned",
                    fix="Restore it from a copy of the table; files of a table never change.",
                )

    def _read_small(self) -> dict[str, pa.Buffer]:
        small: list[PinnedFile] = []
        total = 0
        for log in self.operation.logs:
            if log.size <= _SMALL_BYTES and total + log.size <= _KEPT_BYTES:
                small.append(log)
                total += log.size
        paths = [self.operation.at(log.name) for log in small]
        return dict(zip(paths, Workers(_PARALLEL).map(self._get, paths), strict=True))

    def _get(self, path: str) -> pa.Buffer:
        try:
            return self._store.get(path)
        except FileNotFoundError as error:
            raise gone(path) from error

    def _blocks(self, log: PinnedFile) -> list[PinnedBlock]:
        """The blocks that count: those of the file's own instant (a pinned log is committed)."""
        path = self.operation.at(log.name)
        name = parse_log_name(log.name)
        if name is None:
            raise damaged(path, "its name is not a log file's")
        # Our files are durable before they get a name, so a torn one is damage; files of others may end in a failed append.
        ours = name.token == WRITE_TOKEN
        counts: Callable[[str], bool] = (lambda _: True) if ours else (lambda instant: instant == name.instant)
        frames = None if path in self._kept else self._frames(path, log.size)
        if frames is None:
            whole = self._kept.get(path) or self._get(path)
            blocks = read_log_file(whole, path, counts, strict=ours)
        else:
            blocks = select_blocks(frames.blocks, log.size, path, counts, strict=ours)
        for block in blocks:
            # A header has no checksum: under another instant the block would look like one that was never committed.
            if ours and block.instant != name.instant:
                raise damaged(path, f"a block of it carries the instant {block.instant}")
        places = frames.contents if frames is not None else {}
        return [PinnedBlock(self._store, block, places.get(block.offset), ours, self._texts) for block in blocks]

    def _frames(self, path: str, size: int) -> Frames | None:
        with _opened(self._store, path) as (file, _):
            return read_frames(file, size, path)


@dataclass(frozen=True)
class PinnedBlock:
    """A block of a log. ``place``: start and length of its content in the file, None when ``block`` holds it. ``ours``: written
    by this library. ``texts``: which texts repeat in the slice.
    """

    store: Store
    block: RowsBlock | DeleteBlock
    place: tuple[int, int] | None
    ours: bool
    texts: RepeatingTexts

    @property
    def instant(self) -> str:
        """The delta commit that wrote it."""
        return self.block.instant

    @property
    def compacted(self) -> Sequence[str]:
        """Instants whose blocks this one replaces."""
        return self.block.compacted

    @property
    def has_rows(self) -> bool:
        """Whether it holds rows; other blocks hold deletes."""
        return isinstance(self.block, RowsBlock)

    @property
    def is_partial(self) -> bool:
        """Whether its rows hold only some of the columns."""
        return isinstance(self.block, RowsBlock) and self.block.partial

    def about_entries(self) -> int:
        """Number of entries: exact for rows in Parquet, for others an upper estimate."""
        if not self._is_parquet:
            return (self.place[1] if self.place else self.block.block.content.size) // _SHORT_ENTRY
        with self._batches() as rows:
            return rows.rows

    def entries(self, reader: EntryReader) -> Iterator[Entries]:
        """Keys and ordering values, in batches."""
        if isinstance(self.block, DeleteBlock):
            yield reader.of_deletes(cast(DeleteBlock, self._loaded()))
        elif self._is_parquet:
            with self._batches() as rows:
                for batch in rows.stored_batches(reader.names(rows.stored.names, self.block.where)):
                    yield reader.of_rows(batch, self.block.path)
        else:
            block = cast(RowsBlock, self._loaded())
            yield reader.of_rows(block.read(reader.names(block.column_names, block.where)), block.path)

    def rows(self, target: pa.Schema, *, dictionaries: bool = True) -> Iterator[pa.Table]:
        """The rows as ``target`` has them, in batches; see ``ParquetBatches.batches``. Nothing for a block of deletes."""
        if self._is_parquet:
            with self._batches() as rows:
                yield from rows.batches(target, dictionaries=dictionaries)
        elif isinstance(self.block, RowsBlock):
            block = cast(RowsBlock, self._loaded())
            table = conform(block.read(target.names), target, block.path)
            for start in range(0, table.num_rows, BATCH_ROWS):
                yield table.slice(start, BATCH_ROWS)

    def read_whole(self, names: Sequence[str], schema: pa.Schema) -> pa.Table:
        """All rows at once, in those of the columns that the block has, in the types of ``schema``."""
        block = cast(RowsBlock, self._loaded())
        rows = block.read([name for name in names if name in block.column_names])
        return conform(rows, pa.schema([schema.field(name) for name in rows.column_names]), block.path)

    @property
    def _is_parquet(self) -> bool:
        return self.block.block.kind is BlockKind.PARQUET_DATA

    @contextlib.contextmanager
    def _batches(self) -> Iterator[ParquetBatches]:
        if self.place is None:
            yield self._kept_batches
            return
        with self._part(self.place) as (part, remote):
            yield self._checked(ParquetBatches(part, self.block.where, self.texts, remote=remote))

    @cached_property
    def _kept_batches(self) -> ParquetBatches:
        """Kept open, because opening it costs as much as reading its keys."""
        return self._checked(ParquetBatches(pa.BufferReader(self.block.block.content), self.block.where, self.texts, remote=True))

    def _checked(self, rows: ParquetBatches) -> ParquetBatches:
        if self.ours:
            rows.check_columns(self.block.block.headers.get(HeaderKey.SCHEMA, ""))
        return rows

    @contextlib.contextmanager
    def _part(self, place: tuple[int, int]) -> Iterator[tuple[pa.NativeFile, bool]]:
        with _opened(self.store, self.block.path) as (file, remote), pa.PythonFile(FilePart(file, *place), mode="r") as part:
            yield part, remote

    def _loaded(self) -> RowsBlock | DeleteBlock:
        """The block with its content."""
        if self.place is None:
            return self.block
        with self._part(self.place) as (part, _):
            whole = dataclasses.replace(self.block.block, content=part.read_buffer())
        return dataclasses.replace(self.block, block=whole)


def _together(blocks: Sequence[PinnedBlock]) -> list[PinnedBlock]:
    shared = iter(read_together([each.block for each in blocks if each.place is None]))
    return [dataclasses.replace(each, block=next(shared)) if each.place is None else each for each in blocks]


@contextlib.contextmanager
def _opened(store: Store, path: str) -> Iterator[tuple[pa.NativeFile, bool]]:
    try:
        source = store.open_input(path)
    except FileNotFoundError as error:
        raise gone(path) from error
    with source:
        yield whole_if_small(source)
