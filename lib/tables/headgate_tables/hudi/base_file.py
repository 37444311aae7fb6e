"""Base files: Parquet with the five meta columns and the footer keys that Hudi's writers put there.

Hudi: HoodieRecord, HoodieAvroWriteSupport, BaseFileUtils. Bloom filters are not written: the bucket index needs none.
"""

from __future__ import annotations

import pyarrow as pa

from headgate_tables.arrow import Array, pc
from headgate_tables.hudi.log.parquet_rows import ParquetLayout, encode

WRITE_TOKEN = "0-0-0"  # noqa: S105 - Hudi's word for a task attempt
"""An instant is one attempt (rule RO4), so tokens need not keep two apart; this one says nothing of the writer (fact HF10)."""


def encode_base_file(rows: pa.Table, keys: Array, layout: ParquetLayout, avro_schema: str) -> pa.Buffer:
    """A Parquet file of ``rows``, meta columns first; ``keys``: string[n], their record keys, n > 0."""
    bounds = pc.min_max(keys)
    footer = {
        "parquet.avro.schema": avro_schema,
        "writer.model.name": "avro",
        "hoodie_min_record_key": bounds["min"].as_py(),
        "hoodie_max_record_key": bounds["max"].as_py(),
    }
    return encode(rows.replace_schema_metadata(footer), layout)
