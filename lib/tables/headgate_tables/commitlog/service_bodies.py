"""What slots of table services decide; see ``bodies``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate_tables.commitlog.bodies import SlotBody, SlotKind, common, read_texts_by_key
from headgate_tables.commitlog.fields import Fields, Json, json_list, json_map, map_of, nullable, text, texts
from headgate_tables.commitlog.records import (
    Channels,
    DataFile,
    EncodedFile,
    Savepoint,
    StuckRecord,
    read_channels,
    read_files,
    read_names_by_instant,
    read_published,
    read_stuck_record,
)

read_stuck_slices = map_of(read_stuck_record)
read_plans = map_of(json_list)
read_savepoints = map_of(Savepoint.decode)
read_entry = nullable(read_stuck_record)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade(SlotBody):
    """A compaction is planned. ``operations``: as the format encodes them."""

    KIND = SlotKind.PLAN

    instant: str
    operations: Sequence[Json]
    publish: Sequence[EncodedFile]

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
class PlanDone(SlotBody):
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
class PlanCancelled(SlotBody):
    """A plan is given up. ``names``: all files that it may have left. ``stuck``, ``freed``: as in ``PlanDone``."""

    KIND = SlotKind.PLAN_CANCELLED

    instant: str
    names: Sequence[str]
    stuck: Mapping[str, StuckRecord] | None = None
    freed: Sequence[str] | None = None

    @classmethod
    def decode(cls, fields: Fields) -> "PlanCancelled":
        return cls(
            instant=fields.required("instant", text),
            names=fields.required("names", texts),
            stuck=fields.optional("stuck", read_stuck_slices),
            freed=fields.optional("freed", texts),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean(SlotBody):
    """``earliest``: the table cannot be read any more as of times before this completion time; "" when that does not change."""

    KIND = SlotKind.CLEAN

    instant: str
    completion: str
    names: Sequence[str]
    earliest: str
    publish: Sequence[EncodedFile]

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
class SavepointMade(SlotBody):
    """``saved``: the instant; ``point``: its completion time; ``completion``: the savepoint's own. ``channels``: all records."""

    KIND = SlotKind.SAVEPOINT

    saved: str
    point: str
    completion: str
    channels: Channels
    publish: Sequence[EncodedFile]

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
class SavepointRemoved(SlotBody):
    """The savepoint of the instant ``removed`` is removed."""

    KIND = SlotKind.SAVEPOINT

    removed: str
    names: Sequence[str]

    @classmethod
    def decode(cls, fields: Fields) -> "SavepointRemoved":
        return cls(removed=fields.required("removed", text), names=fields.required("names", texts), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(SlotBody):
    """``to``: the saved instant; ``undone``: commits, plans and savepoints that are removed; ``outputs``: of these plans, by
    instant. ``channels``: all records from now on (rule CH8). ``config``: the format's keys that go back with the rows, None when
    none does.
    """

    KIND = SlotKind.RESTORE

    instant: str
    completion: str
    to: str
    undone: Sequence[str]
    outputs: Mapping[str, Sequence[str]]
    names: Sequence[str]
    channels: Channels
    publish: Sequence[EncodedFile]
    config: Mapping[str, Json] | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(SlotBody):
    """Every instant up to ``until`` leaves the active timeline."""

    KIND = SlotKind.ARCHIVE

    until: str
    names: Sequence[str]

    @classmethod
    def decode(cls, fields: Fields) -> "Archive":
        return cls(until=fields.required("until", text), names=fields.required("names", texts), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(SlotBody):
    """What another program did, see ``LogState``. ``config``: the format's keys that change."""

    KIND = SlotKind.ADOPT

    completed: Mapping[str, str]
    removed: Sequence[str]
    dead: Mapping[str, Sequence[str]]
    plans: Mapping[str, Sequence[Json]]
    refused: Mapping[str, Sequence[str]]
    savepoints: Mapping[str, Savepoint]
    unsaved: Sequence[str]
    archived: str
    cleaned: str
    config: Mapping[str, Json]
    names: Sequence[str]

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot."""
        return {**SlotBody.encode(self), "savepoints": {time: saved.encode() for time, saved in self.savepoints.items()}}

    @classmethod
    def decode(cls, fields: Fields) -> "Adopt":
        return cls(
            completed=fields.required("completed", read_texts_by_key),
            removed=fields.required("removed", texts),
            dead=fields.required("dead", read_names_by_instant),
            plans=fields.required("plans", read_plans),
            refused=fields.required("refused", read_names_by_instant),
            savepoints=fields.required("savepoints", read_savepoints),
            unsaved=fields.required("unsaved", texts),
            archived=fields.required("archived", text),
            cleaned=fields.required("cleaned", text),
            config=fields.required("config", json_map),
            names=fields.required("names", texts),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSetAside(SlotBody):
    """An operator has set a file slice aside, or taken it in again: then ``entry`` is None."""

    KIND = SlotKind.SLICE

    name: str
    entry: StuckRecord | None

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot, in which None is null."""
        own: dict[str, Json] = {"name": self.name, "entry": self.entry}
        return own | SlotBody.encode(self)

    @classmethod
    def decode(cls, fields: Fields) -> "SliceSetAside":
        return cls(name=fields.required("name", text), entry=fields.required("entry", read_entry), **common(fields))


ServiceBody: TypeAlias = (
    PlanMade | PlanDone | PlanCancelled | Clean | SavepointMade | SavepointRemoved | Restore | Archive | Adopt | SliceSetAside
)
