"""What to do about columns of rows that the table lacks."""

import re

_LEGAL = re.compile(r"(?!_hoodie_)[A-Za-z_][A-Za-z0-9_]*")


def how_to_add(table: str, column: str) -> str:
    """The next step, for a name that a table's column may have and for any other."""
    if not _LEGAL.fullmatch(column):
        return f"No table has a column {column!r}: leave it out, or give it a name of ASCII letters, digits and _, not _hoodie_…"
    return (
        f"`headgate table alter {table} --add {column}=TYPE` adds a column; batches may add columns after "
        f"`headgate configure {table} headgate.evolve=add`."
    )
