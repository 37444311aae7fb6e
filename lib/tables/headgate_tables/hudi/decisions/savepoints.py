"""Savepoints and restores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.bodies import Effects, ServiceBody, SlotKind, common
from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, Json, json_map, text, texts
from headgate_tables.commitlog.records import (
    Channels,
    EncodedFile,
    Savepoint,
    read_channels,
    read_names_by_instant,
    read_published,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointMade(ServiceBody):
    """``saved``: the instant; ``point``: its completion time; ``completion``: the savepoint's own. ``channels``: all records."""

    KIND = SlotKind.SAVEPOINT

    saved: str
    point: str
    completion: str
    channels: Channels
    publish: Sequence[EncodedFile]

    @property
    def effects(self) -> Effects:
        return Effects(publish=self.publish)

    def apply(self, facts: LogFacts) -> None:
        facts.savepoints[self.saved] = Savepoint(self.completion, self.point, self.channels)
        facts.time = max(facts.time, self.completion)

    @classmethod
    def decode(cls, fields: Fields) -> "SavepointMade":
        return cls(
            saved=fields.required("saved", text),
            point=fields.required("point", text),
            completion=fields.required("completion", text),
            channels=fields.required("channels", read_channels),
            publish=fields.required("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointRemoved(ServiceBody):
    """The savepoint of the instant ``removed`` is removed."""

    KIND = SlotKind.SAVEPOINT

    removed: str
    names: Sequence[str]

    @property
    def effects(self) -> Effects:
        return Effects(names=self.names)

    def apply(self, facts: LogFacts) -> None:
        facts.savepoints.pop(self.removed, None)
        facts.deleting[f"savepoint {self.removed}"] = self.names

    @classmethod
    def decode(cls, fields: Fields) -> "SavepointRemoved":
        return cls(removed=fields.required("removed", text), names=fields.required("names", texts), **common(fields))


def decode_savepoint(fields: Fields) -> SavepointMade | SavepointRemoved:
    """Either of the two, which are of one kind. Raises UnfitError."""
    return SavepointRemoved.decode(fields) if fields.has("removed") else SavepointMade.decode(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(ServiceBody):
    """``to``: the saved instant; ``undone``: commits, plans and savepoints that are removed; ``outputs``: of these plans, by
    instant. ``channels``: all records from now on (rule CH8). ``config``: the format's keys that go back with the rows, None when
    none does.
    """

    KIND = SlotKind.RESTORE
    ENDS_TRANSACTIONS = True

    instant: str
    completion: str
    to: str
    undone: Sequence[str]
    outputs: Mapping[str, Sequence[str]]
    names: Sequence[str]
    channels: Channels
    publish: Sequence[EncodedFile]
    config: Mapping[str, Json] | None = None

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, publish=self.publish, names=self.names)

    def apply(self, facts: LogFacts) -> None:
        """Rule CH8: offsets go back with the rows, incarnations never do."""
        for instant in self.undone:
            facts.commits.pop(instant, None)
            facts.savepoints.pop(instant, None)
            facts.refused.pop(instant, None)
            if facts.plans.pop(instant, None) is not None:
                facts.dead[instant] = self.outputs.get(instant, [])
            else:
                facts.gone[instant] = None
        facts.complete(self.instant, self.completion)
        facts.deleting[self.instant] = self.names
        facts.channels = dict(self.channels)
        facts.restored = self.instant
        facts.redefine(self.config or {})

    @classmethod
    def decode(cls, fields: Fields) -> "Restore":
        return cls(
            instant=fields.required("instant", text),
            completion=fields.required("completion", text),
            to=fields.required("to", text),
            undone=fields.required("undone", texts),
            outputs=fields.required("outputs", read_names_by_instant),
            names=fields.required("names", texts),
            channels=fields.required("channels", read_channels),
            publish=fields.required("publish", read_published),
            config=fields.optional("config", json_map),
            **common(fields),
        )
