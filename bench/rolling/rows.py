"""What the table has to show, from what was sent alone, and what hudi-rs shows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import index_array, mask_array
from support.readers import read_by_hudi_rs
from support.workload import SCHEMA, UPSERT, Workload

ORDER: Final[list[tuple[str, Literal["ascending", "descending"]]]] = [("producer", "ascending"), ("number", "ascending")]


def expected_rows(workload: Workload, sent: Mapping[str, int]) -> pa.Table:
    """Rows of SCHEMA by producer and number. ``sent``: the last number of each producer, which had one attempt.

    Keys belong to one producer, and the later number wins.
    """
    return (
        pa.concat_tables(_survivors(workload, name, last) for name, last in sorted(sent.items())).sort_by(ORDER).combine_chunks()
    )


def shown_rows(url: str) -> pa.Table:
    """The snapshot, as ``expected_rows``."""
    rows = read_by_hudi_rs(Path(url.removeprefix("file://")))
    return rows.select(SCHEMA.names).cast(SCHEMA).sort_by(ORDER).combine_chunks()


def _survivors(workload: Workload, producer: str, last: int) -> pa.Table:
    rows = workload.rows(producer, 1, last, 1)
    keys = rows["id"].combine_chunks().dictionary_encode()
    newest = np.zeros(len(keys.dictionary), np.int64)
    newest[keys.indices.to_numpy()] = np.arange(len(keys))  # of positions of one key, the last is what stays
    kept = rows.take(index_array(np.sort(newest)))
    return kept.filter(mask_array(kept["op"].to_numpy() == UPSERT)).select(SCHEMA.names)
