"""Slot work on a real table: what is reported, in which order, and what stands on the store then."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headgate_coordinator.core.events import (
    CommitRefused,
    Event,
    FilesRefused,
    InstantIssued,
    InstantRefused,
    OffsetsRefused,
    OffsetsWon,
    Published,
    SliceFigures,
    SlotWon,
)
from headgate_coordinator.core.instructions import AskLog, CommitCheckpoint, DropCheckpoint, IssueInstant, WinOffsets
from headgate_coordinator.tables.committer import Committer
from headgate_coordinator.tables.idle_channels import forget_idle_channels
from headgate_coordinator.tables.work import Maintain, RunService, Work
from headgate_tables.commitlog.records import ChannelRecord
from headgate_tables.errors import (
    CorruptFileError,
    DeposedError,
    FixCall,
    ForeignWriterError,
    MissingFileError,
    OutcomeUnknownError,
    StoreDeniedError,
    StoreUnavailableError,
    TableGoneError,
    TablesError,
)
from headgate_tables.face.files import WriteStatus
from headgate_tables.hudi import OwnerProcess, Table, open_table
from headgate_tables.hudi.change_writer import ChangeWriter
from headgate_tables.hudi.place import place
from headgate_tables.storage.store import Outcome
from support.alarms import text_of
from support.handles import open_on
from support.splitting import split
from support.systems import FaultyStore
from support.tables import create, notes, rows

NOW_MS = 1_800_000_000_000


class Owner:
    """A committer of a cluster's handle on the table in ``folder``, and what it has reported."""

    def __init__(self, folder: Path, name: str = "one") -> None:
        self.store = FaultyStore(folder / "table")
        owner = OwnerProcess("cluster", "host", 1, f"{name}:1")
        self.table = open_on(self.store, owner=owner)
        self.table.own()
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda event: None
        self.committer = Committer(self.table, lambda: NOW_MS, self._report)

    def _report(self, event: Event) -> None:
        self.on_event(event)
        self.events.append(event)

    def do(self, work: Work) -> list[Event]:
        """What it reports."""
        self.events.clear()
        self.committer.execute(work)
        return list(self.events)

    def instant(self, number: int, generation: int = 1) -> str:
        (issued,) = self.do(IssueInstant(generation, number))
        assert isinstance(issued, InstantIssued)
        return issued.instant

    def files(self, instant: str, *entries: tuple[str, int, str], part: str = "p") -> Sequence[WriteStatus]:
        """Written as a writer does."""
        definition = self.table.definition
        assert definition is not None
        writer = ChangeWriter(self.store, definition, epoch=self.table.epoch, process="p", ordinal=0)
        changes = split(place(rows(*entries, part=part), None, definition))
        return writer.write(instant, changes, [1] * len(changes), block_format="parquet")


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    create(tmp_path)
    return Owner(tmp_path)


def timeline(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "table/.hoodie/timeline").iterdir() if path.is_file())


def slots(folder: Path) -> list[Path]:
    return sorted((folder / "table/.hoodie/.headgate/slot").iterdir())


def kinds(folder: Path) -> list[str]:
    return [path.read_text().partition('"kind":"')[2].partition('"')[0] for path in slots(folder)]


def test_an_instant_is_requested_and_inflight_when_it_is_reported(owner: Owner, tmp_path: Path) -> None:
    instant = owner.instant(1)
    assert timeline(tmp_path) == [f"{instant}.deltacommit.inflight", f"{instant}.deltacommit.requested"]


def test_a_commit_is_won_then_published_and_read(owner: Owner, tmp_path: Path) -> None:
    instant = owner.instant(1)
    files = owner.files(instant, ("a", 1, "x"))
    seen: list[tuple[str, bool]] = []

    def look(event: Event) -> None:
        seen.append((type(event).__name__, any(instant in name and "_" in name for name in timeline(tmp_path))))

    owner.on_event = look
    owner.do(CommitCheckpoint(1, 1, files, {"c": (1, 7, "me")}))
    assert seen == [("SlotWon", False), ("Published", True)]
    reopened = open_table(f"file://{tmp_path}/table")
    assert notes(reopened) == {"a": "x"}
    assert reopened.channels == {"c": ChannelRecord(1, 7, "me", NOW_MS)}
    last = owner.committer.last_commit
    assert (last.instant, last.at_ms, last.files) == (instant, NOW_MS, 1)
    assert last.bytes > 0


@pytest.mark.parametrize(
    "work",
    [CommitCheckpoint(1, 1, [], {"c": (2, 9, "me")}), WinOffsets(1, {"c": (2, 9, "me")})],
    ids=["a checkpoint without rows", "an open"],
)
def test_offsets_stand_in_a_slot_before_anybody_hears_of_them(owner: Owner, tmp_path: Path, work: Work) -> None:
    """Rule CH4, and what a client takes for durable."""
    seen: list[object] = []
    owner.on_event = lambda event: seen.append(open_table(f"file://{tmp_path}/table").channels)
    owner.do(work)
    assert seen == [{"c": ChannelRecord(2, 9, "me", NOW_MS)}] * len(seen)
    assert seen


def test_a_checkpoint_of_offsets_that_the_store_refuses_is_told_as_refused_and_as_nothing_else(owner: Owner) -> None:
    def refuse(path: str) -> Outcome | None:
        raise StoreUnavailableError("busy", fix="later")

    work = CommitCheckpoint(1, 1, [], {"c": (1, 1, "me")})
    owner.store.before_create = refuse
    (refused,) = owner.do(work)
    assert isinstance(refused, CommitRefused)
    owner.store.before_create = lambda path: None
    assert owner.do(work) == [SlotWon(1, 1), Published(1, 1)]


def test_an_instant_whose_announcement_failed_is_given_up_with_its_checkpoint(owner: Owner, tmp_path: Path) -> None:
    """It is requested and never goes inflight: nobody may take it for one that is being written."""

    def refuse_inflight(path: str) -> Outcome | None:
        if path.endswith(".inflight"):
            raise StoreUnavailableError("busy", fix="later")
        return None

    owner.store.before_create = refuse_inflight
    (refused,) = owner.do(IssueInstant(1, 1))
    assert isinstance(refused, InstantRefused)
    (lost,) = timeline(tmp_path)
    owner.store.before_create = lambda path: None
    assert owner.do(DropCheckpoint(1, 1)) == []
    instant = owner.instant(1)
    owner.do(CommitCheckpoint(1, 1, owner.files(instant, ("a", 1, "x")), {}))
    owner.committer.tidy()
    assert lost not in timeline(tmp_path)
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": "x"}


def test_who_is_alone_with_the_table_finds_no_checkpoint_open_and_committed_ones_as_they_were(
    owner: Owner, tmp_path: Path
) -> None:
    """Rule CH8: a restore must not meet a transaction of a checkpoint."""
    owner.do(CommitCheckpoint(1, 1, owner.files(owner.instant(1), ("a", 1, "x")), {}))
    lost = owner.instant(2)
    answers: list[object] = []
    owner.committer.finish_with(RunService(lambda table: answers.append(table.tidy()), answers.append))
    assert answers == [None]
    assert not [name for name in timeline(tmp_path) if name.startswith(lost)]
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": "x"}


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (FixCall("no such savepoint", fix="list them"), False),
        (StoreUnavailableError("busy", fix="later"), False),
        (CorruptFileError("a savepoint is damaged", fix="remove it"), False),
        (MissingFileError("a base file is gone", fix="restore it"), False),
        (DeposedError("another owns it", fix="open again"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_request_meets_is_told_to_who_asked_and_ends_the_ownership_if_it_is_about_the_table(
    owner: Owner, error: TablesError, ends: bool
) -> None:
    def fail(table: Table) -> None:
        raise error

    failed: list[BaseException] = []
    work = RunService(fail, failed.append)
    with pytest.raises(type(error)) if ends else contextlib.nullcontext():
        assert owner.do(work) == []
    assert failed == [error]


def test_an_owner_that_asks_the_log_goes_on_unless_another_has_fenced(owner: Owner, tmp_path: Path) -> None:
    assert owner.do(AskLog()) == []
    other = Owner(tmp_path, "other")
    with pytest.raises(DeposedError):
        owner.do(AskLog())
    assert other.do(AskLog()) == []


def test_a_log_that_does_not_answer_is_asked_again_behind_the_next_work(
    owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Owner(tmp_path, "other")

    def busy(path: str) -> int | None:
        raise StoreUnavailableError("busy", fix="later")

    with monkeypatch.context() as patch:
        patch.setattr(owner.store, "size", busy)
        assert owner.do(AskLog()) == []
    with pytest.raises(DeposedError):
        owner.do(Maintain())


def test_the_fullest_slice_is_reported_behind_each_commit_once_the_slices_were_counted(owner: Owner) -> None:
    told: list[SliceFigures] = []
    owner.on_event = lambda event: told.append(event) if isinstance(event, SliceFigures) else None
    for checkpoint in (1, 2, 3):
        owner.do(CommitCheckpoint(1, checkpoint, owner.files(owner.instant(checkpoint), ("a", checkpoint, "x")), {}))
        assert len(told) == (checkpoint if checkpoint > 1 else 0)
        while not told:
            owner.do(Maintain())
    assert [(each.files, each.max_files) for each in told] == [(n, owner.table.settings.max_log_files) for n in (1, 2, 3)]
    assert 0 < told[0].bytes < told[1].bytes < told[2].bytes


def test_a_commit_that_leaves_the_fullest_slice_as_it_is_is_reported_too(owner: Owner) -> None:
    """What its checkpoint might have added to that slice need not be reckoned with any more."""
    told: list[SliceFigures] = []
    owner.on_event = lambda event: told.append(event) if isinstance(event, SliceFigures) else None
    for checkpoint in (1, 2):
        owner.do(CommitCheckpoint(1, checkpoint, owner.files(owner.instant(checkpoint), ("a", checkpoint, "x" * 1000)), {}))
    while not told:
        owner.do(Maintain())
    told.clear()
    owner.do(CommitCheckpoint(1, 3, owner.files(owner.instant(3), ("a", 1, "x"), part="q"), {}))
    (figures,) = told
    assert figures.files == 2


def test_ro10_a_commit_with_a_file_that_is_not_there_decides_nothing_and_says_which(owner: Owner, tmp_path: Path) -> None:
    """A slot that named it could never be published."""
    instant = owner.instant(1)
    there, gone = (owner.files(instant, ("a", 1, "x"), part=part)[0] for part in ("p", "q"))
    owner.store.delete([gone.file.stage])
    before = slots(tmp_path)
    (refused,) = owner.do(CommitCheckpoint(1, 1, [there, gone], {"c": (1, 1, "me")}))
    assert refused == FilesRefused(1, 1, {1: f"{gone.stat.path} is reported with {gone.stat.size} bytes, and is not there"})
    assert slots(tmp_path) == before
    owner.do(DropCheckpoint(1, 1))
    files = owner.files(owner.instant(1, 2), ("a", 1, "x"))
    assert owner.do(CommitCheckpoint(2, 1, files, {})) == [SlotWon(2, 1), Published(2, 1)]


def test_ro10_a_table_whose_folder_is_gone_makes_nobody_a_liar(owner: Owner, tmp_path: Path) -> None:
    files = owner.files(owner.instant(1), ("a", 1, "x"))
    (tmp_path / "table").rename(tmp_path / "elsewhere")
    with pytest.raises(TableGoneError):
        owner.do(CommitCheckpoint(1, 1, files, {}))
    assert owner.events == []


def test_two_checkpoints_are_open_at_once_and_commit_in_order(owner: Owner, tmp_path: Path) -> None:
    first, second = owner.instant(1), owner.instant(2)
    assert first < second
    young = owner.files(second, ("b", 1, "y"))
    old = owner.files(first, ("a", 1, "x"))
    assert owner.do(CommitCheckpoint(1, 1, old, {})) == [SlotWon(1, 1), Published(1, 1)]
    assert owner.do(CommitCheckpoint(1, 2, young, {})) == [SlotWon(1, 2), Published(1, 2)]
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": "x", "b": "y"}


def test_offsets_alone_win_a_slot_and_publish_no_instant(owner: Owner, tmp_path: Path) -> None:
    assert owner.do(CommitCheckpoint(1, 1, [], {"c": (2, 9, "me")})) == [SlotWon(1, 1), Published(1, 1)]
    assert timeline(tmp_path) == []
    assert open_table(f"file://{tmp_path}/table").channels == {"c": ChannelRecord(2, 9, "me", NOW_MS)}


def test_an_instant_without_files_is_never_completed(owner: Owner, tmp_path: Path) -> None:
    """Rule RO5: a younger checkpoint asked first, so that the empty one has an instant too."""
    empty, full = owner.instant(1), owner.instant(2)
    files = owner.files(full, ("a", 1, "x"))
    assert owner.do(CommitCheckpoint(1, 1, [], {"c": (1, 1, "me")})) == [SlotWon(1, 1), Published(1, 1)]
    assert owner.do(CommitCheckpoint(1, 2, files, {})) == [SlotWon(1, 2), Published(1, 2)]
    assert not [name for name in timeline(tmp_path) if name.startswith(f"{empty}_")]
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": "x"}
    owner.committer.tidy()
    assert not [name for name in timeline(tmp_path) if name.startswith(empty)]


def test_nothing_at_all_writes_nothing(owner: Owner, tmp_path: Path) -> None:
    before = slots(tmp_path)
    assert owner.do(CommitCheckpoint(1, 1, [], {})) == [SlotWon(1, 1), Published(1, 1)]
    assert slots(tmp_path) == before


def test_a_dropped_checkpoint_is_dead_and_the_next_has_an_instant_of_its_own(owner: Owner, tmp_path: Path) -> None:
    lost = owner.instant(1)
    owner.files(lost, ("a", 1, "lost"))
    assert owner.do(DropCheckpoint(1, 1)) == []
    again = owner.instant(1, generation=2)
    assert again > lost
    files = owner.files(again, ("a", 1, "kept"))
    assert owner.do(CommitCheckpoint(2, 1, files, {})) == [SlotWon(2, 1), Published(2, 1)]
    assert notes(open_table(f"file://{tmp_path}/table")) == {"a": "kept"}
    owner.committer.tidy()
    assert not [name for name in timeline(tmp_path) if name.startswith(lost)]


def test_dropping_what_has_no_instant_does_nothing(owner: Owner, tmp_path: Path) -> None:
    before = slots(tmp_path)
    assert owner.do(DropCheckpoint(1, 1)) == []
    assert slots(tmp_path) == before


def test_opens_are_durable_when_they_are_reported(owner: Owner, tmp_path: Path) -> None:
    assert owner.do(WinOffsets(5, {"c": (3, 0, "me")})) == [OffsetsWon(5)]
    assert open_table(f"file://{tmp_path}/table").channels == {"c": ChannelRecord(3, 0, "me", NOW_MS)}
    assert kinds(tmp_path)[-1] == "OFFSETS"


@pytest.mark.parametrize("work", ["instant", "commit", "offsets"])
def test_what_a_store_refuses_for_certain_is_refused_and_can_be_tried_again(owner: Owner, tmp_path: Path, work: str) -> None:
    def refuse(path: str) -> Outcome | None:
        raise StoreUnavailableError("busy", fix="later")

    files = owner.files(owner.instant(1), ("a", 1, "x")) if work == "commit" else []
    commit, offsets = CommitCheckpoint(1, 1, files, {}), WinOffsets(1, {"c": (1, 0, "me")})
    asked = {"instant": IssueInstant(1, 1), "commit": commit, "offsets": offsets}[work]
    owner.store.before_create = refuse
    (refused,) = owner.do(asked)
    assert isinstance(refused, {"instant": InstantRefused, "commit": CommitRefused, "offsets": OffsetsRefused}[work])
    assert "busy" in refused.why
    owner.store.before_create = lambda path: None
    if work == "instant":
        owner.do(DropCheckpoint(1, 1))
    assert owner.do(asked)
    assert not isinstance(owner.events[0], InstantRefused | CommitRefused | OffsetsRefused)
    if work == "commit":
        assert notes(open_table(f"file://{tmp_path}/table")) == {"a": "x"}
        assert owner.committer.last_commit.files == 1, "the first try's files are not counted again"
    if work != "instant":
        assert text_of(owner.committer.outage.alarm) == "", "a slot was won"


@pytest.mark.parametrize("work", ["instant", "commit", "offsets"])
def test_a_denial_is_an_alarm_until_a_slot_is_won_again_and_nobody_has_to_send_rows_for_that(owner: Owner, work: str) -> None:
    def deny(path: str) -> Outcome | None:
        raise StoreDeniedError(f"{path}: Read-only file system", fix="Remount it.")

    files = owner.files(owner.instant(1), ("a", 1, "x")) if work == "commit" else []
    commit, offsets = CommitCheckpoint(1, 1, files, {}), WinOffsets(1, {"c": (1, 0, "me")})
    asked = {"instant": IssueInstant(1, 2), "commit": commit, "offsets": offsets}
    owner.store.before_create = deny
    (refused,) = owner.do(asked[work])
    assert isinstance(refused, {"instant": InstantRefused, "commit": CommitRefused, "offsets": OffsetsRefused}[work])
    assert "the store has denied access since 2027-01-15 08:00:00 UTC" in text_of(owner.committer.outage.alarm)
    assert "Read-only file system" in text_of(owner.committer.outage.alarm)
    owner.do(Maintain())
    assert "(2 times" in text_of(owner.committer.outage.alarm)
    owner.store.before_create = lambda path: None
    owner.do(Maintain())
    assert text_of(owner.committer.outage.alarm) == ""


def test_a_commit_that_is_won_and_cannot_be_published_was_decided(owner: Owner, tmp_path: Path) -> None:
    files = owner.files(owner.instant(1), ("a", 1, "x"))

    def refuse_timeline(path: str) -> Outcome | None:
        if path.startswith(".hoodie/timeline"):
            raise StoreUnavailableError("busy", fix="later")
        return None

    owner.store.before_create = refuse_timeline
    owner.events.clear()
    with pytest.raises(OutcomeUnknownError):
        owner.committer.execute(CommitCheckpoint(1, 1, files, {"c": (1, 1, "me")}))
    assert owner.events == [SlotWon(1, 1)]
    successor = Owner(tmp_path, "two")
    assert notes(successor.table) == {"a": "x"}
    assert successor.table.channels["c"][:2] == (1, 1)


def test_a_deposed_owner_commits_nothing_more(owner: Owner, tmp_path: Path) -> None:
    files = owner.files(owner.instant(1), ("a", 1, "x"))
    successor = Owner(tmp_path, "two")
    assert successor.table.epoch == owner.table.epoch + 1
    with pytest.raises(DeposedError):
        owner.committer.execute(CommitCheckpoint(1, 1, files, {"c": (1, 1, "me")}))
    assert owner.events == [InstantIssued(1, 1, owner.events[0].instant)]  # type: ignore[union-attr]
    assert notes(successor.table) == {}
    assert successor.table.channels == {}


def test_a_foreign_instant_ends_the_ownership(owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "table/.hoodie/timeline/20200101000000000.deltacommit.requested").touch()
    with pytest.raises(ForeignWriterError):
        owner.committer.execute(IssueInstant(1, 1))


def test_channels_that_were_idle_for_long_are_forgotten(owner: Owner, tmp_path: Path) -> None:
    owner.do(WinOffsets(1, {"idle": (1, 0, "me")}))
    later = Committer(owner.table, lambda: NOW_MS + 1000, owner.events.append)
    later.execute(WinOffsets(2, {"fresh": (1, 0, "me")}))
    forget_idle_channels(owner.table, NOW_MS + 500)
    assert list(open_table(f"file://{tmp_path}/table").channels) == ["fresh"]
    count = len(slots(tmp_path))
    forget_idle_channels(owner.table, NOW_MS + 500)
    assert len(slots(tmp_path)) == count


def test_the_newest_commit_is_known_after_a_takeover(owner: Owner, tmp_path: Path) -> None:
    instant = owner.instant(1)
    owner.do(CommitCheckpoint(1, 1, owner.files(instant, ("a", 1, "x")), {}))
    successor = Owner(tmp_path, "two")
    successor.committer.load_past()
    assert successor.committer.last_commit.instant == instant
    assert successor.committer.last_commit.at_ms > 0


def test_a_committer_may_work_on_any_one_thread(owner: Owner, tmp_path: Path) -> None:
    """The table's handle is bound to no thread: it is opened on one and used on the committer's."""
    thread = threading.Thread(target=owner.committer.execute, args=(WinOffsets(1, {"c": (1, 0, "me")}),))
    thread.start()
    thread.join()
    assert owner.events == [OffsetsWon(1)]
