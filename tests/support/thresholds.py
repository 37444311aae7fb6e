"""The sizes from which on a compaction works in another way, others for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import pytest

from headgate_tables.hudi.services.compaction import base_writer, parquet_batches, pinned_slice, survivors

THRESHOLDS: Mapping[str, ModuleType] = {
    "SHARE_ENTRIES": survivors,
    "SHARE_KEY_BYTES": survivors,
    "_KEPT_KEY_BYTES": survivors,
    "BATCH_ROWS": parquet_batches,
    "_WORTH_A_LOOK": parquet_batches,
    "_WORTH_A_LOOK_FOR_ALL": parquet_batches,
    "_FIRST_ROWS": parquet_batches,
    "_ROWS_PER_VALUE": parquet_batches,
    "GROUP_ROWS": base_writer,
    "_SMALL_BYTES": pinned_slice,
}
"""By name, where each stands."""


@contextmanager
def thresholds(chosen: Mapping[str, int]) -> Iterator[None]:
    """Those that are named have these values."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in chosen.items():
            patch.setattr(THRESHOLDS[name], name, value)
        yield
