"""File slices that cannot be compacted: why, when the next plan tries, and which an operator has set aside. Pure.

The commit log keeps this (``LogState.stuck``), so that a takeover neither forgets it nor starts to try from the beginning.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from headgate_tables.backoff import Backoff
from headgate_tables.commitlog.fields import Fields, Json, UnfitError, flag, number, text, texts
from headgate_tables.commitlog.records import StuckRecord
from headgate_tables.commitlog.state import LogState
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.keys.bucket import bucket_of

FIRST_REST_MS = 60_000
"""How long a slice rests after a plan dropped it, before another plan; doubles with each further failure."""
LONGEST_REST_MS = 3_600_000

Key = tuple[str, str]
"""Partition and file id."""


@dataclass(frozen=True, slots=True)
class StuckSlice:
    """``why``: the last failure. ``tries``: plans that dropped it. ``again``: milliseconds of the wall clock before which it is
    not planned. ``aside``: an operator has set it aside, so that it is not planned at all and its rows are refused.
    ``without``: names of its files that are lost, which an operator has accepted: it is compacted without them.
    """

    partition: str
    file_id: str
    why: str
    tries: int = 0
    again: int = 0
    aside: bool = False
    without: Sequence[str] = ()

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
        """Its name for people."""
        return name_of(self.key)

    @property
    def is_accepted(self) -> bool:
        """Whether nothing has failed since an operator accepted the loss of its files."""
        return bool(self.without) and not self.again

    def rests(self, now: int) -> bool:
        """Whether it is not planned at ``now``, in milliseconds. A clock that was ahead for a while does not lengthen a rest."""
        return self.aside or now < self.again <= now + LONGEST_REST_MS

    def encode(self) -> StuckRecord:
        """Its record in a slot. Without files that are accepted as lost, versions before these can read it."""
        record: dict[str, Json] = asdict(self)
        del record["without"]
        return record | ({"without": list(self.without)} if self.without else {})

    @classmethod
    def decode(cls, entry: StuckRecord) -> "StuckSlice":
        """From a slot's record. Raises CorruptFileError."""
        try:
            fields = Fields({**entry})
            found = cls(
                partition=fields.required("partition", text),
                file_id=fields.required("file_id", text),
                why=fields.required("why", text),
                tries=fields.required("tries", number),
                again=fields.required("again", number),
                aside=fields.required("aside", flag),
                without=tuple(fields.optional("without", texts) or ()),
            )
            fields.refuse_others()
        except UnfitError as error:
            raise CorruptFileError(
                f"the commit log's record of a file slice that is not compacted is damaged: {error}",
                fix="Upgrade headgate-tables to the version that wrote it, or restore the log from a copy of the table.",
            ) from error
        return found


def name_of(key: Key) -> str:
    """A file slice's name: the path of its file group from the table's root."""
    partition, file_id = key
    return f"{partition}/{file_id}" if partition else file_id


def stuck_slices(state: LogState) -> Mapping[Key, StuckSlice]:
    """By key, according to the newest slot."""
    return {slice_.key: slice_ for slice_ in map(StuckSlice.decode, state.stuck.values())}


def failed_again(known: StuckSlice | None, key: Key, why: str, now: int) -> StuckSlice:
    """What to record of a slice that a plan has dropped; ``known``: the record before."""
    before = known or StuckSlice(*key, why)
    rest = int(Backoff(FIRST_REST_MS, LONGEST_REST_MS).after(before.tries + 1))
    return replace(before, why=why, tries=before.tries + 1, again=now + rest)


def after_plan(
    known: Mapping[Key, StuckSlice], finished: Collection[Key], dropped: Mapping[Key, str], now: int
) -> tuple[dict[str, StuckRecord], list[str]]:
    """What the slot that ends a plan says: records of the slices that it dropped, and names of those that are no longer stuck."""
    stuck = [failed_again(known.get(key), key, why, now) for key, why in dropped.items()]
    return {each.name: each.encode() for each in stuck}, [name_of(key) for key in finished if key in known]
