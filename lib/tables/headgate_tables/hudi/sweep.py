"""Removes what dead instants left behind: a slot names the files, then they are deleted (rules RO6, D1, D2).

On a local disk that is staged bytes and pending timeline files; on an object store also data files under their final names.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate_tables.commitlog.commit_log import CommitLog
from headgate_tables.commitlog.publish import REVOKED
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.timeline.active import list_instants
from headgate_tables.hudi.timeline.instant import Instant, State
from headgate_tables.hudi.view import list_data_files
from headgate_tables.storage.store import Store

Leftover = tuple[str, str]
"""A dead instant, and the path of a file that it left."""


@dataclass(frozen=True, slots=True)
class Search:
    """For files of ``dead`` instants, by instant with the names that slots gave up, and of instants that are ``gone`` for longer.
    ``epoch``: of the owner.
    """

    dead: Mapping[str, Sequence[str]]
    gone: Collection[str]
    epoch: int

    @classmethod
    def due(cls, log: CommitLog, *, takeover: bool) -> "Search":
        """A takeover searches for files of all dead instants, else only of those that died lately: a paused process may still
        create them (rule W3).
        """
        gone = tuple(log.state.gone) if takeover else ()
        return cls({instant: tuple(names) for instant, names in log.dead_names.by_instant.items()}, gone, log.state.epoch)

    @property
    def wanted(self) -> Collection[str]:
        """All instants that are searched for."""
        return {*self.dead, *self.gone}

    def run(self, store: Store) -> "Leftovers":
        """Reads alone, for any thread: on an object store it lists all data folders when a dead instant was announced.

        Files that do not belong to a dead instant stay, whichever program made them (rule D4).
        """
        wanted = self.wanted
        if not wanted:
            return Leftovers(self, [], [])
        pending = [instant for instant in list_instants(store, after=min(wanted)) if instant.time in wanted]
        announced = {instant.time for instant in pending}
        stages = [*_revoked(store), str(self.epoch)] if store.stages else []
        data = [(time, path) for path, time in _staged_files(store, stages) if time in wanted]
        if announced and not store.stages:
            data += [(time, path) for path, time in list_data_files(store) if time in announced]
        return Leftovers(self, data, pending)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a search found: data files, and dead instants that the timeline shows."""

    search: Search
    data: Sequence[Leftover]
    pending: Sequence[Instant]

    def delete(self, store: Store, log: CommitLog, *, forget_after_ms: int) -> None:
        """A slot names the files, then they are deleted. An instant that died ``forget_after_ms`` ago, and of which nothing was
        found, is forgotten.
        """
        dead = self.search.dead
        if not self.search.wanted:
            return
        steps = self._steps(store, log)
        fresh: dict[str, list[str]] = {}
        for instant, path in (leftover for step in steps for leftover in step):
            if path not in dead.get(instant, ()):
                fresh.setdefault(instant, []).append(path)
        found = {instant for step in steps for instant, _ in step}
        unfound = [instant for instant in log.state.dead if instant in dead and instant not in found]
        forgotten = [instant for instant in unfound if log.age_ms(instant) >= forget_after_ms]
        if fresh or forgotten:
            log.win_dead(fresh, forgotten)
        log.dead_names.note_searched(dead)
        for step in steps:
            store.delete([path for _, path in step])

    def _steps(self, store: Store, log: CommitLog) -> list[list[Leftover]]:
        """In the order of their deletion: while data may exist, the timeline shows that it must be searched for (rule T7)."""
        inflight = [(instant.time, instant.path) for instant in self.pending if instant.state is State.INFLIGHT]
        requested = [each for each in self.pending if each.state is State.REQUESTED and not _hides_data(store, log, each)]
        return [[*self.data], inflight, [(instant.time, instant.path) for instant in requested]]


def delete_named(store: Store, log: CommitLog) -> None:
    """Deletes the files that slots gave up by name."""
    log.dead_names.delete_given_up()
    store.delete(_late_outputs(log))


def drop_revoked_stages(store: Store, log: CommitLog) -> None:
    """Deletes stage folders of epochs before ours, once what was won in them is linked and durable (rules W2, G1).

    Those of later epochs stay: we may have been deposed without knowing it, and what they won may not be linked yet.
    """
    older = [folder for folder in _revoked(store) if int(folder.partition(REVOKED)[0]) < log.state.epoch]
    if older:
        log.make_durable()
        for folder in older:
            store.delete_folder(f"{LOG_LAYOUT.stages}/{folder}")


def drop_staged(store: Store, log: CommitLog, instant: str) -> None:
    """Deletes what compactors staged for a plan that has ended: its outputs are in place, or will never be."""
    if store.stages:
        stages = [*_revoked(store), str(log.state.epoch)]
        store.delete(path for path, time in list(_staged_files(store, stages)) if time == instant)


def _late_outputs(log: CommitLog) -> list[str]:
    """Data files that slots named dead and that may still be created: above all outputs that a plan ended without (rule W4).

    Never timeline files: while those exist, the data of their instant is searched for.
    """
    named = [*log.state.dead.values(), *log.state.refused.values()]
    return [name for names in named for name in names or () if not name.startswith(".hoodie/")]


def _hides_data(store: Store, log: CommitLog, requested: Instant) -> bool:
    """Readers take a file older than the timeline's first instant for an archived, committed one (hazard H9).

    Where data files lie under their final names, the requested file of a dead instant before the first commit has to stay:
    a paused process may still add one.
    """
    return not store.stages and requested.time < min(log.state.commits, default="9")


def _revoked(store: Store) -> list[str]:
    """As ``<epoch>.revoked-…``; what else lies there is nobody's."""
    folders = store.list_folder(LOG_LAYOUT.stages).folders if store.stages else []
    epochs = {folder: folder.partition(REVOKED)[0] for folder in folders if REVOKED in folder}
    return [folder for folder, epoch in epochs.items() if epoch.isascii() and epoch.isdigit()]


def _staged_files(store: Store, stages: Sequence[str]) -> Iterator[Leftover]:
    """Path and instant of staged files, whose names begin with the instant (see data_files). In the stage of our own epoch are
    those that writers of the cluster left when their checkpoint was aborted.
    """
    for stage in (f"{LOG_LAYOUT.stages}/{folder}" for folder in stages):
        for folder in (f"{stage}/{process}" for process in store.list_folder(stage).folders):
            yield from ((f"{folder}/{name}", name.partition("_")[0]) for name in store.list_folder(folder).files)
