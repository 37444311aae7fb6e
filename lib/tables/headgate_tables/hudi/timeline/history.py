"""The archived part of the timeline: completion times of instants that left the active one.

Source: spec hudi-format 11.2 (Hudi: LSMTimeline). Needed only when files are older than the active timeline: a log's
slice follows from its completion time, also after archiving.
"""

import json
from typing import Any

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
    version = store.get(f"{folder}/_version_").to_pybytes().decode().strip()
    manifest = json.loads(store.get(f"{folder}/manifest_{version}").to_pybytes())
    completions: dict[str, str] = {}
    for entry in manifest["files"]:
        path = f"{folder}/{entry['fileName']}"
        try:
            table = pq.read_table(store.open_input(path), columns=["instantTime", "completionTime"], use_threads=False)
        except FileNotFoundError as error:
            raise CorruptFileError(
                f"{folder}/manifest_{version} names {path}, which is not there", fix="Restore `.hoodie/timeline` from a copy."
            ) from error
        instants: list[Any] = table["instantTime"].to_pylist()
        times = pc.coalesce(table["completionTime"], table["instantTime"])
        completions.update(zip(instants, times.to_pylist(), strict=True))
    return completions
