"""The table as hudi-rs reads it: another program's reader, in Rust."""

import os

import pyarrow as pa
from hudi import HudiTableBuilder

AWS = ("AWS_ENDPOINT", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ALLOW_HTTP")


def read_by_hudi_rs(url: str) -> pa.Table:
    """All rows of the newest snapshot. ``AWS_*`` of the environment says how to reach S3."""
    options = {name.lower(): os.environ[name] for name in AWS if name in os.environ}
    batches = HudiTableBuilder.from_base_uri(url).with_options(options).build().read()
    return pa.concat_tables(pa.Table.from_batches([batch]) for batch in batches)
