"""Looks at data files that writers report before a slot names them: behind it they could not be left out any more (rule RO10)."""

from collections.abc import Mapping, Sequence
from typing import Final

from headgate_tables.face.files import WriteStat, WriteStatus
from headgate_tables.hudi.base_file import WRITE_TOKEN
from headgate_tables.hudi.log.names import base_name, log_name
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.hudi.staged_names import staged_path
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import Workers

_LOOKS: Final = 16
"""Files whose sizes are asked for at once: an object store takes tens of milliseconds for each."""


def find_false_files(
    store: Store, epoch: int, instant: str, statuses: Sequence[WriteStatus], *, base_files: bool = False
) -> Mapping[int, str]:
    """Returns what is wrong with files that were reported as written under the instant in this epoch, by their positions.

    ``base_files``: whether each has to be a base file; else a log file. It has the name that its file group, instant and version
    give it; no other file of the commit has it; its bytes wait where a writer of this epoch puts them, and there are as many as
    reported. One look at the store for each file; nothing is read, so its bytes are those that the writer says.
    Raises RetryLater.
    """
    wrong: dict[int, str] = {}
    seen: set[str] = set()
    for at, status in enumerate(statuses):
        if why := _why_misnamed(status, instant, epoch if store.stages else None, base_files):
            wrong[at] = why
        elif status.stat.path in seen:
            wrong[at] = f"{status.stat.path} is reported twice"
        seen.add(status.stat.path)
    named = [at for at in range(len(statuses)) if at not in wrong]
    files = [statuses[at].file for at in named]
    sizes = Workers(_LOOKS).map(store.size, [file.stage or file.path for file in files])
    for at, file, size in zip(named, files, sizes, strict=True):
        if size != file.size:
            wrong[at] = f"{file.path} is reported with {file.size} bytes, and {'is not there' if size is None else f'has {size}'}"
    return wrong


def _why_misnamed(status: WriteStatus, instant: str, epoch: int | None, base_file: bool) -> str:
    """``epoch``: of the stage; None: files are made in place. Returns "" for a right name."""
    stat = status.stat
    version = stat.log_version
    if (version == 0) != base_file or version < 0 or not _is_plain(stat.file_id) or stat.name != _right_name(stat, instant):
        return f"{stat.name!r} is no {'base' if base_file else 'log'} file of {instant}"
    if stat.partition and not all(map(_is_plain, stat.partition.split("/"))):
        return f"{stat.partition!r} is no partition"
    folder = status.file.stage.rpartition("/")[0]
    process = folder.removeprefix(LOG_LAYOUT.stage_folder(epoch, "")) if epoch is not None else ""
    right = staged_path(folder if epoch is not None else "", instant, stat.partition, stat.file_id, version)
    if status.file.stage != right or (epoch is not None and (process == folder or not _is_plain(process))):
        return f"{status.file.stage!r} is not where the bytes of {stat.name} wait"
    return ""


def _right_name(stat: WriteStat, instant: str) -> str:
    if stat.log_version == 0:
        return base_name(stat.file_id, WRITE_TOKEN, instant)
    return log_name(stat.file_id, instant, stat.log_version, WRITE_TOKEN)


def _is_plain(part: str) -> bool:
    """Whether it is a name of one file or folder."""
    return part not in ("", ".", "..") and "/" not in part and "\0" not in part
