"""The archived part of the timeline: completion times of instants that left the active one.

Source: spec hudi-format 11.2 (Hudi: LSMTimeline). Needed only when files are older than the active timeline: a log's
slice follows from its completion time, also after archiving.
"""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables.arrow import pc
from headgate_tables.errors import CorruptFileError
from headgate_tables.hudi.timeline.instant import TIMELINE_FOLDER
from headgate_tables.storage.store import Store


def archived_completions(store: Store, history_folder: str) -> dict[str, str]:
    """Instant time to completion time of every archived instant. Raises CorruptFileError."""
    folder = f"{TIMELINE_FOLDER}/{history_folder}"
    if "_version_" not in store.list_folder(folder).files:
        return {}
    completions: dict[str, str] = {}
    for path in _files(store, folder):
        try:
            table = pq.read_table(store.open_input(path), columns=["instantTime", "completionTime"], use_threads=False)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise _damaged(path, error) from error
        instants: list[Any] = table["instantTime"].to_pylist()
        times = pc.coalesce(table["completionTime"], table["instantTime"])
        completions.update(zip(instants, times.to_pylist(), strict=True))
    return completions


def _files(store: Store, folder: str) -> list[str]:
    path = f"{folder}/_version_"
    try:
        version = store.get(path).to_pybytes().decode().strip()
        path = f"{folder}/manifest_{version}"
        return [f"{folder}/{entry['fileName']}" for entry in json.loads(store.get(path).to_pybytes())["files"]]
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> CorruptFileError:
    return CorruptFileError(
        f"{path}, a part of the archived timeline, cannot be read: {error!r}", fix="Restore `.hoodie/timeline` from a copy."
    )
