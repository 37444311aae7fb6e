"""What slots decide: a record for each kind, with the keys and the order that it has on disk.

Those of table services are the format's own: it derives them from ``ServiceBody``, and hands in what decodes them
(``LogFormat``).
"""

import abc
import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypedDict, cast

from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.commitlog.fields import Fields, Json, UnfitError, json_map, map_of, number, text, texts
from headgate_tables.commitlog.records import (
    Channels,
    DataFile,
    EncodedFile,
    OwnerProcess,
    ReplacedFile,
    read_channels,
    read_files,
    read_names_by_instant,
    read_published,
    read_replaced,
    read_times_ahead,
)
from headgate_tables.commitlog.times import TimesAhead


class SlotKind(enum.StrEnum):
    """What a slot decides. A kind that is not here is refused, never skipped: it may carry what we must not overlook."""

    CONFIG = "CONFIG"
    FENCE = "FENCE"
    RESERVE = "RESERVE"
    COMMIT = "COMMIT"
    OFFSETS = "OFFSETS"
    DEAD = "DEAD"
    PLAN = "PLAN"
    PLAN_DONE = "PLAN_DONE"
    PLAN_CANCELLED = "PLAN_CANCELLED"
    CLEAN = "CLEAN"
    SAVEPOINT = "SAVEPOINT"
    RESTORE = "RESTORE"
    ARCHIVE = "ARCHIVE"
    ADOPT = "ADOPT"
    SLICE = "SLICE"
    DROP = "DROP"
    GRACE = "GRACE"
    ALTER = "ALTER"


class Effects(NamedTuple):
    """What a slot does besides changing the state. ``instant``: that it begins, completes or ends. ``files``: data files that it
    commits. ``publish``: files that it derives, in the order of their creation. ``names``: those that it gives up.
    """

    instant: str = ""
    files: Sequence[DataFile] = ()
    publish: Sequence[EncodedFile] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotBody:
    """Fields that every slot may have; None for one that it lacks. On disk they follow a kind's own keys, or as ``KEYS`` orders.

    ``time``: when it was decided; ``reserved``: the instants alive from then on (rule TM4); ``deleted``: keys of
    ``LogState.deleting`` whose files are gone.
    """

    KIND: ClassVar[SlotKind]
    KEYS: ClassVar[Sequence[str]] = ()
    ENDS_TRANSACTIONS: ClassVar[bool] = False
    IN_GRACE: ClassVar[bool] = False
    """Whether it may follow while the table is dropped and its files are still there (rule D9)."""

    time: str | None = None
    reserved: Sequence[str] | None = None
    min_reader: int | None = None
    min_writer: int | None = None
    deleted: Sequence[str] | None = None

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot."""
        return {key: value for key in self.KEYS or keys_of(type(self)) if (value := getattr(self, key)) is not None}

    @property
    def effects(self) -> Effects:
        """What the slot does besides changing the state."""
        return Effects()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBody(SlotBody, abc.ABC):
    """What a slot of a table service decides."""

    @abc.abstractmethod
    def apply(self, facts: LogFacts) -> None:
        """Changes the facts to those after the slot. A pure function of both (rule T5)."""


def keys_of(kind: type[SlotBody]) -> tuple[str, ...]:
    """A kind's own keys, then those of every kind."""
    common = [each.name for each in dataclasses.fields(SlotBody)]
    return (*(each.name for each in dataclasses.fields(kind) if each.name not in common), *common)


class Common(TypedDict, total=False):
    """The fields of ``SlotBody`` that a slot has."""

    time: str
    reserved: Sequence[str]
    min_reader: int
    min_writer: int
    deleted: Sequence[str]


_COMMON: Mapping[str, Callable[[object], object]] = {
    "time": text,
    "reserved": texts,
    "min_reader": number,
    "min_writer": number,
    "deleted": texts,
}
read_texts_by_key = map_of(text)


def common(fields: Fields) -> Common:
    """Reads the fields of ``SlotBody``. Raises UnfitError, also for any other key that is left."""
    found = fields.rest()
    for key in found:
        read = _COMMON.get(key)
        if read is None:
            raise UnfitError("is not known to this version", key, unknown=True)
        try:
            read(found[key])
        except UnfitError as error:
            raise error.below(key) from None
    return cast("Common", found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(SlotBody):
    """Slot 0. ``config``: what the table is, in the format's own keys."""

    KIND = SlotKind.CONFIG

    config: Mapping[str, Json]
    publish: Sequence[EncodedFile]

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot: the config's keys stand beside the log's."""
        return {**self.config, "time": self.time, "publish": self.publish}

    @property
    def effects(self) -> Effects:
        return Effects(publish=self.publish)

    @classmethod
    def decode(cls, fields: Fields) -> "Created":
        """Raises UnfitError, as all below. The format looks at its keys itself."""
        time, publish = fields.required("time", text), fields.required("publish", read_published)
        return cls(config=fields.rest(), time=time, publish=publish)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured(SlotBody):
    """``settings``: all that are set, by key. ``config``: the format's keys that change, None when none does. ``replaces``: the
    file that says the same to readers. Older slots have neither of these two.
    """

    KIND = SlotKind.CONFIG

    settings: Mapping[str, str]
    config: Mapping[str, Json] | None = None
    replaces: ReplacedFile | None = None

    @classmethod
    def decode(cls, fields: Fields) -> "Configured":
        return cls(
            settings=fields.required("settings", read_texts_by_key),
            config=fields.optional("config", json_map),
            replaces=fields.optional("replaces", read_replaced),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence(SlotBody):
    """A new epoch. ``ahead``: its owner accepts times that are in the future."""

    KIND = SlotKind.FENCE
    KEYS = ("reserved", "ahead")

    owner: OwnerProcess
    ahead: TimesAhead | None = None

    def encode(self) -> dict[str, Json]:
        """Its JSON in a slot, where the owner's key is ``holder``."""
        return {"holder": self.owner.encode(), **SlotBody.encode(self)}

    @classmethod
    def decode(cls, fields: Fields) -> "Fence":
        return cls(
            owner=fields.required("holder", OwnerProcess.decode),
            ahead=fields.optional("ahead", read_times_ahead),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve(SlotBody):
    """Nothing but new instants. ``ahead``: as in ``Fence``."""

    KIND = SlotKind.RESERVE
    KEYS = ("reserved", "ahead", "deleted")

    ahead: TimesAhead | None = None

    @classmethod
    def decode(cls, fields: Fields) -> "Reserve":
        return cls(ahead=fields.optional("ahead", read_times_ahead), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(SlotBody):
    """``publish`` is empty when it commits offsets alone (rule RO5). ``config``: the format's keys that change with the rows,
    None when none does.
    """

    KIND = SlotKind.COMMIT
    KEYS = ("instant", "completion", "reserved", "files", "channels", "config", "min_reader", "min_writer", "publish", "deleted")

    instant: str
    completion: str
    files: Sequence[DataFile]
    channels: Channels
    publish: Sequence[EncodedFile]
    config: Mapping[str, Json] | None = None

    @property
    def effects(self) -> Effects:
        return Effects(instant=self.instant, files=self.files, publish=self.publish)

    @classmethod
    def decode(cls, fields: Fields) -> "Commit":
        return cls(
            instant=fields.required("instant", text),
            completion=fields.required("completion", text),
            files=fields.required("files", read_files),
            channels=fields.required("channels", read_channels),
            publish=fields.required("publish", read_published),
            config=fields.optional("config", json_map),
            **common(fields),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets(SlotBody):
    """Channel records without rows, and names of channels to ``forget``."""

    KIND = SlotKind.OFFSETS

    channels: Channels
    forget: Sequence[str]

    @classmethod
    def decode(cls, fields: Fields) -> "Offsets":
        return cls(channels=fields.required("channels", read_channels), forget=fields.required("forget", texts), **common(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead(SlotBody):
    """``named``: dead instants with names that may now be deleted; ``swept``: those whose files are gone (rule D1)."""

    KIND = SlotKind.DEAD
    KEYS = ("named", "swept", "reserved", "deleted")

    named: Mapping[str, Sequence[str]]
    swept: Sequence[str]

    @classmethod
    def decode(cls, fields: Fields) -> "Dead":
        return cls(named=fields.required("named", read_names_by_instant), swept=fields.required("swept", texts), **common(fields))
