"""The file-system view: which base and log files make up each file slice, by completion time.

Facts HF1, HF2, HF7 (Hudi: HoodieFileGroup, AbstractTableFileSystemView). A file belongs to the table when
the instant in its *name* is completed, or older than the timeline; commit metadata is not asked.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.log.names import claimed_instant, parse_base_name, parse_log_name
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.timeline.archived_times import ArchivedTimes
from headgate_tables.hudi.timeline.instant import NEVER
from headgate_tables.storage.store import Store


class LogFile(NamedTuple):
    """One log file of a slice. Logs are merged in this order: instant of the name, version, token (fact HF3)."""

    instant: str
    version: int
    token: str
    name: str
    completion: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file (name, or None) and the logs on top of it, oldest first. Sizes in bytes, 0 when they were not listed."""

    partition: str
    file_id: str
    base_instant: str
    base: str | None
    logs: tuple[LogFile, ...]
    base_size: int = 0

    @property
    def log_bytes(self) -> int:
        """Bytes of all logs."""
        return sum(log.size for log in self.logs)

    @property
    def names(self) -> list[str]:
        """Names of all its files, the base first."""
        return [*([self.base] if self.base else []), *(log.name for log in self.logs)]

    def path(self, name: str) -> str:
        """Path of a file of this slice, from the table's root."""
        return f"{self.partition}/{name}" if self.partition else name


@dataclass(slots=True)
class FileGroup:
    """All files of one file id: base file names by base instant, logs by name, sizes of base files by name."""

    partition: str
    file_id: str
    bases: dict[str, str] = field(default_factory=dict)
    logs: dict[str, LogFile] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def slices(self) -> list[FileSlice]:
        """Oldest first. A log lies on the newest base whose instant is not after the log's completion, or in a log-only slice."""
        instants = sorted(self.bases)
        on_base: dict[int, list[LogFile]] = {}
        for log in sorted(self.logs.values()):
            on_base.setdefault(bisect_right(instants, log.completion) - 1, []).append(log)
        found = []
        if -1 in on_base:
            found.append(FileSlice(self.partition, self.file_id, on_base[-1][0].instant, None, tuple(on_base[-1])))
        for index, instant in enumerate(instants):
            logs = tuple(on_base.get(index, ()))
            base = self.bases[instant]
            found.append(FileSlice(self.partition, self.file_id, instant, base, logs, self.sizes.get(base, 0)))
        return found

    def newest_first(self, completion_of: Callable[[str], str | None], end: str = NEVER) -> Iterator[tuple[FileSlice, str]]:
        """Slices, each with the completion time of what replaced it, NEVER for none; ``end``: of what replaced the whole group.
        ``completion_of`` (None: the instant's own time) is asked for bases that replaced a slice alone: others may be of any age.
        """
        replaced, newer = end, ""
        for part in reversed(self.slices()):
            if newer:
                replaced = min(replaced, completion_of(newer) or newer)
            yield part, replaced
            newer = part.base_instant if part.base else ""

    def narrowed(self, counts: Callable[[str], bool]) -> "FileGroup":
        """The group with only the files of instants for which ``counts`` is true."""
        bases = {instant: name for instant, name in self.bases.items() if counts(instant)}
        logs = {name: log for name, log in self.logs.items() if counts(log.instant)}
        return FileGroup(self.partition, self.file_id, bases, logs, self.sizes)


def _everything(_: str) -> bool:
    return True


class FileSystemView:
    """File groups of a table, made from file names; a file of an instant that is not committed never enters."""

    def __init__(
        self, timeline: Timeline, replaced: Mapping[tuple[str, str], str], archived: Callable[[str], Mapping[str, str]]
    ) -> None:
        """``replaced`` maps (partition, file id) to the replacecommit that removed the group; ``archived`` reads completion
        times of archived instants from a given one on, and is called only when a log file is older than the timeline.
        """
        self.timeline = timeline
        self._replaced = dict(replaced)
        self._archived = ArchivedTimes(archived)
        self._groups: dict[tuple[str, str], FileGroup] = {}
        self._unknown: dict[tuple[str, str], str] = {}
        self._start = timeline.start
        self._expected: set[tuple[str, str]] | None = None

    def groups(self, counts: Callable[[str], bool] = _everything) -> Iterator[FileGroup]:
        """Live groups, by partition and file id, as if only instants for which ``counts`` is true had completed."""
        replaced = self.replaced(counts)
        for key in sorted(self._groups):
            if key not in replaced:
                group = self._groups[key]
                yield group if counts is _everything else group.narrowed(counts)

    def latest_slices(self, counts: Callable[[str], bool] = _everything) -> Iterator[FileSlice]:
        """What a snapshot reads: the newest slice of every live group; ``counts``: see ``groups``."""
        for group in self.groups(counts):
            slices = group.slices()
            if slices:
                yield slices[-1]

    def unknown(self, counts: Callable[[str], bool] = _everything) -> list[tuple[str, str]]:
        """Partition and name of each file that carries a committed instant (``counts``: see ``groups``) in a name of an unknown
        kind, so that nobody knows whether its rows belong to the table.
        """
        return sorted(key for key, instant in self._unknown.items() if counts(instant))

    def replaced(self, counts: Callable[[str], bool] = _everything) -> Mapping[tuple[str, str], str]:
        """(Partition, file id) to the replacecommit that removed the group; ``counts``: see ``groups``."""
        if counts is _everything:
            return self._replaced
        return {key: instant for key, instant in self._replaced.items() if counts(instant)}

    def note_replaced(self, groups: Mapping[tuple[str, str], str]) -> None:
        """Takes groups out that replacecommits of its timeline have removed: as the constructor's ``replaced``."""
        self._replaced.update(groups)

    def follow(self, timeline: Timeline) -> None:
        """Moves on to a newer timeline; the caller adds files of its new instants and removes cleaned ones."""
        if timeline.start != self._start:
            self._archived.forget()
        self.timeline, self._start = timeline, timeline.start

    def archive_until(self, last: str) -> None:
        """Takes archived instants, up to ``last``, from its timeline. Their files stay; when they completed is still known."""
        self._archived.note({time: done.completion for time, done in self.timeline.completed.items() if time <= last})
        self.timeline.drop_until(last)
        self._start = self.timeline.start

    def replaced_groups(self) -> Iterator[tuple[FileGroup, str]]:
        """Groups that a replacecommit removed and that still have files, with its instant."""
        for key, instant in self._replaced.items():
            if key in self._groups:
                yield self._groups[key], instant

    def completion_of(self, instant: str) -> str | None:
        """Completion time of an instant, archived or not; None for one that has not completed."""
        return self._completion(instant)

    def holds(self, partition: str, file_id: str, name: str) -> bool:
        """Whether the view has this file, in a live group or not."""
        group = self._groups.get((partition, file_id))
        return group is not None and (name in group.logs or name in group.bases.values())

    def was_replaced(self, partition: str, file_id: str) -> bool:
        """Whether a replacecommit removed the group; its id is never used again (rule FI1)."""
        return (partition, file_id) in self._replaced

    def add_files(self, partition: str, names: Iterable[str] | Mapping[str, int]) -> None:
        """Adds files of a partition by name, with their sizes if they are known, except those of uncommitted instants. Base files
        of any format are added, since they replace what is older: a reader of a slice checks its format.

        Raises CorruptFileError for two base files of one group and instant.
        """
        sizes = names if isinstance(names, Mapping) else {}
        for name in names:
            if name[0] == ".":
                log = parse_log_name(name)
                if log is None:
                    self._note_unknown(partition, name)
                    continue
                if log.cdc:
                    continue
                completion = self._completion(log.instant)
                if completion is not None:
                    group = self._group(partition, log.file_id)
                    group.logs[name] = LogFile(log.instant, log.version, log.token, name, completion, sizes.get(name, 0))
            else:
                base = parse_base_name(name)
                if base is None:
                    self._note_unknown(partition, name)
                elif self._counts_as_base(base.instant):
                    group = self._group(partition, base.file_id)
                    self._add_base(group, base.instant, name)
                    group.sizes[name] = sizes.get(name, 0)

    @property
    def is_compared(self) -> bool:
        """Whether its files were compared with those that commits name (see ``expect``)."""
        return self._expected is not None

    def expect(self, files: Iterable[tuple[str, str, int]]) -> None:
        """Adds files that commits name and that were not listed: partition, name, bytes. Who pins or reads them finds out."""
        self._expected = set()
        for partition, name, size in files:
            self._expected.add((partition, name))
            self.add_files(partition, {name: size})

    def expects(self, partition: str, name: str) -> bool:
        """Whether the file is in the view only because a commit names it."""
        return (partition, name) in (self._expected or ())

    def remove_files(self, partition: str, names: Iterable[str]) -> None:
        """Removes files that were deleted; a group without any is gone."""
        for name in names:
            self._unknown.pop((partition, name), None)
            parsed = parse_log_name(name) or parse_base_name(name)
            group = self._groups.get((partition, parsed.file_id)) if parsed is not None else None
            if group is None or parsed is None:
                continue
            if group.logs.pop(name, None) is None and group.bases.get(parsed.instant) == name:
                del group.bases[parsed.instant]
                group.sizes.pop(name, None)
            if not (group.logs or group.bases):
                del self._groups[partition, group.file_id]

    def _note_unknown(self, partition: str, name: str) -> None:
        instant = claimed_instant(name)
        if instant is not None and self._counts_as_base(instant):
            self._unknown[partition, name] = instant

    def _counts_as_base(self, instant: str) -> bool:
        """An archived instant counts whenever it completed, so that a table with base files only reads no history."""
        return instant < self._start or self._completion(instant) is not None

    @staticmethod
    def _add_base(group: FileGroup, instant: str, name: str) -> None:
        known = group.bases.setdefault(instant, name)
        if known != name:
            raise CorruptFileError(
                f"file group {group.file_id} in {group.partition!r} has two base files of instant {instant}: {known} and {name}",
                fix="Only the one that the instant's commit metadata names is real; move the other away.",
            )

    def _group(self, partition: str, file_id: str) -> FileGroup:
        group = self._groups.get((partition, file_id))
        if group is None:
            group = self._groups[partition, file_id] = FileGroup(partition, file_id)
        return group

    def _completion(self, instant: str) -> str | None:
        completion = self.timeline.completion(instant)
        return self._archived.completion(instant) if completion is None and instant < self._start else completion


def list_folders(store: Store) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Every folder of the table but ``.hoodie*`` in its root, with the sizes of its files by name; the root is ""."""
    pending = [""]
    while pending:
        folder = pending.pop()
        listing = store.list_folder(folder, sizes=True)
        yield folder, listing.sizes
        below = listing.folders if folder else [name for name in listing.folders if not name.startswith(".hoodie")]
        pending += [f"{folder}/{name}" if folder else name for name in below]


def list_data_files(store: Store) -> Iterator[tuple[str, str]]:
    """Path and instant of every base and log file, whether the instant committed or not."""
    return data_files_in(list_folders(store))


def data_files_in(folders: Iterable[tuple[str, Mapping[str, int]]]) -> Iterator[tuple[str, str]]:
    """``list_data_files`` of folders that were listed before."""
    for folder, names in folders:
        for name in names:
            parsed = parse_log_name(name) or parse_base_name(name)
            if parsed is not None:
                yield f"{folder}/{name}".lstrip("/"), parsed.instant
