"""What slots and folds have in common: files, channel records, savepoints, the table's owner. Knows no format."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from headgate_tables.commitlog.fields import (
    Fields,
    Json,
    UnfitError,
    flag,
    json_list,
    json_map,
    list_of,
    map_of,
    number,
    text,
    texts,
)
from headgate_tables.commitlog.times import TimesAhead, parse_time


class DataFile(NamedTuple):
    """One data file of a commit. ``stage`` is where its bytes wait (local disks), or "" when they are in place."""

    path: str
    size: int
    sha256: str
    stage: str


class EncodedFile(NamedTuple):
    """A file that a slot derives. ``content``: base64."""

    path: str
    content: str


class ReplacedFile(NamedTuple):
    """A file that other programs may change too, and its new content (base64). ``was``: sha256 of the content that it replaces;
    with any other content the file is another program's and stays.
    """

    path: str
    was: str
    content: str


class DropRecord(NamedTuple):
    """A table was dropped at ``time``, an instant of the table, by the principal or user ``by``; "" when nobody said who."""

    time: str
    by: str

    def describe(self, done: str = "dropped") -> str:
        """For messages: ``dropped at 2026-11-25 20:14:03 UTC by ann``."""
        at = f"{datetime.fromtimestamp(parse_time(self.time) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        return f"{done} at {at} by {self.by}" if self.by else f"{done} at {at}"


class GraceRecord(NamedTuple):
    """A table was dropped at ``time`` by ``by``, as in ``DropRecord``; its files stay ``until``, in ms of the wall clock."""

    time: str
    by: str
    until: int

    def describe(self) -> str:
        """For messages, as ``DropRecord.describe``."""
        return DropRecord(self.time, self.by).describe()

    @property
    def end(self) -> str:
        """For messages: ``2026-12-02 20:14:03 UTC``."""
        return f"{datetime.fromtimestamp(self.until / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


class ChannelRecord(NamedTuple):
    """What a slot records of a channel (rules CH4, CH5). ``time``: of its last commit, in milliseconds of the wall clock."""

    incarnation: int
    offset: int
    principal: str
    time: int


DerivedFile: TypeAlias = tuple[str, bytes]
"""Path and content of a file that a slot derives."""
Channels: TypeAlias = Mapping[str, ChannelRecord]
"""Records of channels, by name."""
StuckRecord: TypeAlias = Mapping[str, Json]
"""The format's record of a file slice that cannot be compacted. The log itself reads only the flag ``aside`` in it."""


# Checked by hand: a log has very many of these, and anything more general takes longer.


def _read_file(value: object) -> DataFile:
    if type(value) is list and len(value) == 4:
        path, size, sha256, stage = value
        if type(path) is str and type(size) is int and type(sha256) is str and type(stage) is str:
            return DataFile(path, size, sha256, stage)
    raise UnfitError("does not hold a list of path, size, sha256 and stage")


def read_replaced(value: object) -> ReplacedFile:
    """Raises UnfitError."""
    if type(value) is list and len(value) == 3:
        path, was, content = value
        if type(path) is str and type(was) is str and type(content) is str:
            return ReplacedFile(path, was, content)
    raise UnfitError("does not hold a list of path, sha256 and content")


def _read_encoded(value: object) -> EncodedFile:
    if type(value) is list and len(value) == 2:
        path, content = value
        if type(path) is str and type(content) is str:
            return EncodedFile(path, content)
    raise UnfitError("does not hold a list of path and content")


def _read_record(value: object) -> ChannelRecord:
    if type(value) is list and len(value) == 4:
        incarnation, offset, principal, time = value
        if type(incarnation) is int and type(offset) is int and type(principal) is str and type(time) is int:
            return ChannelRecord(incarnation, offset, principal, time)
    raise UnfitError("does not hold a list of incarnation, offset, principal and time")


def read_drop(value: object) -> DropRecord:
    """Raises UnfitError."""
    if type(value) is list and len(value) == 2:
        time, by = value
        if type(time) is str and type(by) is str:
            return DropRecord(time, by)
    raise UnfitError("does not hold a list of time and principal")


def read_grace(value: object) -> GraceRecord:
    """Raises UnfitError."""
    if type(value) is list and len(value) == 3:
        time, by, until = value
        if type(time) is str and type(by) is str and type(until) is int:
            return GraceRecord(time, by, until)
    raise UnfitError("does not hold a list of time, principal and end")


def read_times_ahead(value: object) -> TimesAhead:
    """The value as an ``TimesAhead``. Raises UnfitError."""
    if type(value) is list and len(value) == 2:
        floor, at = value
        if type(floor) is str and type(at) is int:
            return TimesAhead(floor, at)
    raise UnfitError("does not hold a list of floor and time")


read_files = list_of(_read_file)
read_published = list_of(_read_encoded)
read_channels = map_of(_read_record)
read_names_by_instant = map_of(texts)


def encode_derived(files: Sequence[DerivedFile]) -> list[EncodedFile]:
    """The files as a slot holds them."""
    return [EncodedFile(path, base64.b64encode(content).decode()) for path, content in files]


def read_stuck_record(value: object) -> StuckRecord:
    """The value as a ``StuckRecord`` record. Raises UnfitError."""
    content = json_map(value)
    Fields({**content}).required("aside", flag)
    return content


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint. ``completion``: when the savepoint completed; ``point``: when the commit that it saves did.

    ``config``: the format's keys as they were, of those that have changed since by an ALTER or COMMIT slot; null: there was none.
    """

    completion: str
    point: str
    channels: Channels
    config: Mapping[str, Json] = field(default_factory=dict)

    def encode(self) -> dict[str, Json]:
        """Its JSON in an ADOPT slot and in a fold."""
        encoded: dict[str, Json] = {"completion": self.completion, "point": self.point, "channels": self.channels}
        return encoded | ({"config": self.config} if self.config else {})

    @classmethod
    def decode(cls, content: object) -> "Savepoint":
        """Raises UnfitError."""
        fields = Fields(content)
        saved = cls(
            completion=fields.required("completion", text),
            point=fields.required("point", text),
            channels=fields.required("channels", read_channels),
            config=fields.optional("config", json_map) or {},
        )
        fields.refuse_others()
        return saved


read_stuck_slices = map_of(read_stuck_record)
read_plans = map_of(json_list)
read_savepoints = map_of(Savepoint.decode)


@dataclass(frozen=True, slots=True)
class OwnerProcess:
    """The process that won the newest FENCE: a ``library`` or a ``cluster`` (``address``: where to connect)."""

    kind: str
    host: str
    pid: int
    address: str = ""

    def describe(self) -> str:
        """For messages."""
        return f"the cluster at {self.address}" if self.kind == "cluster" else f"process {self.pid} on {self.host}"

    def encode(self) -> dict[str, Json]:
        """Its JSON in a FENCE slot."""
        return {"kind": self.kind, "host": self.host, "pid": self.pid, "address": self.address}

    @classmethod
    def decode(cls, content: object) -> "OwnerProcess":
        """Raises UnfitError."""
        fields = Fields(content)
        owner = cls(
            fields.required("kind", text),
            fields.required("host", text),
            fields.required("pid", number),
            fields.required("address", text),
        )
        fields.refuse_others()
        return owner
