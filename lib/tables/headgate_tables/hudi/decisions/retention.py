"""What leaves the table: files that no reader needs, and instants of the active timeline."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.bodies import Effects, ServiceBody, SlotKind, common
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, text, texts
from headgate_tables.commitlog.records import EncodedFile, read_published


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean(ServiceBody):
    """``earliest``: the table cannot be read any more as of times before this completion time; "" when that does not change."""

    KIND = SlotKind.CLEAN

    instant: str
    completion: str
    names: Sequence[str]
    earliest: str
    publish: Sequence[EncodedFile]

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, publish=self.publish, names=self.names)

    def apply(self, facts: LogFacts) -> None:
        facts.complete(self.instant, self.completion)
        facts.deleting[self.instant] = self.names
        facts.cleaned = max(facts.cleaned, self.earliest)

    @classmethod
    def decode(cls, fields: Fields) -> "Clean":
        return cls(
            instant=fields.required("instant", text),
            completion=fields.required("completion", text),
            names=fields.required("names", texts),
            earliest=fields.required("earliest", text),
            publish=fields.required("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(ServiceBody):
    """Every instant up to ``until`` leaves the active timeline."""

    KIND = SlotKind.ARCHIVE

    until: str
    names: Sequence[str]

    @property
    def effects(self) -> Effects:
        return Effects(names=self.names)

    def apply(self, facts: LogFacts) -> None:
        facts.deleting[f"archive {self.until}"] = self.names
        facts.archive_until(self.until)

    @classmethod
    def decode(cls, fields: Fields) -> "Archive":
        return cls(until=fields.required("until", text), names=fields.required("names", texts), **common(fields))
