"""Compressed files as the bytes in them. The first bytes tell the form, since names lie and standard input has none."""

import bz2
import gzip
import lzma
import zlib
from pathlib import PurePath
from typing import IO, Any, cast

import pyarrow as pa

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException)
"""What readers of compressed bytes raise for damaged or cut ones."""


def decompressed(raw: IO[bytes]) -> IO[bytes]:
    """What ``raw``, at its beginning, holds; ``raw`` itself when it is not compressed by gzip, bzip2, xz or Zstandard."""
    first = raw.read(6)
    raw.seek(0)
    if first.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if first.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if first.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(raw)
    if first.startswith(b"\x28\xb5\x2f\xfd"):
        return cast("IO[bytes]", pa.CompressedInputStream(cast("Any", raw), "zstd"))
    return raw


def without_suffix(path: PurePath) -> PurePath:
    """The path without the suffix of a compression."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path
