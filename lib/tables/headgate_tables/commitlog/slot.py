"""A slot: one create-only, numbered object of the commit log, and its bytes.

First line: ``headgate-slot 1 <sha256 of the rest>``, so that a flipped bit is seen even in the newest slot. The rest is
JSON: ``{fmt, n, epoch, nonce, prev_hash, kind, body}``; ``prev_hash`` is the sha256 of slot n-1's whole bytes.
"""

import enum
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.errors import CorruptFileError, UnsupportedTableError

FORMAT = 1
GENESIS_HASH = "0" * 64
_MAGIC = b"headgate-slot"


class Kind(enum.StrEnum):
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


@dataclass(frozen=True, slots=True)
class Slot:
    """One decision. ``nonce`` is drawn once per decision; repeats of the same bytes carry the same one (rule C4)."""

    n: int
    epoch: int
    nonce: str
    prev_hash: str
    kind: Kind
    body: Mapping[str, Any]

    def encode(self) -> bytes:
        """The slot's bytes; equal slots give equal bytes."""
        content = {"fmt": FORMAT, "n": self.n, "epoch": self.epoch, "nonce": self.nonce, "prev_hash": self.prev_hash}
        return seal(content | {"kind": self.kind.value, "body": self.body})


def hash_of(data: bytes) -> str:
    """What the next slot's ``prev_hash`` holds."""
    return hashlib.sha256(data).hexdigest()


def seal(content: Mapping[str, Any]) -> bytes:
    """JSON behind a line with its own checksum."""
    payload = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%s %d %s\n%s" % (_MAGIC, FORMAT, hash_of(payload).encode(), payload)


def unseal(data: bytes, path: str) -> dict[str, Any]:
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
    content = json.loads(payload)
    if not isinstance(content, dict):
        raise _damaged(path, "it holds no object")
    return content


def decode_slot(data: bytes, layout: LogLayout, n: int) -> Slot:
    """Slot ``n`` from its bytes. Raises CorruptFileError or UnsupportedTableError (unknown kind)."""
    path = layout.slot_path(n)
    content = unseal(data, path)
    if content.get("n") != n:
        raise _damaged(path, f"it says that it is slot {content.get('n')}")
    kind = content["kind"]
    if kind not in Kind.__members__:
        raise UnsupportedTableError(
            f"{path} is of the kind {kind!r}, which this version does not know",
            fix="Upgrade headgate-tables; to go on without knowing what it decided could lose rows.",
        )
    body = content["body"]
    if max(body.get("min_reader", 1), body.get("min_writer", 1)) > FORMAT:
        raise UnsupportedTableError(f"{path} needs a newer version than this one", fix="Upgrade headgate-tables.")
    return Slot(n, content["epoch"], content["nonce"], content["prev_hash"], Kind(kind), body)


def _damaged(path: str, why: str) -> CorruptFileError:
    return CorruptFileError(
        f"{path} is damaged: {why}",
        fix="Restore it from a copy of the table; without it, what was committed cannot be told. Reading the table still works.",
    )
