"""What slots of table services decide; see ``bodies``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate_tables.commitlog.bodies import Decision, Kind, common, read_texts_by_key
from headgate_tables.commitlog.fields import Fields, Json, json_list, json_map, map_of, nullable, text, texts
from headgate_tables.commitlog.records import (
    Channels,
    DataFile,
    EncodedFile,
    Saved,
    Stuck,
    read_channels,
    read_files,
    read_names_by_instant,
    read_published,
    read_stuck,
)

read_stuck_slices = map_of(read_stuck)
read_plans = map_of(json_list)
read_saved = map_of(Saved.decode)
read_entry = nullable(read_stuck)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Decision):
    """A compaction is planned. ``operations``: as the format encodes them."""

    KIND = Kind.PLAN

    instant: str
    operations: Sequence[Json]
    publish: Sequence[EncodedFile]

    @classmethod
    def decode(cls, fields: Fields) -> "Plan":
        """Raises UnfitError, as all below."""
        return cls(
            instant=fields.take("instant", text),
            operations=fields.take("operations", json_list),
            publish=fields.take("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDone(Decision):
    """A plan is completed. ``names``: outputs that it was completed without. ``stuck``: slices that it left uncompacted, by name;
    ``freed``: names of slices that were stuck and are compacted now. Older slots have neither of these two.
    """

    KIND = Kind.PLAN_DONE

    instant: str
    completion: str
    files: Sequence[DataFile]
    names: Sequence[str]
    publish: Sequence[EncodedFile]
    stuck: Mapping[str, Stuck] | None = None
    freed: Sequence[str] | None = None

    @classmethod
    def decode(cls, fields: Fields) -> "PlanDone":
        return cls(
            instant=fields.take("instant", text),
            completion=fields.take("completion", text),
            files=fields.take("files", read_files),
            names=fields.take("names", texts),
            publish=fields.take("publish", read_published),
            stuck=fields.maybe("stuck", read_stuck_slices),
            freed=fields.maybe("freed", texts),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCancelled(Decision):
    """A plan is given up. ``names``: all files that it may have left. ``stuck``, ``freed``: as in ``PlanDone``."""

    KIND = Kind.PLAN_CANCELLED

    instant: str
    names: Sequence[str]
    stuck: Mapping[str, Stuck] | None = None
    freed: Sequence[str] | None = None

    @classmethod
    def decode(cls, fields: Fields) -> "PlanCancelled":
        return cls(
            instant=fields.take("instant", text),
            names=fields.take("names", texts),
            stuck=fields.maybe("stuck", read_stuck_slices),
            freed=fields.maybe("freed", texts),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean(Decision):
    """``earliest``: the table cannot be read any more as of times before this completion time; "" when that does not change."""

    KIND = Kind.CLEAN

    instant: str
    completion: str
    names: Sequence[str]
    earliest: str
    publish: Sequence[EncodedFile]

    @classmethod
    def decode(cls, fields: Fields) -> "Clean":
        return cls(
            instant=fields.take("instant", text),
            completion=fields.take("completion", text),
            names=fields.take("names", texts),
            earliest=fields.take("earliest", text),
            publish=fields.take("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Save(Decision):
    """``saved``: the instant; ``point``: its completion time; ``completion``: the savepoint's own. ``channels``: all records."""

    KIND = Kind.SAVEPOINT

    saved: str
    point: str
    completion: str
    channels: Channels
    publish: Sequence[EncodedFile]

    @classmethod
    def decode(cls, fields: Fields) -> "Save":
        return cls(
            saved=fields.take("saved", text),
            point=fields.take("point", text),
            completion=fields.take("completion", text),
            channels=fields.take("channels", read_channels),
            publish=fields.take("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsave(Decision):
    """The savepoint of the instant ``removed`` is removed."""

    KIND = Kind.SAVEPOINT

    removed: str
    names: Sequence[str]

    @classmethod
    def decode(cls, fields: Fields) -> "Unsave":
        return cls(removed=fields.take("removed", text), names=fields.take("names", texts), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(Decision):
    """``to``: the saved instant; ``undone``: commits, plans and savepoints that are removed; ``outputs``: of these plans, by
    instant. ``channels``: all records from now on (rule CH8).
    """

    KIND = Kind.RESTORE

    instant: str
    completion: str
    to: str
    undone: Sequence[str]
    outputs: Mapping[str, Sequence[str]]
    names: Sequence[str]
    channels: Channels
    publish: Sequence[EncodedFile]

    @classmethod
    def decode(cls, fields: Fields) -> "Restore":
        return cls(
            instant=fields.take("instant", text),
            completion=fields.take("completion", text),
            to=fields.take("to", text),
            undone=fields.take("undone", texts),
            outputs=fields.take("outputs", read_names_by_instant),
            names=fields.take("names", texts),
            channels=fields.take("channels", read_channels),
            publish=fields.take("publish", read_published),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(Decision):
    """Every instant up to ``until`` leaves the active timeline."""

    KIND = Kind.ARCHIVE

    until: str
    names: Sequence[str]

    @classmethod
    def decode(cls, fields: Fields) -> "Archive":
        return cls(until=fields.take("until", text), names=fields.take("names", texts), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt(Decision):
    """What another program did, see ``LogState``. ``config``: the format's keys that change."""

    KIND = Kind.ADOPT

    completed: Mapping[str, str]
    removed: Sequence[str]
    dead: Mapping[str, Sequence[str]]
    plans: Mapping[str, Sequence[Json]]
    refused: Mapping[str, Sequence[str]]
    savepoints: Mapping[str, Saved]
    unsaved: Sequence[str]
    archived: str
    cleaned: str
    config: Mapping[str, Json]
    names: Sequence[str]

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot."""
        return {**Decision.encode(self), "savepoints": {time: saved.encode() for time, saved in self.savepoints.items()}}

    @classmethod
    def decode(cls, fields: Fields) -> "Adopt":
        return cls(
            completed=fields.take("completed", read_texts_by_key),
            removed=fields.take("removed", texts),
            dead=fields.take("dead", read_names_by_instant),
            plans=fields.take("plans", read_plans),
            refused=fields.take("refused", read_names_by_instant),
            savepoints=fields.take("savepoints", read_saved),
            unsaved=fields.take("unsaved", texts),
            archived=fields.take("archived", text),
            cleaned=fields.take("cleaned", text),
            config=fields.take("config", json_map),
            names=fields.take("names", texts),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(Decision):
    """An operator has set a file slice aside, or taken it in again: then ``entry`` is None."""

    KIND = Kind.SLICE

    name: str
    entry: Stuck | None

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot, in which None is null."""
        own: dict[str, Json] = {"name": self.name, "entry": self.entry}
        return own | Decision.encode(self)

    @classmethod
    def decode(cls, fields: Fields) -> "Slice":
        return cls(name=fields.take("name", text), entry=fields.take("entry", read_entry), **common(fields))


ServiceBody: TypeAlias = Plan | PlanDone | PlanCancelled | Clean | Save | Unsave | Restore | Archive | Adopt | Slice
