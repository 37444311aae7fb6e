"""What columns hold that are made of others: the fields of structs, the items of lists, the keys and values of maps."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headgate_tables.arrow import Array


def leaves(column: Array, path: str) -> Iterator[tuple[str, Array]]:
    """The values inside that have no parts, each with its path, as ``spots.element.x`` and ``prices.value``; the column itself if
    it has none. Of lists, structs and slices only what they show.
    """
    if isinstance(column, pa.StructArray):
        for at, child in enumerate(column.flatten()):
            yield from leaves(child, f"{path}.{column.type.field(at).name}")
    elif isinstance(column, pa.MapArray):
        begin, end = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
        yield from leaves(column.keys[begin:end], f"{path}.key")
        yield from leaves(column.items[begin:end], f"{path}.value")
    elif isinstance(column, pa.ListArray):
        yield from leaves(column.flatten(), f"{path}.element")
    else:
        yield path, column
