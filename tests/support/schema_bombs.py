"""Arrow messages of some kilobytes that spell megabytes: parts of a flatbuffer that are reached over many paths.

Each bomb is well-formed: Arrow's own verifier takes it. Field numbers: Arrow's Message.fbs and Schema.fbs.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from support.flatbuffers import Part, Scalar, Structs, Table, Text, Vector, flatbuffer

_SCHEMA, _RECORD_BATCH = 1, 3
_INT, _TIMESTAMP, _LIST, _STRUCT, _FIXED_SIZE_BINARY = 2, 10, 12, 13, 15
_INT32: Final = {0: Scalar("<i", 32), 1: Scalar("<b", 1)}


def encapsulated(kind: int, header: Table, body: bytes = b"", metadata: Part | None = None) -> bytes:
    """A message of metadata version 5."""
    fields: dict[int, Scalar | Part] = {
        0: Scalar("<h", 4),
        1: Scalar("<B", kind),
        2: header,
        3: Scalar("<q", len(body)),
    }
    content = flatbuffer(Table(fields | ({4: metadata} if metadata else {})))
    return b"\xff\xff\xff\xff" + struct.pack("<i", len(content)) + content + body


def schema_of(columns: Sequence[Part], metadata: Part | None = None, of_message: Part | None = None) -> bytes:
    """A schema message. ``metadata``: of the schema."""
    fields: dict[int, Scalar | Part] = {0: Scalar("<h", 0), 1: Vector(columns)}
    return encapsulated(_SCHEMA, Table(fields | ({2: metadata} if metadata else {})), metadata=of_message)


def column(
    name: Text | str = "c",
    kind: int = _INT,
    described: Table | None = None,
    children: Part | None = None,
    metadata: Part | None = None,
) -> Table:
    """A nullable column of int32, if nothing else is said."""
    fields: dict[int, Scalar | Part] = {
        0: name if isinstance(name, Text) else Text(name.encode()),
        1: Scalar("<B", 1),
        2: Scalar("<B", kind),
        3: described or Table(_INT32 if kind == _INT else {}),
        5: children or Vector([]),
    }
    return Table(fields | ({6: metadata} if metadata else {}))


def pair(key: bytes, value: bytes) -> Table:
    """One entry of metadata."""
    return Table({0: Text(key), 1: Text(value)})


def shared_metadata(columns: int, entries: int, size: int) -> bytes:
    """One column with one entry of ``size`` bytes, each as often as it says."""
    entry = pair(b"k", b"v" * size)
    return schema_of([column(metadata=Vector([entry] * entries))] * columns)


def shared_children(width: int, depth: int) -> bytes:
    """A column of ``width ** depth`` nested ones."""
    kind = column()
    for _ in range(depth):
        kind = column(kind=_STRUCT, children=Vector([kind] * width))
    return schema_of([kind])


def shared_name(columns: int, size: int) -> bytes:
    """Columns of their own, all with one long name."""
    name = Text(b"n" * size)
    return schema_of([column(name) for _ in range(columns)])


def shared_zone(columns: int, size: int) -> bytes:
    """Columns with one time zone."""
    zone = Text(b"z" * size)
    return schema_of([column(f"c{n}", _TIMESTAMP, Table({0: Scalar("<h", 2), 1: zone})) for n in range(columns)])


def shared_value(entries: int, size: int) -> bytes:
    """Metadata of the schema: pairs of their own with one value."""
    value = Text(b"v" * size)
    return schema_of([column()], Vector([Table({0: Text(b"k%d" % n), 1: value}) for n in range(entries)]))


def metadata_of_the_message(entries: int, size: int) -> bytes:
    """Neither the schema's nor a column's: Arrow reads it, too."""
    return schema_of([column()], of_message=Vector([pair(b"k", b"v" * size)] * entries))


def deep(levels: int) -> bytes:
    """Lists in lists."""
    kind = column()
    for _ in range(levels - 1):
        kind = column(kind=_LIST, children=Vector([kind]))
    return schema_of([kind])


def wide_values(size: int) -> bytes:
    """A column whose every value, also null, has that many bytes."""
    return schema_of([column(kind=_FIXED_SIZE_BINARY, described=Table({0: Scalar("<i", size)}))])


def batch_of(
    nodes: int = 0, buffers: int = 0, views: int = 0, metadata: Part | None = None, body: bytes = b"", kind: int = _RECORD_BATCH
) -> bytes:
    """A batch of no rows that says it has so many parts, all empty."""
    parts: dict[int, Scalar | Part] = {
        0: Scalar("<q", 0),
        1: Structs(nodes, bytes(16 * nodes)),
        2: Structs(buffers, bytes(16 * buffers)),
    }
    if views:
        parts[4] = Structs(views, bytes(8 * views))
    return encapsulated(kind, Table(parts), body, metadata)


def batch_metadata(entries: int, size: int) -> bytes:
    """A batch with one entry of metadata, as often as it says."""
    return batch_of(metadata=Vector([pair(b"k", b"v" * size)] * entries))


SCHEMAS: Mapping[str, Callable[[], bytes]] = {
    "one column with metadata, many times": lambda: shared_metadata(2_000, 900, 1),
    "metadata of 4 GB": lambda: shared_metadata(30, 800, 180_000),
    "nested columns without end": lambda: shared_children(30, 6),
    "one name for all columns": lambda: shared_name(1_900, 250),
    "one time zone for all columns": lambda: shared_zone(1_500, 120_000),
    "one value in all metadata of the schema": lambda: shared_value(3_000, 50_000),
    "metadata of the message": lambda: metadata_of_the_message(3_000, 200_000),
}
"""Each would cost a reader that believes it seconds or gigabytes. At most 256 KiB."""
