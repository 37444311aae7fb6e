"""Compactions: their plans and how these end, and slices that are left out of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.bodies import Effects, ServiceBody, SlotKind, common
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, Json, json_list, nullable, text, texts
from headgate_tables.commitlog.records import (
    DataFile,
    EncodedFile,
    StuckRecord,
    read_files,
    read_published,
    read_stuck_record,
    read_stuck_slices,
)

_read_entry = nullable(read_stuck_record)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade(ServiceBody):
    """A compaction is planned. ``operations``: as the format encodes them."""

    KIND = SlotKind.PLAN

    instant: str
    operations: Sequence[Json]
    publish: Sequence[EncodedFile]

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, publish=self.publish)

    def apply(self, facts: LogFacts) -> None:
        facts.plans[self.instant] = self.operations

    @classmethod
    def decode(cls, fields: Fields) -> "PlanMade":
        """Raises UnfitError, as all below."""
        return cls(
            instant=fields.required("instant", text),
            operations=fields.required("operations", json_list),
            publish=fields.required("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MinorPlanMade(PlanMade):
    """One with minor compactions, decided while no transaction is open. What was reserved before ends, so that all instants from
    here on are above the plan's (rule DE5).
    """

    ENDS_TRANSACTIONS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDone(ServiceBody):
    """A plan is completed. ``names``: outputs that it was completed without. ``stuck``: slices that it left uncompacted, by name;
    ``freed``: names of slices that were stuck and are compacted now. Older slots have neither of these two.
    """

    KIND = SlotKind.PLAN_DONE

    instant: str
    completion: str
    files: Sequence[DataFile]
    names: Sequence[str]
    publish: Sequence[EncodedFile]
    stuck: Mapping[str, StuckRecord] | None = None
    freed: Sequence[str] | None = None

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, files=self.files, publish=self.publish, names=self.names)

    def apply(self, facts: LogFacts) -> None:
        facts.plans.pop(self.instant, None)
        facts.complete(self.instant, self.completion)
        if self.names:
            facts.refused[self.instant] = self.names
        _note_stuck(facts, self)

    @classmethod
    def decode(cls, fields: Fields) -> "PlanDone":
        return cls(
            instant=fields.required("instant", text),
            completion=fields.required("completion", text),
            files=fields.required("files", read_files),
            names=fields.required("names", texts),
            publish=fields.required("publish", read_published),
            stuck=fields.optional("stuck", read_stuck_slices),
            freed=fields.optional("freed", texts),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCancelled(ServiceBody):
    """A plan is given up. ``names``: all files that it may have left. ``stuck``, ``freed``: as in ``PlanDone``."""

    KIND = SlotKind.PLAN_CANCELLED

    instant: str
    names: Sequence[str]
    stuck: Mapping[str, StuckRecord] | None = None
    freed: Sequence[str] | None = None

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, names=self.names)

    def apply(self, facts: LogFacts) -> None:
        facts.plans.pop(self.instant, None)
        facts.dead[self.instant] = self.names
        _note_stuck(facts, self)

    @classmethod
    def decode(cls, fields: Fields) -> "PlanCancelled":
        return cls(
            instant=fields.required("instant", text),
            names=fields.required("names", texts),
            stuck=fields.optional("stuck", read_stuck_slices),
            freed=fields.optional("freed", texts),
            **common(fields),
        )


def _note_stuck(facts: LogFacts, body: PlanDone | PlanCancelled) -> None:
    """A plan says which slices it went on without, and which of those before it has compacted (``freed``)."""
    for name in body.freed or ():
        facts.stuck.pop(name, None)
    facts.stuck.update(body.stuck or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSetAside(ServiceBody):
    """An operator has set a file slice aside, or taken it in again: then ``entry`` is None."""

    KIND = SlotKind.SLICE

    name: str
    entry: StuckRecord | None

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot, in which None is null."""
        own: dict[str, Json] = {"name": self.name, "entry": self.entry}
        return own | ServiceBody.encode(self)

    def apply(self, facts: LogFacts) -> None:
        if self.entry is None:
            facts.stuck.pop(self.name, None)
        else:
            facts.stuck[self.name] = self.entry

    @classmethod
    def decode(cls, fields: Fields) -> "SliceSetAside":
        return cls(name=fields.required("name", text), entry=fields.required("entry", _read_entry), **common(fields))
