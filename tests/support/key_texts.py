"""Buckets of record keys, also of those that another program wrote, from ``_hoodie_record_key`` alone."""

import re

import pyarrow as pa

from headgate_tables.hudi.keys.bucket import buckets_of_hashes, record_hashes
from headgate_tables.hudi.keys.record_key import EMPTY, NULL, KeySpec, RecordKeys

_MISSING = {NULL: None, EMPTY: ""}


def record_buckets(records: RecordKeys, spec: KeySpec, buckets: int) -> list[int]:
    """The bucket of each record."""
    found: list[int] = buckets_of_hashes(record_hashes(records, spec), buckets).tolist()
    return found


def records_of_text(keys: pa.StringArray, spec: KeySpec) -> RecordKeys:
    """The keys with the values in them, as `read_keys` gives them for the rows."""
    if len(spec.fields) == 1:
        return RecordKeys(keys, (keys,))
    *others, last = (re.escape(field) for field in spec.fields)
    pattern = re.compile("".join(f"{field}:(.*?)," for field in others) + f"{last}:(.*)", re.DOTALL)
    found = [pattern.fullmatch(str(key)) for key in keys.to_pylist()]
    rows = [[_MISSING.get(value, value) for value in each.groups()] for each in found if each is not None]
    assert len(rows) == len(keys), "a key without the names of its fields"
    return RecordKeys(keys, tuple(pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)))
