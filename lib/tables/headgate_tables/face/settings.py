"""Settings of a table's services, under Hudi's own keys where Hudi has one. They are kept in CONFIG slots and may change."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from headgate_tables.errors import OptionError
from headgate_tables.face.row_order import CURVES, RowOrder
from headgate_tables.face.setting import Setting, Value, choice, flag
from headgate_tables.near_names import did_you_mean

BlockFormat: TypeAlias = Literal["parquet", "avro", "auto"]
"""Of blocks of rows in log files."""
BLOCK_FORMATS: Final[Mapping[str, BlockFormat]] = {"parquet": "parquet", "avro": "avro", "auto": "auto"}
"""By the texts of the setting."""
BLOCK_FORMAT = "hoodie.logfile.data.block.format"
_MIB = 1 << 20
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_TTL = re.compile("([1-9][0-9]{0,3})([hdw])")
_MOST_SORT_COLUMNS = 8
NEVER_EXPIRES = "never"
LAST_WRITE = "last-write"
"""The value of ``headgate.ttl.by`` that is no column's name: Avro's names have no '-'."""


def _ttl(text: str) -> str:
    if text.strip().lower() == NEVER_EXPIRES:
        return NEVER_EXPIRES
    found = _TTL.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return f"{int(found[1])}{found[2]}"


def _column(text: str) -> str:
    if text.strip() != LAST_WRITE and not _NAME.fullmatch(text.strip()):
        raise ValueError(text)
    return text.strip()


def _columns(text: str) -> str:
    names = [_column(each) for each in text.split(",")] if text.strip() else []
    if len(names) > _MOST_SORT_COLUMNS or len(set(names)) < len(names) or LAST_WRITE in names:
        raise ValueError(text)
    return ",".join(names)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Bytes, seconds and counts as the keys in ``SETTINGS`` say."""

    compaction_trigger: str = "NUM_OR_TIME"
    compaction_commits: int = 28
    compaction_first_commits: int = 3
    compaction_seconds: float = 3600.0
    compaction_log_bytes: int = 256 * _MIB
    compaction_read_amplification: float = 1.0
    compaction_minor_fraction: float = 0.0
    compaction_target_io_mb: int = 20_480
    compaction_attempts: int = 3
    max_log_files: int = 100
    max_log_bytes: int = 1024 * _MIB
    clean_automatic: bool = True
    clean_policy: str = "KEEP_LATEST_COMMITS"
    clean_commits: int = 10
    clean_hours: int = 24
    clean_versions: int = 3
    clean_min_age: float = 600.0
    archive_automatic: bool = True
    archive_max: int = 150
    archive_min: int = 100
    retire_after: float = 3600.0
    bloom: bool = False
    bloom_entries: int = 60_000
    bloom_fpp: float = 1e-9
    evolve: str = "refuse"
    ttl: str = NEVER_EXPIRES
    ttl_by: str = LAST_WRITE
    sort_columns: str = ""
    sort_curve: str = "LINEAR"
    block_format: BlockFormat = "auto"

    @classmethod
    def from_texts(cls, values: Mapping[str, str]) -> "TableSettings":
        """From texts by key. Raises OptionError for an unknown key or an invalid value."""
        texts = {field_of(key): text for key, text in values.items()}
        read: dict[str, Any] = {name: _read(SETTINGS[name], text) for name, text in texts.items()}
        settings = cls(**read)
        settings._check()
        return settings

    @property
    def ttl_ms(self) -> int:
        """Milliseconds for which partitions are kept; 0: for ever."""
        if self.ttl == NEVER_EXPIRES:
            return 0
        return int(self.ttl[:-1]) * {"h": 1, "d": 24, "w": 7 * 24}[self.ttl[-1]] * 3_600_000

    @property
    def row_order(self) -> RowOrder | None:
        """Of the rows of new base files; None: compactions leave rows where they are."""
        return RowOrder(tuple(self.sort_columns.split(",")), CURVES[self.sort_curve]) if self.sort_columns else None

    def _check(self) -> None:
        if self.archive_min >= self.archive_max:
            raise OptionError(
                f"hoodie.keep.min.commits={self.archive_min} is not below hoodie.keep.max.commits={self.archive_max}",
                fix="Archiving cuts the timeline down from the one to the other; keep them apart by 10 or more.",
            )
        if self.clean_policy == "KEEP_LATEST_COMMITS" and self.archive_min <= self.clean_commits:
            raise OptionError(
                f"hoodie.keep.min.commits={self.archive_min} is not above hoodie.clean.commits.retained={self.clean_commits}",
                fix="What is archived cannot be read as of any more, so keep more commits than the cleaner does.",
            )
        if self.compaction_minor_fraction >= self.compaction_read_amplification:
            raise OptionError(
                f"headgate.compaction.minor.fraction={self.compaction_minor_fraction:g} is not below "
                f"headgate.compaction.read.amplification={self.compaction_read_amplification:g}",
                fix="Logs that were merged would make their slice due again at once; keep it at three quarters of the other.",
            )

    def to_texts(self) -> dict[str, str]:
        """Every setting by its key, as text."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {SETTINGS[name].key: _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def field_of(key: str) -> str:
    """The field of a setting. Raises OptionError for an unknown key."""
    if key in _FIELDS:
        return _FIELDS[key]
    near = did_you_mean(key, (setting.key for setting in SETTINGS.values()))
    raise OptionError(f"{key!r} is not a setting of a table", fix=f"{near}Settings are {', '.join(sorted(_FIELDS))}.")


def _read(setting: Setting, text: str) -> Value:
    try:
        value = setting.read(str(text))
    except (ValueError, KeyError) as error:
        raise OptionError(f"{setting.key}={text!r} cannot be read", fix=f"It is {setting.about}.") from error
    if setting.least is not None and not (isinstance(value, float | int) and value >= setting.least):
        raise OptionError(f"{setting.key}={text!r} is below {setting.least:g}", fix=f"It is {setting.about}.")
    return value


SETTINGS: Mapping[str, Setting] = {
    "compaction_trigger": Setting(
        "hoodie.compact.inline.trigger.strategy",
        choice("NUM_COMMITS", "TIME_ELAPSED", "NUM_OR_TIME", "NUM_AND_TIME"),
        "NUM_COMMITS, TIME_ELAPSED, NUM_OR_TIME or NUM_AND_TIME: which of the next two make a slice due; bytes always do",
    ),
    "compaction_commits": Setting(
        "hoodie.compact.inline.max.delta.commits",
        int,
        "the delta commits in a slice's logs that make it due, and from 85 % of which it joins a plan for others; readers open "
        "as many log files, and those that come meanwhile; fewer: faster reads, and base files are rewritten more often",
        1,
    ),
    "compaction_first_commits": Setting(
        "headgate.compaction.first.delta.commits",
        int,
        "the same for a slice without a base file, of which read-optimised queries see nothing; at most the one above",
        1,
    ),
    "compaction_seconds": Setting(
        "hoodie.compact.inline.max.delta.seconds", float, "the age in seconds of a slice's oldest log that makes it due", 1
    ),
    "compaction_log_bytes": Setting(
        "headgate.compaction.log.bytes",
        int,
        "bytes of a slice's logs that make it due; larger: fewer rewrites of base files above this, more memory of readers; "
        "below 0.4 of headgate.slice.max.log.bytes, which makes it due, too",
        1,
    ),
    "compaction_read_amplification": Setting(
        "headgate.compaction.read.amplification",
        float,
        "log bytes per base byte of a slice that make it due, from 8 MiB of logs on; smaller: faster reads, more bytes written",
        0.01,
    ),
    "compaction_minor_fraction": Setting(
        "headgate.compaction.minor.fraction",
        float,
        "log bytes per base byte up to which a compaction merges the logs alone and takes the base file over as it is; larger: "
        "fewer bytes written, more log rows for each read to merge, older rows in read-optimised queries; 0: never",
        0,
    ),
    "compaction_target_io_mb": Setting(
        "hoodie.compaction.target.io",
        int,
        "megabytes that one plan reads and writes, at least one slice; larger: later commits",
        1,
    ),
    "compaction_attempts": Setting(
        "headgate.compaction.attempts", int, "how often an operation may fail before the plan goes on without it", 1
    ),
    "max_log_files": Setting(
        "headgate.slice.max.log.files",
        int,
        "log files of one slice at which no more rows are taken; from half of it on checkpoints come less often",
        4,
    ),
    "max_log_bytes": Setting(
        "headgate.slice.max.log.bytes",
        int,
        "log bytes of one slice at which no more rows are taken; from half of it on they are taken slower",
        1 << 16,
    ),
    "clean_automatic": Setting("hoodie.clean.automatic", flag, "true or false: whether old file slices are removed"),
    "clean_policy": Setting(
        "hoodie.clean.policy",
        choice("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS"),
        "KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS or KEEP_LATEST_FILE_VERSIONS",
    ),
    "clean_commits": Setting(
        "hoodie.clean.commits.retained", int, "commits as of which the table can be read; more: more storage", 1
    ),
    "clean_hours": Setting("hoodie.clean.hours.retained", int, "hours for which the table can be read as of the past", 1),
    "clean_versions": Setting("hoodie.clean.fileversions.retained", int, "file slices that each group keeps", 1),
    "clean_min_age": Setting(
        "headgate.clean.min.age",
        float,
        "seconds that a file stays at least after a newer slice has replaced it, by any policy; above the longest query",
        0,
    ),
    "archive_automatic": Setting("hoodie.archive.automatic", flag, "true or false: whether the timeline is trimmed"),
    "archive_max": Setting(
        "hoodie.keep.max.commits",
        int,
        "instants on the active timeline at which it is trimmed; more: readers list more; above "
        "headgate.slice.max.log.files, or it grows to that while nothing compacts",
        2,
    ),
    "archive_min": Setting("hoodie.keep.min.commits", int, "instants that stay then; above hoodie.clean.commits.retained", 1),
    "retire_after": Setting(
        "headgate.log.retire.after",
        float,
        "seconds after which folded slots are deleted and dead instants forgotten; above any pause of a process",
        0,
    ),
    "bloom": Setting("hoodie.parquet.bloom.filter.enabled", flag, "true or false: whether base files carry a bloom filter"),
    "bloom_entries": Setting(
        "hoodie.index.bloom.num_entries", int, "keys for which a bloom filter is made; twice as many: twice the bytes", 1
    ),
    "bloom_fpp": Setting("hoodie.index.bloom.fpp", float, "its share of false hits; smaller: more bytes and CPU", 1e-12, 0.5),
    "evolve": Setting(
        "headgate.evolve",
        choice("refuse", "add", "add-and-widen"),
        "refuse, add or add-and-widen: whether batches of a channel may bring new columns, and wider types, too; then the right "
        "to write rows is one to change columns, and hudi-rs 0.5 refuses what is not compacted since a column was widened",
    ),
    "ttl": Setting(
        "headgate.ttl",
        _ttl,
        "never, or a number with h, d or w (hours, days, weeks), as 30d: a partition that is older is removed with all its rows; "
        "`headgate table expire TABLE --dry-run --ttl 30d` shows which ones before",
    ),
    "ttl_by": Setting(
        "headgate.ttl.by",
        _column,
        "last-write, as Hudi's KEEP_BY_TIME: a partition's age counts from its newest commit; or a partition column of dates ("
        "date, or text as 2026-01-31, 2026-01-31T08, 2026-01, 2026, 20260131): from the end of that day, hour, month, year, UTC",
    ),
    "sort_columns": Setting(
        "hoodie.clustering.plan.strategy.sort.columns",
        _columns,
        "columns by which compactions sort the rows of base files, as origin,dest: filters on them read fewer row groups; costs "
        "disk of the compactor as large as the slice, and CPU; at most 8, none when empty",
    ),
    "sort_curve": Setting(
        "hoodie.layout.optimize.strategy",
        choice(*CURVES),
        "LINEAR: by the first column, then by the next; ZORDER or HILBERT: by all of them at once, for filters on any of them; "
        "HILBERT keeps them nearer together",
    ),
    "block_format": Setting(
        BLOCK_FORMAT,
        BLOCK_FORMATS.__getitem__,
        "auto, parquet or avro: how rows are stored in log files. auto: avro where it is no larger, so that few rows in many "
        "buckets take a fraction of the CPU; avro: always, with up to four times the bytes until they are compacted; parquet "
        "always in tables with lists, maps or timestamps in structs",
    ),
}

_OLD_KEYS = {
    "hoodie.cleaner.policy": "clean_policy",
    "hoodie.cleaner.commits.retained": "clean_commits",
    "hoodie.cleaner.hours.retained": "clean_hours",
    "hoodie.cleaner.fileversions.retained": "clean_versions",
}
"""Their names in Hudi before 1.0."""
_FIELDS = {setting.key: name for name, setting in SETTINGS.items()} | _OLD_KEYS
