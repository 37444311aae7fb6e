"""How two definitions of a table differ, in words."""

from collections.abc import Iterator

import pyarrow as pa

from headgate_tables.hudi.definition import Definition

_MOST = 10
"""So many differences are named."""
_LONGEST = 200
"""Characters of each."""


def differences(there: Definition, wanted: Definition) -> str:
    """What the table has and what is asked for, column by column; "" if they agree in all that a program can choose."""
    found = [*_of_columns(there.schema, wanted.schema), *_of_the_rest(there, wanted)]
    more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
    return "; ".join([*(shorten(each) for each in found[:_MOST]), *more])


def shorten(text: str) -> str:
    """Whole up to a length; types of nested columns can fill pages, and an error travels in the metadata of an answer."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _of_columns(there: pa.Schema, wanted: pa.Schema) -> Iterator[str]:
    for name in dict.fromkeys([*there.names, *wanted.names]):
        if name not in wanted.names:
            yield f"it has the column {name!r} ({_text(there, name)})"
        elif name not in there.names:
            yield f"it has no column {name!r} ({_text(wanted, name)})"
        elif _text(there, name) != _text(wanted, name):
            yield f"its column {name!r} is {_text(there, name)}, not {_text(wanted, name)}"
    if sorted(there.names) == sorted(wanted.names) and there.names != wanted.names:
        yield f"its columns come in the order {', '.join(there.names)}"


def _text(schema: pa.Schema, name: str) -> str:
    field = schema.field(name)
    return f"{field.type}{'' if field.nullable else ' not null'}"


def _of_the_rest(there: Definition, wanted: Definition) -> Iterator[str]:
    pairs = {
        "name": (there.name, wanted.name),
        "key": (", ".join(there.record_key), ", ".join(wanted.record_key)),
        "partition": (", ".join(there.partition_by) or "none", ", ".join(wanted.partition_by) or "none"),
        "ordering": (there.ordering or "none", wanted.ordering or "none"),
        "number of buckets": (there.buckets, wanted.buckets),
        "folders": tuple("named column=value" if each.hive_style else "named by the value alone" for each in (there, wanted)),
    }
    for what, (has, asked) in pairs.items():
        if has != asked:
            yield f"its {what} {'are' if what == 'folders' else 'is'} {has}, not {asked}"
