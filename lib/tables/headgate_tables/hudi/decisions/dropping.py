"""The end of a table, and the time before it."""

from dataclasses import dataclass

from headgate_tables.commitlog.bodies import ServiceBody, SlotKind, common
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, number, text
from headgate_tables.commitlog.records import DropRecord, GraceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDropped(ServiceBody):
    """The table is dropped: no slot follows, and every file of the table goes (rule D5). ``by``: the principal, "" for nobody
    that is known.
    """

    KIND = SlotKind.DROP
    ENDS_TRANSACTIONS = True
    IN_GRACE = True

    by: str

    def apply(self, facts: LogFacts) -> None:
        """What the log knows of instants stays: it tells the table's files from those of others. A table that was dropped with a
        grace time was dropped then.
        """
        before = facts.grace
        facts.dropped = DropRecord(before.time, before.by) if before is not None else DropRecord(self.time or "", self.by)

    @classmethod
    def decode(cls, fields: Fields) -> "TableDropped":
        """Raises UnfitError."""
        return cls(by=fields.required("by", text), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraceChanged(ServiceBody):
    """The table is dropped, and all of its files stay ``until``, in ms of the wall clock; 0: it is back (rule D9). ``by``: the
    principal, as in ``TableDropped``.
    """

    KIND = SlotKind.GRACE
    ENDS_TRANSACTIONS = True
    IN_GRACE = True

    by: str
    until: int

    def apply(self, facts: LogFacts) -> None:
        facts.grace = GraceRecord(self.time or "", self.by, self.until) if self.until else None

    @classmethod
    def decode(cls, fields: Fields) -> "GraceChanged":
        """Raises UnfitError."""
        return cls(by=fields.required("by", text), until=fields.required("until", number), **common(fields))
