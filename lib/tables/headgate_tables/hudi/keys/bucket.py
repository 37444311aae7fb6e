"""Which bucket a record belongs to, and the names that follow from that: file group ids and key groups.

Hudi's simple bucket index (Hudi: BucketIdentifier): the strings that `index_values` finds in a record key are hashed as a
Java ``List<String>``, and the bucket is that hash without its sign, modulo the number of buckets. The table does not
record that number (rule FI2).
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, index_array, pc
from headgate_tables.errors import CorruptFileError, OptionError
from headgate_tables.hudi.keys.java_hash import Int32s, java_string_hash, utf8_parts
from headgate_tables.hudi.keys.record_key import EMPTY, NULL, KeySpec, RecordKeys

Hashes: TypeAlias = npt.NDArray[np.uint32]

MAX_BUCKETS = 10**8  # eight digits in a file id
_31 = np.uint32(31)


def record_hashes(records: RecordKeys, spec: KeySpec) -> Hashes:
    """The list hash of each record, uint32: what `buckets_of_hashes` makes a bucket of. Equal keys have equal hashes.

    The index field is the whole record key, or each value of a key of several fields, except in the few rows that
    `index_values` reads differently; only those are processed one by one.
    """
    hashes = _list_hash(records.values if len(spec.fields) > 1 else (records.keys,))
    rows = np.flatnonzero(_taken_apart_otherwise(records, spec))
    if len(rows):
        _hash_one_by_one(hashes, rows, records.keys, spec)
    return hashes


def buckets_of_hashes(hashes: Hashes, buckets: int | Hashes) -> Int32s:
    """The hashes without their sign, modulo the number of buckets: the bucket that Hudi 1.x gives each record, int32.

    ``buckets``: one number, or uint32[n], one for each record. Raises OptionError unless 1 <= buckets <= MAX_BUCKETS.
    """
    if isinstance(buckets, int) and not 1 <= buckets <= MAX_BUCKETS:
        raise OptionError(f"{buckets} buckets", fix=f"Use 1 to {MAX_BUCKETS:,} buckets.")
    return ((hashes & np.uint32(0x7FFFFFFF)) % (np.uint32(buckets) if isinstance(buckets, int) else buckets)).view(np.int32)


def index_values(key: str, fields: Sequence[str]) -> list[str | None] | None:
    """The strings that Hudi 1.x hashes for a record key; None where its parser would never return.

    A key without both ',' and ':' is one string. Any other is read as ``name:value,name:value``, a value ending at the last
    comma before the next colon, and the values of the key fields are hashed, or the whole key if no name matches. A last
    part that has a foreign name and a second colon sends Hudi 1.2.0 into an endless loop (seen). Source: Hudi's
    KeyGenUtils.extractRecordKeysByFields since 1.0 (HUDI-8403), compared with it on random keys.
    """
    if "," not in key or ":" not in key:
        return [key]
    values: list[str | None] = []
    start = 0
    while start < len(key):
        colon = key.index(":", start)
        comma = key.find(",", colon)
        next_colon = key.find(":", comma) if comma >= 0 else -1
        end = key.rfind(",", colon, next_colon) if next_colon >= 0 else len(key)
        if key[start:colon] in fields:
            value = key[colon + 1 : end]
            values.append(None if value == NULL else "" if value == EMPTY else value)
        elif next_colon < 0 and ":" in key[colon + 1 :]:
            return None
        start = end + 1
    return values or [key]


def file_id(table_uuid: uuid.UUID, partition_path: str, bucket: int, k: int) -> str:
    """The file group id of a bucket's k-th group (rule FI1): the bucket in eight digits, 28 characters of a UUID, ``-0``.

    The UUID is version 5, its namespace the table's UUID, its name the text ``<bucket, 8 digits>/<k>/<partition path>``.
    Writers that know nothing of each other thus agree on the id. Fixed for ever by test_the_file_id_of_a_bucket_never_changes.
    """
    if not (0 <= bucket < MAX_BUCKETS and k >= 0):
        raise OptionError(f"no file group for bucket {bucket} and k {k}", fix="Use 0 <= bucket < 10**8 and k >= 0.")
    rest = str(uuid.uuid5(table_uuid, f"{bucket:08d}/{k}/{partition_path}"))[8:]
    return f"{bucket:08d}{rest}-0"


def bucket_of(file_id: str) -> int:
    """The bucket in a file group id; raises CorruptFileError if the id does not begin with one."""
    digits = file_id[:8]
    if len(digits) < 8 or not (digits.isascii() and digits.isdigit()) or file_id[8:9] != "-":
        raise CorruptFileError(
            f"the file group id {file_id!r} does not begin with a bucket number",
            fix="Another program wrote it, with another index. Delete no file, because its rows may be committed: call adopt() "
            "to learn which instants to undo. Programs have to write with the table's simple bucket index.",
        )
    return int(digits)


def key_group(partition_path: str, bucket: int, key_groups: int = 128) -> int:
    """The key group of a bucket of a partition (rule EX3): CRC-32 of the UTF-8 text ``<partition path>/<bucket>``, modulo."""
    if key_groups < 1:
        raise OptionError(f"{key_groups} key groups", fix="Use at least one.")
    return zlib.crc32(f"{partition_path}/{bucket}".encode()) % key_groups


def _list_hash(fields: Sequence[Array]) -> Hashes:
    """``List.hashCode`` in Java: h = 31 * h + hash of the element, from 1."""
    hashes = np.ones(len(fields[0]), np.uint32)
    for field in fields:
        hashes *= _31
        hashes += java_string_hash(field).view(np.uint32)
    return hashes


def _taken_apart_otherwise(records: RecordKeys, spec: KeySpec) -> npt.NDArray[np.bool_]:
    """Rows whose `index_values` may differ from the key (one field) or from the values (several)."""
    rows = np.zeros(len(records.keys), np.bool_)
    if len(spec.fields) > 1:
        for each in records.values:
            if _holds(each, ",") and _holds(each, ":"):
                rows |= _true(pc.match_substring_regex(each, "(?s),.*:"))
    elif _holds(records.keys, ",") and _holds(records.keys, ":"):
        rows = _true(pc.match_substring(records.keys, ",")) & _true(pc.match_substring(records.keys, f"{spec.fields[0]}:"))
    return rows


def _hash_one_by_one(hashes: Hashes, rows: npt.NDArray[np.intp], keys: pa.StringArray, spec: KeySpec) -> None:
    """Overwrites ``hashes[rows]``, except for keys that Hudi can never write, for which the usual hash is as good."""
    lists = [index_values(str(key), spec.fields) for key in keys.take(index_array(rows)).to_pylist()]
    strings = pa.array([value for values in lists for value in values or ()], pa.string())
    of_strings = iter(java_string_hash(strings).tolist())
    for row, values in zip(rows.tolist(), lists, strict=True):
        if values is not None:
            h = 1
            for _ in values:
                h = (31 * h + next(of_strings)) & 0xFFFFFFFF
            hashes[row] = h


def _holds(values: pa.StringArray, character: str) -> bool:
    """Whether the character is anywhere in the column: two passes over the bytes instead of a search in each value."""
    return bool((utf8_parts(values)[0] == ord(character)).any())


def _true(mask: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), np.bool_)
