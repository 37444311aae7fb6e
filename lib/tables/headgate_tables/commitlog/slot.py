"""A slot: one create-only, numbered object of the commit log, and its bytes.

First line: ``headgate-slot 1 <sha256 of the rest>``, so that a flipped bit is seen even in the newest slot. The rest is
JSON: ``{fmt, n, epoch, nonce, prev_hash, kind, body}``; ``prev_hash`` is the sha256 of slot n-1's whole bytes.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate_tables.commitlog.bodies import (
    Commit,
    Configured,
    Created,
    Dead,
    Effects,
    Fence,
    Offsets,
    Reserve,
    ServiceBody,
    SlotKind,
)
from headgate_tables.commitlog.fields import Fields, Json, UnfitError, json_map, number, text
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.records import DataFile, EncodedFile, ReplacedFile
from headgate_tables.errors import CorruptFileError, UnsupportedTableError

FORMAT = 1
_MAGIC = b"headgate-slot"


Body: TypeAlias = Created | Configured | Fence | Reserve | Commit | Offsets | Dead | ServiceBody

_KINDS: Mapping[str, SlotKind] = SlotKind.__members__.copy()
_DECODE: Mapping[SlotKind, Callable[[Fields], Body]] = {
    SlotKind.CONFIG: Configured.decode,
    SlotKind.FENCE: Fence.decode,
    SlotKind.RESERVE: Reserve.decode,
    SlotKind.COMMIT: Commit.decode,
    SlotKind.OFFSETS: Offsets.decode,
    SlotKind.DEAD: Dead.decode,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One decision. ``nonce`` is drawn once per decision; repeats of the same bytes carry the same one (rule C4)."""

    n: int
    epoch: int
    nonce: str
    prev_hash: str
    body: Body

    @property
    def kind(self) -> SlotKind:
        """What the slot decides."""
        return self.body.KIND

    @property
    def effects(self) -> Effects:
        """What the slot does besides changing the state."""
        return self.body.effects

    @property
    def instant(self) -> str:
        """The instant that it begins, completes or ends; "" for one of another kind."""
        return self.effects.instant

    @property
    def files(self) -> Sequence[DataFile]:
        """The data files that it commits."""
        return self.effects.files

    @property
    def publish(self) -> Sequence[EncodedFile]:
        """The files that it derives, in the order of their creation."""
        return self.effects.publish

    @property
    def names(self) -> Sequence[str]:
        """Names that it gives up."""
        return self.effects.names

    @property
    def replaces(self) -> ReplacedFile | None:
        """The file that it gives another content."""
        return self.body.replaces if isinstance(self.body, Configured) else None

    def encode(self) -> bytes:
        """The slot's bytes; equal slots give equal bytes."""
        head: dict[str, Json] = {"fmt": FORMAT, "n": self.n, "epoch": self.epoch, "nonce": self.nonce}
        return seal({**head, "prev_hash": self.prev_hash, "kind": self.kind.value, "body": self.body.encode()})


def hash_of(data: bytes) -> str:
    """What the next slot's ``prev_hash`` holds."""
    return hashlib.sha256(data).hexdigest()


def seal(content: Mapping[str, Json]) -> bytes:
    """JSON behind a line with its own checksum."""
    payload = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%s %d %s\n%s" % (_MAGIC, FORMAT, hash_of(payload).encode(), payload)


def unseal(data: bytes, path: str) -> dict[str, Json]:
    """The JSON of a sealed object. Raises CorruptFileError, or UnsupportedTableError for a newer format."""
    head, _, payload = data.partition(b"\n")
    words = head.split(b" ")
    if len(words) != 3 or words[0] != _MAGIC:
        raise _damaged(path, "it does not begin as a slot does")
    if words[1] != b"%d" % FORMAT:
        raise UnsupportedTableError(
            f"{path} has format {words[1].decode(errors='replace')}, this version knows {FORMAT}",
            fix="Upgrade headgate-tables to the version that wrote the table.",
        )
    if hash_of(payload).encode() != words[2]:
        raise _damaged(path, "its checksum does not match")
    try:
        return json_map(json.loads(payload.decode()))
    except UnfitError as error:
        raise _damaged(path, f"it {error.why}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is no JSON") from error


def decode_slot(data: bytes, layout: LogFormat, n: int) -> Slot:
    """Slot ``n`` from its bytes. Raises CorruptFileError or UnsupportedTableError (unknown kind or key)."""
    path = layout.slot_path(n)
    content = unseal(data, path)
    if content.get("n") != n:
        raise _damaged(path, f"it says that it is slot {content.get('n')}")
    try:
        return _decode(content, layout, n, path)
    except UnfitError as error:
        raise unfit(path, error) from error


def _decode(content: dict[str, Json], layout: LogFormat, n: int, path: str) -> Slot:
    fields = Fields(content)
    _, _, epoch = fields.required("fmt", number), fields.required("n", number), fields.required("epoch", number)
    nonce, prev_hash = fields.required("nonce", text), fields.required("prev_hash", text)
    name, body = fields.required("kind", text), fields.required("body", json_map)
    fields.refuse_others()
    decode = _decoder(_KINDS.get(name), layout, n)
    if decode is None:
        raise UnsupportedTableError(
            f"{path} is of the kind {name!r}, which this version does not know",
            fix="Upgrade headgate-tables; to go on without knowing what it decided could lose rows.",
        )
    try:
        if max(_version(body, "min_reader"), _version(body, "min_writer")) > FORMAT:
            raise UnsupportedTableError(f"{path} needs a newer version than this one", fix="Upgrade headgate-tables.")
        return Slot(n, epoch, nonce, prev_hash, decode(Fields(body)))
    except UnfitError as error:
        raise error.below("body") from None


def _version(body: Mapping[str, Json], key: str) -> int:
    try:
        return number(body.get(key, FORMAT))
    except UnfitError as error:
        raise error.below(key) from None


def _decoder(kind: SlotKind | None, layout: LogFormat, n: int) -> Callable[[Fields], Body] | None:
    """None for a kind that neither the log nor its format knows."""
    if kind is SlotKind.CONFIG and n == 0:
        return Created.decode
    return None if kind is None else _DECODE.get(kind) or layout.services.get(kind)


def unfit(path: str, error: UnfitError) -> CorruptFileError | UnsupportedTableError:
    """What to raise for a slot or fold with a key or value that does not fit."""
    if error.unknown:
        return UnsupportedTableError(
            f"{path}: {error}", fix="Upgrade headgate-tables; to go on without knowing what it says could lose rows."
        )
    return _damaged(path, str(error))


def _damaged(path: str, why: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} is damaged: {why}",
        fix="Restore it from a copy of the table; without it, nobody knows what was committed. Reading the table still works.",
    )
