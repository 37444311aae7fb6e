"""The end of a table."""

from dataclasses import dataclass

from headgate_tables.commitlog.bodies import ServiceBody, SlotKind, common
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, text
from headgate_tables.commitlog.records import DropRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDropped(ServiceBody):
    """The table is dropped: no slot follows, and every file of the table goes (rule D5). ``by``: the principal, "" for nobody
    that is known.
    """

    KIND = SlotKind.DROP
    ENDS_TRANSACTIONS = True

    by: str

    def apply(self, facts: LogFacts) -> None:
        """What the log knows of instants stays: it tells the table's files from those of others."""
        facts.dropped = DropRecord(self.time or "", self.by)

    @classmethod
    def decode(cls, fields: Fields) -> "TableDropped":
        """Raises UnfitError."""
        return cls(by=fields.required("by", text), **common(fields))
