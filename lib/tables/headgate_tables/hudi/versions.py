"""All that differs between Hudi's table versions."""

import enum
from collections.abc import Mapping
from typing import Final

from headgate_tables.errors import OptionError, UnsupportedTableError

_EVENT_TIME_PAYLOADS = ("DefaultHoodieRecordPayload", "EventTimeAvroPayload")


class TableVersion(enum.IntEnum):
    """Versions that are read and written. Both have timeline layout 2, and the same data files."""

    EIGHT = 8
    NINE = 9

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], path: str) -> "TableVersion":
        """The version in ``hoodie.properties``. Raises UnsupportedTableError for any other."""
        text = properties.get("hoodie.table.version", "0")
        known = ", ".join(str(version.value) for version in cls)
        number = int(text) if text.isascii() and text.isdigit() else 0
        if number not in list(cls):
            newer = number > max(cls)
            fix = (
                "Upgrade headgate-tables."
                if newer
                else "Upgrade the table with Hudi 1.0 or newer (its Spark writer does so on a write)."
            )
            raise UnsupportedTableError(f"{path} is of table version {text}; versions {known} can be read", fix=fix)
        return cls(number)

    @classmethod
    def of_number(cls, number: int) -> "TableVersion":
        """Raises OptionError for a number of no version that is written."""
        if number not in list(cls):
            raise OptionError(f"table version {number!r}", fix=f"Choose one of {', '.join(str(each.value) for each in cls)}.")
        return cls(number)

    def prefixes_keys(self, key_columns: int, partition_columns: int) -> bool:
        """Whether Hudi's complex key generator writes a key of one column as ``column:value`` (fact HF13)."""
        return self is TableVersion.NINE and key_columns == 1 and partition_columns > 1

    def ordering(self, properties: Mapping[str, str], path: str) -> str | None:
        """The ordering field, None in a commit-time table. Raises UnsupportedTableError for an unknown kind of merge.

        Hudi 1.0 names it precombine.field, 1.1 and newer ordering.fields, also in tables of version 8.
        """
        fields = properties.get("hoodie.table.ordering.fields") or properties.get("hoodie.table.precombine.field") or ""
        payload = properties.get("hoodie.compaction.payload.class", "").rpartition(".")[2]
        inferred = (
            "EVENT_TIME_ORDERING" if (payload in _EVENT_TIME_PAYLOADS or not payload) and fields else "COMMIT_TIME_ORDERING"
        )
        mode = properties.get("hoodie.record.merge.mode") or inferred
        if mode == "COMMIT_TIME_ORDERING":
            return None
        if mode != "EVENT_TIME_ORDERING" or properties.get("hoodie.table.partial.update.mode", "NONE") != "NONE":
            raise UnsupportedTableError(
                f"{path} merges rows in a way of its own ({mode}, {payload or 'partial updates'})",
                fix="Event-time and commit-time ordering can be read; read this table with Spark.",
            )
        if "," in fields:
            raise UnsupportedTableError(
                f"{path} orders rows by several fields ({fields}), and one is known here: a newer row could lose",
                fix="Read this table with Spark. To write it here, create a table with one ordering column that is made of these "
                "(as the number `first * 1000 + second`), and load the rows into it.",
            )
        return fields or None


DEFAULT_TABLE_VERSION: Final = TableVersion.EIGHT.value
"""Of new tables: the oldest version that is written, which most readers know."""
