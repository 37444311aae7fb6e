"""Arrow messages that no serializer writes: schemas and record batches drawn part by part, right in form, strange in content."""

import struct
from collections.abc import Callable, Sequence
from random import Random

import pyarrow as pa

from support.flatbuffers import Part, Scalar, Structs, Table, Text, Vector
from support.schema_bombs import encapsulated, schema_of

_SIZES = (-(2**63), -(2**31), -1, 0, 1, 2, 3, 8, 127, 2**15, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
_TEXTS = (
    b"",
    b"id",
    b"part",
    b"ts",
    b"note",
    b"op",
    b"\xff\xfe",
    b"a\0b",
    b"x" * 300,
    b"UTC",
    b"ARROW:extension:name",
    b"arrow.uuid",
)
_KINDS = 27
"""Of Schema.fbs; one more is unknown to Arrow, too."""


def draw_schema(random: Random) -> bytes:
    """Up to some columns of any type, with parts that are shared now and then."""
    shared: list[Part] = []
    columns = [_column(random, shared, 0) for _ in range(random.choice((0, 1, 2, 4, 30)))]
    return schema_of(
        columns, _maybe(random, lambda: _metadata(random, shared)), _maybe(random, lambda: _metadata(random, shared))
    )


def draw_batch(random: Random, rows: pa.RecordBatch) -> bytes:
    """A batch of as many parts as ``rows`` has, but for one that is wrong; or one of any parts."""
    right = _right(rows) if random.random() < 0.7 else _any(random)
    nodes, buffers, body = right
    length = rows.num_rows
    for _ in range(random.randint(0, 2)):
        match random.randrange(5):
            case 0 if nodes:
                nodes[random.randrange(len(nodes))] = (random.choice(_SIZES), random.choice(_SIZES))
            case 1 if buffers:
                buffers[random.randrange(len(buffers))] = (random.choice(_SIZES), random.choice(_SIZES))
            case 2 if body:
                at = random.randrange(len(body))
                body = body[:at] + struct.pack("<q", random.choice(_SIZES)) + body[at + 8 :]
            case 3:
                length = random.choice(_SIZES)
            case _:
                random.shuffle(buffers)
    fields: dict[int, Scalar | Part] = {
        0: Scalar("<q", length),
        1: Structs(len(nodes), b"".join(struct.pack("<qq", *node) for node in nodes)),
        2: Structs(len(buffers), b"".join(struct.pack("<qq", *buffer) for buffer in buffers)),
    }
    if random.random() < 0.2:
        fields[3] = Table({0: Scalar("<b", random.choice((0, 1, 2, -1))), 1: Scalar("<b", random.choice((0, 0, 1)))})
    if random.random() < 0.05:
        fields[4] = Structs(1, struct.pack("<q", random.choice(_SIZES)))
    return encapsulated(random.choice((3, 3, 3, 3, 3, 2, 4)), Table(fields), body)


def _right(rows: pa.RecordBatch) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bytes]:
    """Nodes, buffers and body of columns without nested ones."""
    nodes, buffers, body = list[tuple[int, int]](), list[tuple[int, int]](), b""
    for column in rows.columns:
        nodes.append((len(column), column.null_count))
        for buffer in column.buffers():
            content = buffer.to_pybytes() if buffer is not None else b""
            buffers.append((len(body), len(content)))
            body += content + bytes(-len(content) % 8)
    return nodes, buffers, body


def _any(random: Random) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bytes]:
    body = random.randbytes(8 * random.choice((0, 1, 8, 64)))
    nodes = [(random.choice((0, 1, 2, 1_000_000)), 0) for _ in range(random.choice((0, 4, 3_000)))]
    places = [8 * random.randrange(len(body) // 8 + 1) for _ in range(random.choice((0, 11, 7_000)))]
    return nodes, [(place, random.randrange(len(body) - place + 1)) for place in places], body


def _column(random: Random, shared: list[Part], depth: int) -> Part:
    fields: dict[int, Scalar | Part] = {
        0: Text(random.choice(_TEXTS)),
        1: Scalar("<B", random.randrange(2)),
        2: Scalar("<B", random.randrange(_KINDS + 1)),
        3: _described(random),
    }
    if random.random() < 0.1:
        fields[4] = Table({0: Scalar("<q", random.choice(_SIZES)), 1: Table({0: Scalar("<i", 8), 1: Scalar("<b", 1)})})
    count = random.choice((0, 1, 1, 2)) if depth < 20 and random.random() < 0.6 else 0
    fields[5] = Vector([_column(random, shared, depth + 1) for _ in range(count)])
    if random.random() < 0.2:
        fields[6] = _metadata(random, shared)
    return _shared(random, shared, Table(fields))


def _described(random: Random) -> Part:
    """Of no type in particular: numbers where most types have theirs, sometimes a text or a vector."""
    fields: dict[int, Scalar | Part] = {0: Scalar("<i", max(-(2**31), min(random.choice(_SIZES), 2**31 - 1)))}
    match random.randrange(4):
        case 0:
            fields[1] = Text(random.choice(_TEXTS))
        case 1:
            fields[1] = Structs(2, bytes(8))
        case _:
            fields |= {1: Scalar("<i", random.choice((0, 1, 5, 38, -3))), 2: Scalar("<i", random.choice((0, 32, 64, 128, 256)))}
    return Table(fields)


def _metadata(random: Random, shared: list[Part]) -> Part:
    pairs: Sequence[Part] = [
        _shared(random, shared, Table({0: Text(random.choice(_TEXTS)), 1: Text(random.choice(_TEXTS))}))
        for _ in range(random.choice((1, 2, 100)))
    ]
    return Vector(pairs if random.random() < 0.8 else [pairs[0]] * 2_000)


def _shared(random: Random, shared: list[Part], part: Table) -> Part:
    """The part, or sometimes one of its kind that stands elsewhere, too."""
    alike = [each for each in shared if isinstance(each, Table) and each.fields.keys() == part.fields.keys()]
    if alike and random.random() < 0.05:
        return random.choice(alike)
    shared.append(part)
    return part


def _maybe(random: Random, make: Callable[[], Part]) -> Part | None:
    return make() if random.random() < 0.2 else None
