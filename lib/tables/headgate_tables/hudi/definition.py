"""What a table is: keys, partitions, ordering, buckets; with its two written forms, ``hoodie.properties`` and the CONFIG slot."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from headgate_tables.commitlog.fields import Fields, Json, UnfitError, flag, nullable, number, text, texts
from headgate_tables.errors import CorruptFileError, FixCall, OptionError, SchemaError, UnsupportedTableError
from headgate_tables.face.bucket_rules import BucketRule, BucketRules, matches
from headgate_tables.hudi.definition_values import (
    encode_bucket_rules,
    encode_groups,
    encode_schema,
    read_base64,
    read_bucket_rules,
    read_groups,
    read_instant,
    read_schema,
    read_uuid,
)
from headgate_tables.hudi.keys import bucket as bucket_index
from headgate_tables.hudi.schema import arrow_to_avro
from headgate_tables.hudi.versions import TableVersion
from headgate_tables.near_names import did_you_mean

KEY_GROUPS = 128
MAX_BUCKETS = 99_999_999


@dataclass(frozen=True, slots=True)
class Layout:
    """What a reader needs to know, from ``hoodie.properties`` alone.

    ``ordering`` is None in a commit-time table. ``partition_by`` is empty for a table without partitions. ``values_in_path``:
    whether a partition's path spells the values of its columns; a time formatted by Hudi's timestamp key generator does not.
    ``shown_as_text``: columns of that generator, whose integers Spark shows, and on an SQL UPDATE writes, as text.
    ``created_schema``: in Avro, of the table as it was created, "" when the properties lack it.
    """

    name: str
    version: TableVersion
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: str | None
    hive_style: bool
    url_encode: bool
    values_in_path: bool
    shown_as_text: tuple[str, ...]
    created_schema: str
    history_folder: str

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], path: str) -> "Layout":
        """Raises UnsupportedTableError for a table that would be read wrongly, CorruptFileError when a key is missing."""
        if not properties.get("hoodie.table.name"):
            raise CorruptFileError(f"{path} does not name a table", fix="Restore hoodie.properties from a copy of the table.")
        version = TableVersion.from_properties(properties, path)
        if properties.get("hoodie.populate.meta.fields", "true") == "false":
            raise UnsupportedTableError(
                f"{path} has virtual keys (hoodie.populate.meta.fields=false)",
                fix="Only tables whose rows carry their record keys can be merged here; rewrite the table with meta columns.",
            )
        if properties.get("hoodie.datasource.write.drop.partition.columns", "false") == "true":
            raise UnsupportedTableError(
                f"{path} leaves partition columns out of its files", fix="Rewrite it with drop.partition.columns=false."
            )
        partition_by = tuple(name.partition(":")[0] for name in _names(properties, "hoodie.table.partition.fields"))
        ordering = version.ordering(properties, path)
        formatted = partition_by if key_generator(properties) == "TIMESTAMP" else ()
        return cls(
            name=properties["hoodie.table.name"],
            version=version,
            record_key=_names(properties, "hoodie.table.recordkey.fields"),
            partition_by=partition_by,
            ordering=ordering,
            hive_style=properties.get("hoodie.datasource.write.hive_style_partitioning") == "true",
            url_encode=properties.get("hoodie.datasource.write.partitionpath.urlencode") == "true",
            values_in_path=_values_in_path(properties),
            # As text, integers would be ordered differently: "9" is above "10".
            shown_as_text=tuple(name for name in formatted if name != ordering),
            created_schema=properties.get("hoodie.table.create.schema", ""),
            history_folder=properties.get("hoodie.timeline.history.path", "history"),
        )


def key_generator(properties: Mapping[str, str]) -> str:
    """The kind of key generator that the properties name, in capitals without punctuation, as ``TIMESTAMP``; "" for none."""
    generator = (
        properties.get("hoodie.table.keygenerator.type")
        or properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    )
    kind = generator.upper().replace("_", "").removesuffix("KEYGENERATOR").removesuffix("AVRO")
    return kind.removesuffix("BASED") if kind.startswith("TIMESTAMP") else kind


def _values_in_path(properties: Mapping[str, str]) -> bool:
    formats = {name.partition(":")[2].upper() for name in _names(properties, "hoodie.table.partition.fields")}
    return key_generator(properties) in ("", "SIMPLE", "COMPLEX", "CUSTOM", "GLOBALDELETE") and formats <= {"", "SIMPLE"}


def _names(properties: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in properties.get(key, "").split(",") if name.strip())


@dataclass(frozen=True, slots=True)
class Definition:
    """A table of ours. ``schema`` is canonical, without meta columns; ``buckets`` file groups a partition (rule FI2),
    except in those that ``bucket_rules`` match, the first of which counts.

    ``groups``: file group ids by partition and bucket, where other programs made them and ``table_uuid`` would give others.
    ``rescaled``: instant of the newest rescale of all partitions, "" before any: file ids begin anew with it (rule FI6).
    ``prefixed_keys``: as in `KeySpec`, in some tables of version 9 and of other programs. ``table_version``: Hudi's, as slots
    have it; another program may have changed it since (`Layout` has the present one).
    """

    name: str
    schema: pa.Schema
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: str | None
    buckets: int
    hive_style: bool
    url_encode: bool
    table_uuid: uuid.UUID
    key_groups: int = KEY_GROUPS
    prefixed_keys: bool = False
    table_version: TableVersion = field(default=TableVersion.EIGHT, compare=False)
    groups: Mapping[str, Mapping[int, str]] = field(default_factory=dict, compare=False)
    rescaled: str = field(default="", compare=False)
    bucket_rules: BucketRules = field(default=(), compare=False)

    def buckets_in(self, partition: str) -> int:
        """File groups of the partition of this path."""
        return self._rule_of(partition).buckets if self.bucket_rules else self.buckets

    def _rule_of(self, partition: str) -> BucketRule:
        for pattern, buckets, since in self.bucket_rules:
            if matches(pattern, partition):
                return BucketRule(pattern, buckets, since)
        return BucketRule("", self.buckets, self.rescaled)

    def file_id(self, partition: str, bucket: int, k: int = 0) -> str:
        """The bucket's k-th file group (rule FI1): the one that exists for k = 0, so that all writers agree without a look."""
        known = self.groups.get(partition, {}).get(bucket) if k == 0 else None
        if known:
            return known
        since = self._rule_of(partition).since if self.bucket_rules else self.rescaled
        return bucket_index.file_id(self.table_uuid, partition, bucket, k or int(since or 0))

    def check(self) -> None:
        """Raises OptionError or SchemaError for an invalid definition."""
        if not self.record_key:
            raise OptionError("a table needs a record key", fix="Pass record_key=[...], the columns that identify a row.")
        for buckets in (self.buckets, *(each for _, each, _ in self.bucket_rules)):
            if type(buckets) is not int or not 1 <= buckets <= MAX_BUCKETS:
                raise OptionError(f"buckets={buckets!r}", fix=f"Choose 1 to {MAX_BUCKETS}: the file groups of one partition.")
        if not 1 <= self.key_groups < 1 << 15:
            raise OptionError(f"a table of {self.key_groups} key groups", fix=f"Every table has {KEY_GROUPS} of them.")
        if not _is_name(self.name):
            raise OptionError(f"{self.name!r} is not a table name", fix="Pass name=..., a text in Unicode without slashes.")
        used = [*self.record_key, *self.partition_by, *([self.ordering] if self.ordering is not None else [])]
        for column in used:
            if column not in self.schema.names:
                near = did_you_mean(column, self.schema.names)
                raise SchemaError(
                    f"the schema has no column {column!r}", fix=f"{near}Its columns are {', '.join(self.schema.names)}."
                )
        for columns in (self.record_key, self.partition_by):
            if len(set(columns)) != len(columns):
                raise OptionError(f"a column stands twice in {list(columns)}", fix="Name each column once.")

    def check_layout(self, layout: Layout, path: str) -> None:
        """Compares ``hoodie.properties`` with what the table was created with: after a change rows would be merged differently.

        Raises CorruptFileError.
        """
        names = ("record_key", "partition_by", "ordering", "hive_style", "url_encode")
        for name in names:
            created, found = getattr(self, name), getattr(layout, name)
            if created != found:
                raise CorruptFileError(
                    f"{path} gives the table {name}={found!r}, but it was created with {created!r}",
                    fix="The file was edited or damaged. Restore it from a copy of the table.",
                )

    def encode(self) -> dict[str, Json]:
        """Its JSON in the CONFIG slot."""
        encoded: dict[str, Json] = {
            "name": self.name,
            "schema": encode_schema(self.schema),
            "record_key": list(self.record_key),
            "partition_by": list(self.partition_by),
            "ordering": self.ordering,
            "buckets": self.buckets,
            "hive_style": self.hive_style,
            "url_encode": self.url_encode,
            "table_uuid": str(self.table_uuid),
            "key_groups": self.key_groups,
        }
        if self.prefixed_keys:
            encoded["prefixed_keys"] = True
        if self.rescaled:
            encoded["rescaled"] = self.rescaled
        if self.bucket_rules:
            encoded["bucket_rules"] = encode_bucket_rules(self.bucket_rules)
        if self.table_version is not TableVersion.EIGHT:
            encoded["table_version"] = self.table_version.value
        return encoded | ({"groups": encode_groups(self.groups)} if self.groups else {})

    @classmethod
    def decode(cls, config: Mapping[str, Json]) -> "Definition":
        """From the CONFIG slot. Raises CorruptFileError, UnsupportedTableError for an unknown key."""
        fields = Fields({**config})
        try:
            definition = cls(
                name=fields.required("name", text),
                schema=read_schema(fields.required("schema", read_base64)),
                record_key=tuple(fields.required("record_key", texts)),
                partition_by=tuple(fields.required("partition_by", texts)),
                ordering=fields.required("ordering", nullable(text)),
                buckets=fields.required("buckets", number),
                hive_style=fields.required("hive_style", flag),
                url_encode=fields.required("url_encode", flag),
                table_uuid=fields.required("table_uuid", read_uuid),
                key_groups=fields.required("key_groups", number),
                prefixed_keys=fields.optional("prefixed_keys", flag) or False,
                table_version=TableVersion.of_number(fields.optional("table_version", number) or TableVersion.EIGHT.value),
                groups=fields.optional("groups", read_groups) or {},
                rescaled=fields.optional("rescaled", read_instant) or "",
                bucket_rules=tuple(fields.optional("bucket_rules", read_bucket_rules) or ()),
            )
            fields.refuse_others()
            definition.check()
        except (UnfitError, FixCall) as error:
            raise _unfit(error) from error
        return definition


def _is_name(name: object) -> bool:
    """Whether a table can have the name: Python has texts, with half a pair of surrogates, that no file can hold."""
    if not isinstance(name, str) or any(character in name for character in "/\\\0"):
        return False
    return bool(name) and not any("\ud800" <= character <= "\udfff" for character in name)


ABSENT: Mapping[str, Json] = {
    "bucket_rules": [],
    "groups": {},
    "prefixed_keys": False,
    "rescaled": "",
    "table_version": TableVersion.EIGHT.value,
}
"""What each key means that an encoded definition may lack."""


def _unfit(error: UnfitError | FixCall) -> CorruptFileError | UnsupportedTableError:
    if isinstance(error, UnfitError) and error.unknown:
        return UnsupportedTableError(f"the table's CONFIG slot: {error}", fix="Upgrade headgate-tables.")
    return CorruptFileError(f"the table's CONFIG slot is damaged: {error}", fix="Restore it from a copy of the table.")


@lru_cache(maxsize=64)
def avro_schema(definition: Definition, *, meta_columns: bool) -> str:
    """The table's schema as Hudi keeps it: in commits without meta columns, in log headers and footers with them."""
    return arrow_to_avro.avro_schema(definition.schema, definition.name, meta_columns=meta_columns)
