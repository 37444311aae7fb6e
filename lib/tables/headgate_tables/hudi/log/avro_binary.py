"""Avro's binary form: the types that its bytes have, what their values mean, and its numbers.

In a *physical* schema named types are spelled out, and types of the same bytes are one: maps are arrays of (key, value) records,
enums and logical integers are plain ones. ``as_original`` makes the Arrow types of the original schema of what was read by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from headgate_tables.arrow import Array, pc
from headgate_tables.hudi.schema.avro_json import AvroField, AvroSchema, AvroType, spelled_out

_PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "string", "bytes"))


def physical(schema: AvroSchema) -> AvroType:
    """The physical form of a record schema (parsed JSON that ``avro_to_arrow`` accepts)."""
    return spelled_out(_Spelling().of(schema, ""))


def as_original(array: Any, target: pa.DataType, shape: AvroSchema) -> Array:
    """A decoded column (an Arrow array) of physical ``shape`` as ``target``, the Arrow type of its original Avro type."""
    if isinstance(shape, list):
        shape = next(branch for branch in shape if branch != "null")
    if isinstance(target, pa.StructType):
        fields = [target.field(i) for i in range(target.num_fields)]
        # flatten() passes the record's nulls down: below one, a fixed has no bytes at all.
        children = [
            as_original(child, field.type, spelled_out(shape)["fields"][i]["type"])
            for i, (child, field) in enumerate(zip(array.flatten(), fields, strict=True))
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if isinstance(target, pa.ListType):
        short: Any = pc.cast(array, pa.list_(array.type.value_field))
        values = as_original(short.values, target.value_type, spelled_out(shape)["items"])
        return pa.Array.from_buffers(target, len(short), short.buffers()[:2], offset=short.offset, children=[values])
    if isinstance(target, pa.MapType):
        short = pc.cast(array, pa.list_(array.type.value_field))
        keys, items = short.values.field(0), short.values.field(1)
        pair_shape = spelled_out(spelled_out(shape)["items"])
        pair = [
            as_original(keys, target.key_type, "string"),
            as_original(items, target.item_type, pair_shape["fields"][1]["type"]),
        ]
        entries = pa.StructArray.from_arrays(pair, fields=[target.key_field, target.item_field])
        return pa.Array.from_buffers(target, len(short), short.buffers()[:2], offset=short.offset, children=[entries])
    if isinstance(shape, dict) and "symbols" in shape:
        return pa.array(shape["symbols"], pa.string()).take(array)
    if pat.is_fixed_size_binary(target) and array.type != target:
        array = pc.cast(array, pa.binary())
    plain: Array = pc.cast(array, target)
    return plain


class _Spelling:
    """Spells one schema out: names seen so far are spelled out again wherever they are used."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._count = 0

    def of(self, schema: AvroSchema, namespace: str) -> AvroSchema:
        if isinstance(schema, list):
            return [self.of(branch, namespace) for branch in schema]
        if isinstance(schema, str):
            return schema if schema in _PRIMITIVES else self._again(schema, namespace)
        kind = schema["type"]
        if kind == "record":
            return self._record(schema, namespace)
        if kind == "array":
            return {"type": "array", "items": self.of(schema["items"], namespace)}
        if kind == "map":
            key: AvroField = {"name": "key", "type": "string"}
            value: AvroField = {"name": "value", "type": self.of(schema["values"], namespace)}
            return {"type": "array", "items": {"type": "record", "name": self._fresh(), "fields": [key, value]}}
        if kind == "enum":
            return self._name(schema, namespace, {"type": "int", "symbols": schema["symbols"]})
        if kind == "fixed" or schema.get("logicalType") == "decimal":
            kept = _kept(schema)
            return self._name(schema, namespace, kept) if kind == "fixed" else kept
        return self.of(kind, namespace)

    def _record(self, schema: AvroType, namespace: str) -> AvroType:
        inner = schema["name"].rpartition(".")[0] or schema.get("namespace", namespace)
        fields: list[AvroField] = [{"name": field["name"], "type": self.of(field["type"], inner)} for field in schema["fields"]]
        return self._name(schema, namespace, {"type": "record", "fields": fields})

    def _name(self, schema: AvroType, namespace: str, spelled: AvroType) -> AvroType:
        prefix = schema.get("namespace", namespace)
        full = schema["name"] if "." in schema["name"] or not prefix else f"{prefix}.{schema['name']}"
        self._named[full] = spelled
        return spelled | {"name": self._fresh()}

    def _again(self, name: str, namespace: str) -> AvroSchema:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        return self._renamed(self._named[full if full in self._named else name])

    def _renamed(self, spelled: AvroSchema) -> AvroSchema:
        """A copy with new names throughout: a decoder would take a repeated name for a redefinition."""
        if isinstance(spelled, list):
            return [self._renamed(part) for part in spelled]
        if not isinstance(spelled, dict):
            return spelled
        copy = spelled.copy()
        copy["type"] = self._renamed(spelled["type"])
        if "items" in spelled:
            copy["items"] = self._renamed(spelled["items"])
        if "fields" in spelled:
            copy["fields"] = [{"name": field["name"], "type": self._renamed(field["type"])} for field in spelled["fields"]]
        if spelled["type"] in ("record", "fixed", "int"):
            copy["name"] = self._fresh()
        return copy

    def _fresh(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _kept(schema: AvroType) -> AvroType:
    """What a decoder needs of a fixed or a decimal."""
    kept: AvroType = {"type": schema["type"]}
    if "size" in schema:
        kept["size"] = schema["size"]
    if "logicalType" in schema:
        kept["logicalType"] = schema["logicalType"]
    if "precision" in schema:
        kept["precision"] = schema["precision"]
    if "scale" in schema:
        kept["scale"] = schema["scale"]
    return kept


def varint(number: int) -> bytes:
    """One Avro int or long."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """The number, and the position after it. Raises IndexError past the end, ValueError beyond 64 bits."""
    shift = rest = 0
    while True:
        byte = view[position]
        rest |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
    return (rest >> 1) ^ -(rest & 1), position


def varints(numbers: npt.NDArray[np.int64]) -> Array:
    """Each number as an Avro int or long: binary[n] of 1 to 10 bytes."""
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    groups = (rest[:, None] >> (7 * np.arange(width, dtype=np.uint64))) & np.uint64(0x7F)
    more = (rest[:, None] >> (7 * np.arange(1, width + 1, dtype=np.uint64).clip(max=9))) != 0
    if width == 10:
        more[:, 9] = False
    used = np.ones(groups.shape, dtype=bool)
    used[:, 1:] = more[:, :-1]
    encoded = groups.astype(np.uint8) | (more.astype(np.uint8) << 7)
    return ragged(encoded, used)


def ragged(cells: npt.NDArray[np.uint8], used: npt.NDArray[np.bool_]) -> Array:
    """The used cells of each row of a byte matrix: binary[n]."""
    offsets = np.zeros(len(cells) + 1, dtype=np.int32)
    np.cumsum(used.sum(axis=1), out=offsets[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(cells), [None, pa.py_buffer(offsets.data), pa.py_buffer(cells[used].data)]
    )
