"""Hudi's side of the comparison: a warm Spark session that compacts tables with Hudi's own procedure.

The codec is ours, and what costs time without being compaction is off (bloom filters, metadata table, timeline server, cleaning):
that helps it.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.tables.contenders.contender import KEY, ORDERING
from bench.tables.contenders.spark import start_session
from bench.tables.usage import Moment, peak_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.bucket.index.hash.field": KEY,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.write.table.version": "8",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.index.type": "BUCKET",
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def compact(warm_up: Sequence[str], tables: Sequence[str], buckets: int) -> dict[str, object]:
    """Folders; the clock runs for ``tables`` alone. Returns ``cpu`` and ``wall`` seconds of each, and the ``peak`` in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        session = start_session(Path(folder))
        try:
            java = [session.sparkContext._gateway.proc.pid]
            for key, value in (_SETTINGS | {"hoodie.bucket.index.num.buckets": str(buckets)}).items():
                session.conf.set(key, value)
            for table in warm_up:
                _run(session, table)
            used = [_measured(session, table, java) for table in tables]
            return {"cpu": [each.cpu for each in used], "wall": [each.wall for each in used], "peak": peak_bytes(java)}
        finally:
            session.stop()


def _measured(session: "SparkSession", table: str, java: Sequence[int]) -> Moment:
    begin = Moment.now(java)
    _run(session, table)
    return Moment.now(java) - begin


def _run(session: "SparkSession", table: str) -> None:
    session.sql(f"call run_compaction(op => 'scheduleAndExecute', path => '{table}')").collect()
