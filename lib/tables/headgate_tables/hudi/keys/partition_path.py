"""The folder of each row, and the partition values of a folder.

Each field gives one folder: its value's text, escaped when the table is URL-encoded, after ``field=`` when it is hive-style
(Hudi: PartitionPathEncodeUtils). The mapping is one to one and never leaves the table's root, because values that would
break that are refused: null, which Hudi writes as ``__HIVE_DEFAULT_PARTITION__`` and reads back as null, so that three
values (null, empty, that text) would share one folder; ``.`` and ``..``; NUL; names longer than a file system allows; names
that Hudi reserves. A leading ``.`` or ``_`` hides nothing from Hudi's readers (seen with Spark 1.2.0, hudi-rs 0.5.0),
text other than ASCII stays as it is, and Unicode is not normalised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array, index_array, pc
from headgate_tables.errors import CorruptFileError, OptionError, PartitionValueError, UnsupportedTypeError
from headgate_tables.hive_folders import DEFAULT_PARTITION, MAX_FOLDER_BYTES, NO_FOLDERS
from headgate_tables.hudi.keys import columns
from headgate_tables.hudi.keys.java_hash import Int32s, Int64s

_USE = "partition"
_CONTROLS = [chr(c) for c in range(0x20)] + ["\x7f"]
_ESCAPES = {ord(c): f"%{ord(c):02X}" for c in _CONTROLS + list("\"#%'*/:=?\\{[]^")}
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
# Spark splits at '/', drops what precedes '=', decodes '%41' and cannot make a path of ':' (all seen with 1.2.0).
_ONLY_ESCAPED = frozenset([*_CONTROLS, *"/=%:\\"])


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How a table makes folders of its partition fields; without fields everything lies in the root.

    Raises OptionError for names that a folder name cannot carry.
    """

    fields: tuple[str, ...] = ()
    hive_style: bool = False
    url_encode: bool = True

    def __post_init__(self) -> None:
        if len(set(self.fields)) != len(self.fields):
            raise OptionError(f"partition fields {self.fields!r} repeat", fix="Name each partition column once.")
        for field in self.fields:
            if not field or field.startswith(".") or set(field) & {",", *map(chr, _ESCAPES)}:
                raise OptionError(f"{field!r} cannot be a partition field", fix="Rename the column to letters, digits and '_'.")


def partition_paths(table: pa.Table | pa.RecordBatch, spec: PartitionSpec) -> tuple[Int32s, list[str], list[tuple[object, ...]]]:
    """One dictionary over all rows: the int32 code of each row, and per code the path and the values, one per field.

    Every code occurs. Fields may be string, int8 to int64, bool or date32, dictionary-encoded or chunked.
    Raises PartitionValueError for a value that cannot be a folder, SchemaError for a missing column, UnsupportedTypeError.
    """
    codes: Int64s = np.zeros(table.num_rows, np.int64)
    paths: list[str] = [""] if table.num_rows else []
    values: list[tuple[object, ...]] = [()] if table.num_rows else []
    for field in spec.fields:
        field_codes, distinct = _distinct(table, field)
        folders = _folders(distinct, field, spec)
        codes, used = dense(codes * max(len(distinct), 1) + field_codes, len(paths) * len(distinct))
        pairs = [divmod(code, len(distinct)) for code in used.tolist()]
        plain = distinct.to_pylist()
        paths = [f"{paths[outer]}/{folders[inner]}" if paths[outer] else folders[inner] for outer, inner in pairs]
        values = [(*values[outer], plain[inner]) for outer, inner in pairs]
    return codes.astype(np.int32), paths, values


def is_partition_path(path: str) -> bool:
    """Whether a partition of some table could have this path: a caller's mistake must not count as damage of metadata."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return not path or ("\0" not in path and not {"", ".", ".."} & set(path.split("/")))


def parse_partition_path(path: str, spec: PartitionSpec, types: Sequence[pa.DataType]) -> dict[str, object]:
    """The partition values of a folder of the table, by field; ``types`` are those of the fields, in their order.

    ``__HIVE_DEFAULT_PARTITION__`` is None. A single field takes the whole path, as Spark reads ``2026/11/20`` of tables that
    are not URL-encoded. Raises CorruptFileError if the path is none of this table's, UnsupportedTypeError for a type whose
    text is not certain (such a table can be read, but not pruned by this path).
    """
    folders = [path] if len(spec.fields) == 1 else path.split("/") if path else []
    if len(folders) != len(spec.fields):
        _no_partition(path, f"has {len(folders)} folders for {len(spec.fields)} partition columns")
    values: dict[str, object] = {}
    for field, folder, of in zip(spec.fields, folders, types, strict=True):
        written = folder
        if spec.hive_style:
            if not folder.startswith(f"{field}="):
                _no_partition(path, f"has {folder!r} where {field!r}= is expected")
            written = folder[len(field) + 1 :]
        if spec.url_encode:
            written = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), written)
        values[field] = None if written == DEFAULT_PARTITION else _typed(written, path, field, of)
    return values


def _distinct(table: pa.Table | pa.RecordBatch, field: str) -> tuple[Int64s, Array]:
    """Codes and distinct values of a column, in the order of their first row or of the column's own dictionary."""
    values = columns.column(table, field, _USE)
    if pa.types.is_nested(values.type):
        _refuse_type(values.type, field)
    nulls: pa.BooleanArray = pc.is_null(values)
    if isinstance(values, pa.DictionaryArray) and values.dictionary.null_count:
        nulls = pc.is_null(values.dictionary.take(values.indices))
    if nulls.true_count:
        raise PartitionValueError(
            f"the partition column {field!r} is null in {nulls.true_count} of {len(values)} rows, "
            f"first in row {pc.index(nulls, True).as_py()}",
            fix="Give these rows a value, for example 'unknown', or leave them out.",
        )
    if not isinstance(values, pa.DictionaryArray):
        encoded = values.dictionary_encode()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary
    codes = values.indices.to_numpy().astype(np.int64)
    encoded = values.dictionary.dictionary_encode()  # a given dictionary may hold a value twice, or values of no row
    if encoded.null_count or len(encoded.dictionary) != len(encoded):
        codes = encoded.indices.fill_null(0).to_numpy().astype(np.int64)[codes]
    codes, used = dense(codes, len(encoded.dictionary))
    return codes, encoded.dictionary.take(index_array(used))


def dense(codes: Int64s, possible: int) -> tuple[Int64s, Int64s]:
    """The codes renumbered so that each occurs, and the old code of each new one, ascending."""
    if possible > 4 * len(codes) + 1024:  # a table of all possible codes would be larger than the rows
        used, dense = np.unique(codes, return_inverse=True)
        return dense, used
    occurs = np.zeros(possible, np.bool_)
    occurs[codes] = True
    used = np.flatnonzero(occurs)
    return (np.cumsum(occurs) - 1)[codes] if len(used) < possible else codes, used


def _folders(distinct: Array, field: str, spec: PartitionSpec) -> list[str]:
    if pa.types.is_decimal(distinct.type):
        _refuse_type(distinct.type, field)
    try:
        return [_folder(str(value), field, spec) for value in columns.text(distinct, field, _USE).to_pylist()]
    except UnicodeDecodeError as e:
        raise PartitionValueError(
            f"the partition column {field!r} holds text that is not UTF-8", fix="Cast it from its real encoding."
        ) from e


def _folder(value: str, field: str, spec: PartitionSpec) -> str:
    if value in NO_FOLDERS:
        _refuse(value, field, "cannot be a folder of its own")
    if "\0" in value:
        _refuse(value, field, "holds NUL")
    if spec.url_encode:
        folder = value.translate(_ESCAPES)
    elif unsafe := _ONLY_ESCAPED & set(value):
        _refuse(value, field, f"holds {min(unsafe)!r}, which only a URL-encoded table can keep in a folder name")
    else:
        folder = value
    folder = f"{field}={folder}" if spec.hive_style else folder
    if folder.startswith(".hoodie"):
        _refuse(value, field, "begins like Hudi's own files")
    if (size := len(folder.encode())) > MAX_FOLDER_BYTES:
        _refuse(value, field, f"makes a folder name of {size} bytes, and {MAX_FOLDER_BYTES} are possible")
    return folder


def _refuse_type(of: pa.DataType, field: str) -> NoReturn:
    raise UnsupportedTypeError(
        f"{of} cannot be the type of partition column {field!r}", fix="Cast the column to string or to an integer."
    )


def _refuse(value: str, field: str, why: str) -> NoReturn:
    shown = repr(value) if len(value) <= 40 else f"{value[:40]!r}... of {len(value)} characters"
    raise PartitionValueError(
        f"the value {shown} of partition column {field!r} {why}",
        fix="Change the value or leave its rows out. To keep such text, partition by a column made from it.",
    )


def _typed(text: str, path: str, field: str, of: pa.DataType) -> object:
    if isinstance(of, pa.DictionaryType):
        of = of.value_type
    if pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of):
        return text
    if not (pa.types.is_signed_integer(of) or pa.types.is_boolean(of) or pa.types.is_date32(of)):
        raise UnsupportedTypeError(
            f"{of} is not a type for partition column {field!r}", fix="Read the table without pruning by it."
        )
    try:
        return pa.scalar(text, pa.string()).cast(of).as_py()
    except pa.ArrowInvalid:
        _no_partition(path, f"has {text!r} for column {field!r} of type {of}")


def _no_partition(path: str, why: str) -> NoReturn:
    raise CorruptFileError(
        f"the folder {path!r} is not a partition of this table: it {why}",
        fix="Check hoodie.table.partition.fields and the hive-style and URL-encoding settings, or remove the folder.",
    )
