"""Tables that are dropped and can be brought back (rule D9)."""

from headgate_coordinator.tables.described import InGrace
from headgate_tables.errors import TableInGraceError
from headgate_tables.face.owner import Table


class NamedInGraceError(TableInGraceError):
    """The table of this name is dropped, and can be brought back. ``found``: which, by whom, until when."""

    def __init__(self, found: InGrace) -> None:
        name, grace = found.name, found.grace
        super().__init__(
            f"the table {name} was {grace.describe()}; `headgate table undrop {name}` brings it back until {grace.end}",
            fix=f"Bring it back, with its rows and offsets, or delete it before that: `headgate table drop {name} --now`.",
        )
        self.found = found


def check_grace(table: Table, name: str) -> None:
    """Raises NamedInGraceError for a table in its grace time, as far as this handle knows."""
    if table.grace is not None:
        raise NamedInGraceError(InGrace(name, str(table.definition.table_uuid) if table.definition else "", table.grace))
