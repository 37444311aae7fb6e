"""How Hudi stores instants: as Avro containers with one record (Hudi: TimelineMetadataUtils)."""

import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import fastavro
from fastavro.schema import SchemaParseException

from headgate_tables.commitlog.fields import Fields, Json, UnfitError, json_map, text
from headgate_tables.errors import CorruptFileError

STRING: dict[str, Json] = {"type": "string", "avro.java.string": "String"}
"""With a hint for Hudi's Java classes, which hold Strings."""
VERSION: dict[str, Json] = {"name": "version", "type": ["int", "null"], "default": 1}
_NAMESPACE = "org.apache.hudi.avro.model"
_SYNC = bytes(range(16))
"""Ends a block in a container; any 16 bytes. Fixed, because a takeover must find the bytes that the slot decided."""
_DECODE_ERRORS = (
    *(UnfitError, ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError, RecursionError),
    *(StopIteration, EOFError, struct.error, zlib.error, SchemaParseException),
)
_T = TypeVar("_T")


def required(name: str, kind: Json) -> dict[str, Json]:
    """A field that is always there."""
    return {"name": name, "type": kind}


def optional(name: str, kind: Json) -> dict[str, Json]:
    """A field that is null unless it is set."""
    return {"name": name, "type": ["null", kind], "default": None}


def array(items: Json) -> dict[str, Json]:
    """A list."""
    return {"type": "array", "items": items}


def mapping(values: Json) -> dict[str, Json]:
    """A map with texts as keys."""
    return {"type": "map", "values": values, "avro.java.string": "String"}


def record(name: str, fields: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """A record of Hudi's model."""
    return {"type": "record", "name": f"{_NAMESPACE}.{name}", "fields": list(fields)}


class Container:
    """Files of one kind, with one schema."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._schema = fastavro.parse_schema(schema)
        out = io.BytesIO()
        fastavro.writer(out, self._schema, [], sync_marker=_SYNC)
        self._header = out.getvalue()  # holds the schema, which takes longer to write than most records

    def encode(self, content: Mapping[str, Json]) -> bytes:
        """The whole file; the same content always gives the same bytes. Fields that are left out take their defaults."""
        body = io.BytesIO()
        fastavro.schemaless_writer(body, self._schema, content)
        return self._header + _varint(1) + _varint(body.tell()) + body.getvalue() + _SYNC


def decode(data: bytes, path: str, names: Sequence[str], make: Callable[[Fields], _T]) -> _T:
    """``make`` of the record in a file of any version of Hudi, with that version's fields. ``names``: of records to accept.

    Raises CorruptFileError when the file is no Avro container with such a record, or when ``make`` misses a field in it.
    """
    try:
        reader = fastavro.reader(io.BytesIO(data))
        if reader.codec != "null":
            raise ValueError(f"it is compressed ({reader.codec}), as no program of Hudi's does")
        _check_schema(reader.metadata["avro.schema"])
        name = text(json_map(reader.writer_schema)["name"])
        found = Fields(next(iter(reader)))
        if name.rpartition(".")[2] not in names:
            raise ValueError(name)
        return make(found)
    except _DECODE_ERRORS as error:
        raise CorruptFileError(
            f"{path} is not a {names[0]}: {error!r}", fix="Restore the file from a copy of the table."
        ) from error


@lru_cache(maxsize=64)
def _check_schema(schema: str) -> None:
    """Hudi compresses no metadata, and every value in it takes a byte at least: so what a file holds is not much more than its
    bytes. Raises ValueError for a schema of which that does not hold.
    """
    pending: list[tuple[object, bool]] = [(json.loads(schema), False)]
    while pending:
        part, in_union = pending.pop()
        if isinstance(part, list):
            pending += [(branch, True) for branch in part]
        elif isinstance(part, dict):
            if part.get("type") == "record" and not part.get("fields"):
                raise ValueError("a record without fields")
            if part.get("type") == "fixed" and part.get("size") == 0:
                raise ValueError("a fixed of no bytes")
            pending += [(part[key], False) for key in ("type", "items", "values") if key in part]
            pending += [(field["type"], False) for field in part.get("fields", ())]
        elif part == "null" and not in_union:
            raise ValueError("a null that is no choice")  # which takes no bytes, so that an array of them may be endless


def _varint(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    return out.getvalue()
