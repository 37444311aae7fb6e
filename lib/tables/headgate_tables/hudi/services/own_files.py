"""Which data files in a table's folder are the table's (rule D7). A file's name says its instant and its file group."""

from collections.abc import Collection, Iterator, Mapping

from headgate_tables.commitlog.facts import LogFacts
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.keys.bucket import bucket_of, file_id
from headgate_tables.hudi.log.names import BaseName, LogName
from headgate_tables.hudi.timeline.active import content_of, read_timeline
from headgate_tables.hudi.timeline.commit_metadata import decode_commit
from headgate_tables.storage.store import Store


class OwnFiles:
    """``replaced``: partition and file id of groups that left the table. Raises as ``Definition.decode``."""

    def __init__(self, state: LogFacts, replaced: Collection[tuple[str, str]]) -> None:
        self._state = state
        self._definition = Definition.decode(state.config)
        self._replaced = frozenset(replaced)
        since = (self._definition.rescaled, *(since for _, _, since in self._definition.bucket_rules))
        self._begins = {0, *(int(instant) for instant in since if instant)}

    def data_in(self, folder: str, files: Mapping[str, LogName | BaseName]) -> list[str]:
        """Names of those among a folder's data ``files`` that have an instant of the log, if the folder is a partition."""
        known = [name for name, parsed in files.items() if self._state.has_reserved(parsed.instant)]
        if folder in self._definition.groups or any(self._is_of(folder, files[name]) for name in known):
            return known
        return []

    def _is_of(self, folder: str, file: LogName | BaseName) -> bool:
        """Groups that left the table are known by the commits that took them out. Other ids follow from the partition (rule FI1):
        in a copy of its folder none fits, and in a partition that nobody has committed to they fit.
        """
        if (folder, file.file_id) in self._replaced:
            return True
        try:
            bucket = bucket_of(file.file_id)
        except CorruptFileError:
            return False
        begins = self._begins | {int(file.instant)}
        return any(file_id(self._definition.table_uuid, folder, bucket, k) == file.file_id for k in begins)


def read_own_files(store: Store, state: LogFacts) -> OwnFiles:
    """With the replaced groups of the active timeline: a replacecommit stays there while its groups have files."""
    return OwnFiles(state, frozenset(_replaced(store)))


def _replaced(store: Store) -> Iterator[tuple[str, str]]:
    """What a damaged commit took out is not known: the drop goes on, and names the files that stay."""
    for instant in read_timeline(store).writes():
        if instant.action == "replacecommit":
            try:
                found = decode_commit(content_of(store, instant), instant.path).replaced
            except CorruptFileError:
                continue
            yield from ((partition, each) for partition, ids in found.items() for each in ids)
