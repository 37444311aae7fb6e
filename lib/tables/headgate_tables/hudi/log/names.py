"""Names of data files: base files ``<file id>_<token>_<instant>.<format>``, logs ``.<file id>_<instant>.log.<version>_<token>``.

Hudi: FSUtils, HoodieLogFile. A folder of a large table holds tens of thousands of
names, so parsing is one regular expression per name and plain tuples.
"""

import re
from typing import NamedTuple


class LogName(NamedTuple):
    """A log file's name in parts. ``instant`` is the writing delta commit (table version 8 and later); ``token`` is
    ``<partition>-<stage>-<attempt>`` in decimal, empty in names older than tokens; ``cdc`` files hold change records only.
    """

    file_id: str
    instant: str
    version: int
    token: str
    cdc: bool


class BaseName(NamedTuple):
    """A base file's name in parts. ``format`` is its extension: ``parquet``, ``orc``, ``hfile``, ``lance`` or another."""

    file_id: str
    token: str
    instant: str
    format: str

    @property
    def is_read(self) -> bool:
        """Whether files of this format can be read here."""
        return self.format == PARQUET


PARQUET = "parquet"
_LOG = re.compile(r"\.([^_/]+)_([0-9]+)\.log\.([0-9]+)(?:_([0-9]+-[0-9]+-[0-9]+)(\.cdc)?)?")
_BASE = re.compile(r"([^_/]+)_([0-9]+-[0-9]+-[0-9]+)_([0-9]+)\.([a-z0-9]+)")
# Names that only begin like one of the two. Hadoop puts a checksum (.crc) beside every file that it writes.
_LIKE_LOG = re.compile(r"\.[^_/]+_([0-9]+)\.log\b(?!.*\.crc$).*")
_LIKE_BASE = re.compile(r"[^._/][^_/]*_[0-9]+-[0-9]+-[0-9]+_([0-9]+)(?![0-9])(?!.*\.crc$).*")
_TOKEN = re.compile(r"[0-9]+-[0-9]+-[0-9]+")


def log_name(file_id: str, instant: str, version: int, token: str) -> str:
    """The name of a log file; ``version`` counts from 1 within (file id, instant)."""
    _check(file_id, token)
    return f".{file_id}_{instant}.log.{version}_{token}"


def base_name(file_id: str, token: str, instant: str) -> str:
    """The name of a Parquet base file."""
    _check(file_id, token)
    return f"{file_id}_{token}_{instant}.parquet"


def parse_log_name(name: str) -> LogName | None:
    """None for any name that is not a log file's."""
    found = _LOG.fullmatch(name)
    if found is None:
        return None
    file_id, instant, version, token, cdc = found.groups()
    return LogName(file_id, instant, int(version), token or "", cdc is not None)


def parse_base_name(name: str) -> BaseName | None:
    """None for any name that is not a base file's, in any format."""
    found = _BASE.fullmatch(name)
    return BaseName(*found.groups()) if found else None


def claimed_instant(name: str) -> str | None:
    """The instant in a name that is neither a base nor a log file's, but begins like one: another program may take the file for
    data. None for all other names.
    """
    found = _LIKE_LOG.fullmatch(name) or _LIKE_BASE.fullmatch(name)
    return found.group(1) if found and parse_log_name(name) is None and parse_base_name(name) is None else None


def _check(file_id: str, token: str) -> None:
    # Parsers, ours and Hudi's, split at underscores and dashes: nobody would see a file whose name does not parse back.
    if "_" in file_id or "/" in file_id or not file_id or not _TOKEN.fullmatch(token):
        raise ValueError(f"not a file id and write token: {file_id!r}, {token!r}")
