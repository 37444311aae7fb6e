"""The blocks of one log file that count, in order, with their contents still encoded."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables.errors import CorruptFileError, UnsupportedTableError
from headgate_tables.hudi.log import avro_rows, deletes
from headgate_tables.hudi.log.block import CHECKSUM, Block, BlockKind, HeaderKey, checksum, read_blocks
from headgate_tables.hudi.log.deletes import DeleteRows
from headgate_tables.hudi.schema.avro_to_arrow import arrow_schema

PARQUET_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What pyarrow raises for damaged Parquet; the last for a column name that is not text."""

_ROLLBACK = "0"
_MOST_ROWS = 1 << 20
_MOST_ROWS_PER_BYTE = 64
"""Every row has a key of its own, and no encoding stores a thousand of those in as few bytes. A block is decoded whole."""
_AT_ONCE = 4 << 20
"""Bytes of a file. More: more memory for a reader that wants a column of it."""
_STORAGE_TYPES: dict[str, bool] = {} if int(pa.__version__.split(".")[0]) < 21 else {"arrow_extensions_enabled": False}
"""What else makes JSON and UUID columns extension types; before Arrow 21, nothing does."""


@dataclass(frozen=True)
class _LogBlock:
    """What blocks of rows and of deletes share.

    ``instant``: the delta commit that wrote the block. ``compacted``: instants whose blocks this one replaces (log compaction);
    empty otherwise. ``offset``: of the block in its file.
    """

    path: str
    instant: str
    compacted: Sequence[str]
    offset: int
    block: Block

    @property
    def where(self) -> str:
        """File and offset, for messages."""
        return f"{self.path} at byte {self.offset}"


@dataclass(frozen=True)
class RowsBlock(_LogBlock):
    """Rows, Avro or Parquet. ``partial``: the schema holds the changed columns only, others keep their older value.

    ``together``: reads these columns of it and of blocks beside it at once; None when it cannot (see ``together``).
    """

    partial: bool
    together: Callable[[Collection[str] | None], pa.Table | None] | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns as they are stored, meta columns included."""
        if self.parquet is None:
            return arrow_schema(_schema_json(self), self.where)
        try:
            return self.parquet.schema_arrow
        except PARQUET_ERRORS as error:
            raise _damaged(self, error) from error

    @property
    def column_names(self) -> list[str]:
        """Names in stored order."""
        return list(self.schema.names)

    @cached_property
    def num_rows(self) -> int:
        """Rows in the block, without decoding them."""
        return self.parquet.metadata.num_rows if self.parquet is not None else avro_rows.row_count(self.block.content, self.where)

    @cached_property
    def parquet(self) -> pq.ParquetFile | None:
        """The open file of a Parquet block, for row groups and statistics; None for Avro. Raises CorruptFileError."""
        if self.block.kind is not BlockKind.PARQUET_DATA:
            return None
        try:
            opened = open_parquet(pa.BufferReader(self.block.content))
        except PARQUET_ERRORS as error:
            raise _damaged(self, error) from error
        if opened.metadata.num_rows > _MOST_ROWS + _MOST_ROWS_PER_BYTE * self.block.content.size:
            raise _damaged(self, f"{opened.metadata.num_rows} rows in {self.block.content.size} bytes")
        return opened

    def read(self, columns: Collection[str] | None = None) -> pa.Table:
        """Rows of these columns (None = all; names that the block lacks are left out), in stored types and order.

        May be called again for other columns. Raises CorruptFileError for a page, or a block of Avro, whose checksum is wrong.
        """
        if self.parquet is None:
            _check_sum(self)
            rows = self.together(columns) if self.together is not None else None
            return rows if rows is not None else avro_rows.decode(self.block.content, _schema_json(self), columns, self.where)
        names = None if columns is None else [name for name in self.column_names if name in columns]
        try:
            rows = self.parquet.read(columns=names, use_threads=False)
        except PARQUET_ERRORS as error:
            raise _damaged(self, error) from error
        if rows.num_rows != self.num_rows:
            raise _damaged(self, f"{rows.num_rows} of {self.num_rows} rows are there")
        return rows


@dataclass(frozen=True)
class DeleteBlock(_LogBlock):
    """Deletes by key."""

    @cached_property
    def rows(self) -> DeleteRows:
        """The decoded records. Raises CorruptFileError, UnsupportedTableError."""
        return deletes.decode(self.block.content, self.where)


def read_log_file(
    buf: pa.Buffer, path: str, is_committed: Callable[[str], bool], *, strict: bool = False
) -> list[RowsBlock | DeleteBlock]:
    """The blocks whose instant ``is_committed``, in file order, without those that a later rollback block undoes.

    ``buf``: the whole file; blocks keep slices of it. Damaged stretches are skipped as Hudi does, because a writer that died
    may have left one; with ``strict`` (a file whose size the commit vouches for) they raise CorruptFileError.
    Raises UnsupportedTableError for HFile and change-data blocks, which belong to other kinds of table and file.
    """
    return select_blocks(read_blocks(buf, path), buf.size, path, is_committed, strict=strict)


def select_blocks(
    blocks: Iterable[Block], size: int, path: str, is_committed: Callable[[str], bool], *, strict: bool
) -> list[RowsBlock | DeleteBlock]:
    """As ``read_log_file``, for the blocks of a file of ``size`` bytes; their contents are not read."""
    found: list[RowsBlock | DeleteBlock] = []
    end = 0
    for block in blocks:
        end = block.offset + block.size
        if block.kind is BlockKind.CORRUPT:
            if strict:
                raise _torn(path, block.offset)
        elif block.kind is BlockKind.COMMAND:
            _roll_back(found, block, f"{path} at byte {block.offset}")
        else:
            _append(found, block, path, is_committed)
    if strict and (end != size or not size):
        raise _torn(path, end)
    return found


def open_parquet(source: pa.NativeFile, *, buffer_size: int = 0, dictionaries: Collection[str] = ()) -> pq.ParquetFile:
    """A Parquet file of any Hudi writer: verifies page checksums where there are any, reads INT96 times as microseconds.

    ``buffer_size``: bytes of a column read at a time; 0 fetches all columns of the wanted row groups at once.
    ``dictionaries``: columns of text or bytes that come as dictionary arrays.
    """
    return pq.ParquetFile(
        source,
        read_dictionary=list(dictionaries),
        buffer_size=buffer_size,
        pre_buffer=buffer_size == 0,
        page_checksum_verification=True,
        coerce_int96_timestamp_unit="us",
        **_STORAGE_TYPES,  # type: ignore[arg-type]
    )


def whole_if_small(source: pa.NativeFile) -> tuple[pa.NativeFile, bool]:
    """The file, or its bytes if they are few; whether all columns of a row group are to be fetched at once.

    Read through a buffer, Arrow takes the memory that a page says it has, 2 GiB if a bit of its header is flipped, before it
    looks whether so much is there.
    """
    if isinstance(source, pa.PythonFile | pa.BufferReader):
        return source, True
    return (pa.BufferReader(source.read_buffer()), True) if source.size() <= _AT_ONCE else (source, False)


def _append(found: list[RowsBlock | DeleteBlock], block: Block, path: str, is_committed: Callable[[str], bool]) -> None:
    instant = _header(block, HeaderKey.INSTANT_TIME, f"{path} at byte {block.offset}")
    if not is_committed(instant):
        return
    compacted = tuple(time for time in block.headers.get(HeaderKey.COMPACTED_BLOCK_TIMES, "").split(",") if time)
    if block.kind is BlockKind.DELETE:
        found.append(DeleteBlock(path, instant, compacted, block.offset, block))
    elif block.kind in (BlockKind.PARQUET_DATA, BlockKind.AVRO_DATA):
        partial = block.headers.get(HeaderKey.IS_PARTIAL, "").lower() == "true"
        found.append(RowsBlock(path, instant, compacted, block.offset, block, partial))
    else:
        raise UnsupportedTableError(
            f"{path} at byte {block.offset}: a log block of kind {block.kind.name}", fix="Read this table with Spark."
        )


def _roll_back(found: list[RowsBlock | DeleteBlock], block: Block, where: str) -> None:
    command = _header(block, HeaderKey.COMMAND_BLOCK_TYPE, where)
    if command != _ROLLBACK:
        raise UnsupportedTableError(
            f"{where}: log command {command!r}", fix="Read the table with a newer version of this library, or with Spark."
        )
    target = _header(block, HeaderKey.TARGET_INSTANT_TIME, where)
    while found and found[-1].instant == target:
        found.pop()


def _schema_json(block: RowsBlock) -> str:
    return _header(block.block, HeaderKey.SCHEMA, block.where)


def _header(block: Block, key: HeaderKey, where: str) -> str:
    try:
        return block.headers[key]
    except KeyError as error:
        raise CorruptFileError(
            f"{where}: a log block without {key.name}", fix="Restore the file from a copy, or see what wrote it."
        ) from error


def _check_sum(block: RowsBlock) -> None:
    given = block.block.headers.get(HeaderKey.BLOCK_IDENTIFIER, "")
    if given.startswith(CHECKSUM) and given != checksum(block.block.headers, [block.block.content]):
        raise CorruptFileError(
            f"{block.where}: the bytes of an Avro block are not those that were written",
            fix="Restore the file from a copy; verify() names every damaged file.",
        )


def _damaged(block: RowsBlock, error: Exception | str) -> CorruptFileError:
    return CorruptFileError(
        f"{block.where}: Parquet rows cannot be decoded ({error})",
        fix="Restore the file from a copy; verify() names every damaged file.",
    )


def _torn(path: str, offset: int) -> CorruptFileError:
    return CorruptFileError(
        f"{path} is damaged from byte {offset} on", fix="Restore the file from a copy; verify() names every damaged file."
    )
