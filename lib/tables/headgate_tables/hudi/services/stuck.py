"""File slices that cannot be compacted: what is known of each, when it is tried again, who has set it aside. Pure.

It stands in the commit log (``LogState.stuck``), so that a takeover neither forgets it nor begins to try from the start.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace

from headgate_tables.backoff import Backoff
from headgate_tables.commitlog.fields import Fields, UnfitError, flag, number, text
from headgate_tables.commitlog.records import Stuck
from headgate_tables.commitlog.state import LogState
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.keys.bucket import bucket_of

FIRST_REST_MS = 60_000
"""Before a slice that could not be compacted is planned again; twice as long after each further time."""
LONGEST_REST_MS = 3_600_000

Key = tuple[str, str]
"""Partition and file id."""


@dataclass(frozen=True, slots=True)
class StuckSlice:
    """``why``: the last failure. ``tries``: plans that went on without it. ``again``: milliseconds of the wall clock before which
    it is not planned. ``aside``: an operator has set it aside, so that it is not planned at all and takes no rows.
    """

    partition: str
    file_id: str
    why: str
    tries: int = 0
    again: int = 0
    aside: bool = False

    @property
    def key(self) -> Key:
        """Partition and file id."""
        return self.partition, self.file_id

    @property
    def bucket(self) -> int | None:
        """None for a file group of another index, which gets no rows from here."""
        try:
            return bucket_of(self.file_id)
        except CorruptFileError:
            return None

    @property
    def name(self) -> str:
        """As people name it."""
        return name_of(self.key)

    def rests(self, now: int) -> bool:
        """Whether it is not planned at ``now``, in milliseconds. A clock that was ahead for a while makes no rest longer."""
        return self.aside or now < self.again <= now + LONGEST_REST_MS

    def encode(self) -> Stuck:
        """As it stands in a slot."""
        return asdict(self)

    @classmethod
    def decode(cls, entry: Stuck) -> "StuckSlice":
        """Raises CorruptFileError."""
        try:
            fields = Fields({**entry})
            found = cls(
                partition=fields.take("partition", text),
                file_id=fields.take("file_id", text),
                why=fields.take("why", text),
                tries=fields.take("tries", number),
                again=fields.take("again", number),
                aside=fields.take("aside", flag),
            )
            fields.end()
        except UnfitError as error:
            raise CorruptFileError(
                f"what the commit log says of a file slice that is not compacted is damaged: {error}",
                fix="Upgrade headgate-tables to the version that wrote it, or restore the log from a copy of the table.",
            ) from error
        return found


def name_of(key: Key) -> str:
    """A file slice's name: where its file group lies from the table's root."""
    partition, file_id = key
    return f"{partition}/{file_id}" if partition else file_id


def stuck_slices(state: LogState) -> Mapping[Key, StuckSlice]:
    """As the newest slot says, by key."""
    return {slice_.key: slice_ for slice_ in map(StuckSlice.decode, state.stuck.values())}


def failed_again(known: StuckSlice | None, key: Key, why: str, now: int) -> StuckSlice:
    """A plan goes on without the slice; ``known``: what there was to say of it before."""
    before = known or StuckSlice(*key, why)
    rest = int(Backoff(FIRST_REST_MS, LONGEST_REST_MS).after(before.tries + 1))
    return replace(before, why=why, tries=before.tries + 1, again=now + rest)


def after_plan(
    known: Mapping[Key, StuckSlice], finished: Collection[Key], dropped: Mapping[Key, str], now: int
) -> tuple[dict[str, Stuck], list[str]]:
    """What the slot that ends a plan says: which slices it went on without, and why; the names of those compacted at last."""
    stuck = [failed_again(known.get(key), key, why, now) for key, why in dropped.items()]
    return {each.name: each.encode() for each in stuck}, [name_of(key) for key in finished if key in known]
