"""How Spark, Flink and Trino use a table rightly: without these settings they double keys, upgrade the table or miss rows.

Facts of Spark: docs/protocol/hudi.md, "Other things that Spark does to a table of ours", each seen with Hudi 1.2.0.
"""

from typing import assert_never

from headgate_tables.errors import UnsupportedTableError
from headgate_tables.face.engines import Engine, EngineSetup
from headgate_tables.hudi.bucket_rules import expressions_of
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.sql_types import Dialect, sql_type
from headgate_tables.hudi.table_properties import key_generator_type
from headgate_tables.hudi.versions import TableVersion

_GENERATORS = {
    "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
_META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_STOP = (
    "Rows of a cluster and of another writer do not go together: before {engine} writes, stop the programs that write the table; "
    "afterwards the table takes rows again when it is adopted (`headgate table adopt`)."
)


def engine_setup(definition: Definition, version: TableVersion, url: str, engine: Engine) -> EngineSetup:
    """What ``engine`` needs. ``url``: of the table.

    Raises UnsupportedTableError for a table whose keys the engine would write differently, UnsupportedTypeError.
    """
    _check_keys(definition, version)
    place = url.replace("s3://", "s3a://", 1) if url.startswith("s3://") else url
    match engine:
        case "spark":
            return _spark(definition, version, place)
        case "flink":
            return _flink(definition, version, place)
        case "trino":
            return _trino(definition, url)
        case _:
            assert_never(engine)


def _check_keys(definition: Definition, version: TableVersion) -> None:
    """Fact HF13. Version 8 leaves the form of a key to a setting, version 9 does not."""
    if version is TableVersion.NINE and definition.prefixed_keys != _is_single_of_complex(definition):
        raise UnsupportedTableError(
            "the table's record keys do not have the form that Hudi writes in version 9: another program would double rows",
            fix="Write the table through Headgate alone. Every engine may read it.",
        )


def _is_single_of_complex(definition: Definition) -> bool:
    """Whether the complex key generator makes keys of one column, which have two forms."""
    return key_generator_type(definition) == "COMPLEX" and len(definition.record_key) == 1


def _common(definition: Definition, version: TableVersion) -> dict[str, str]:
    """What every writer of Hudi has to know of the table, and that it leaves table services to us."""
    keys = ",".join(definition.record_key)
    common = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.num.buckets": str(definition.buckets),
        "hoodie.bucket.index.hash.field": keys,
        "hoodie.datasource.write.recordkey.field": keys,
        "hoodie.datasource.write.hive_style_partitioning": str(definition.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(definition.url_encode).lower(),
        "hoodie.metadata.enable": "false",
        "hoodie.write.table.version": str(version.value),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }
    if definition.bucket_rules:
        common["hoodie.bucket.index.partition.rule.type"] = "regex"
        common["hoodie.bucket.index.partition.expressions"] = expressions_of(definition)
    if _is_single_of_complex(definition):
        # Hudi does not know which form such keys have in a table of version 8, and refuses to write it unless it need not ask.
        common["hoodie.write.complex.keygen.new.encoding"] = str(not definition.prefixed_keys).lower()
        common["hoodie.write.complex.keygen.validation.enable"] = "false"
    return common


def _spark(definition: Definition, version: TableVersion, place: str) -> EngineSetup:
    common = _common(definition, version)
    options = common | {
        "hoodie.table.name": definition.name,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.partitionpath.field": ",".join(definition.partition_by),
        "hoodie.datasource.write.keygenerator.class": _GENERATORS[key_generator_type(definition)],
    }
    if definition.ordering:
        options["hoodie.datasource.write.precombine.field"] = definition.ordering
    return EngineSetup(
        engine="spark",
        statements=(f"CREATE TABLE IF NOT EXISTS {_quoted(definition.name)} USING hudi LOCATION {_text(place)}",),
        # INSERT INTO otherwise adds a second row of a key that is there.
        settings=common | {"hoodie.spark.sql.insert.into.operation": "upsert"},
        options=options,
        notes=(
            "Tried with Hudi 1.2.0 on Spark 3.5.",
            "The settings are of this table: use a session that writes no other one. Reading needs hoodie.metadata.enable alone.",
            _STOP.format(engine="Spark"),
        ),
    )


def _flink(definition: Definition, version: TableVersion, place: str) -> EngineSetup:
    options = {"connector": "hudi", "path": place, "table.type": "MERGE_ON_READ", "index.type": "BUCKET"}
    options |= {key: value for key, value in _common(definition, version).items() if key != "hoodie.index.type"}
    options |= {
        "hoodie.datasource.write.keygenerator.class": _GENERATORS[key_generator_type(definition)],
        "metadata.enabled": "false",
        "compaction.schedule.enabled": "false",
        "compaction.async.enabled": "false",
        "clean.async.enabled": "false",
    }
    if definition.ordering:
        options["precombine.field"] = definition.ordering
    keys = ", ".join(map(_quoted, definition.record_key))
    columns = [*_columns(definition, "flink"), f"  PRIMARY KEY ({keys}) NOT ENFORCED"]
    partitions = f" PARTITIONED BY ({', '.join(map(_quoted, definition.partition_by))})" if definition.partition_by else ""
    listed = ",\n".join(f"  {_text(key, flink=True)} = {_text(value, flink=True)}" for key, value in options.items())
    return EngineSetup(
        engine="flink",
        statements=(
            f"CREATE TABLE {_quoted(definition.name)} (\n" + ",\n".join(columns) + f"\n){partitions} WITH (\n{listed}\n)",
        ),
        settings={},
        options=options,
        notes=(
            "Not tried: taken from the documentation of Hudi's Flink connector. Try it on a copy of the table first.",
            _STOP.format(engine="Flink"),
        ),
    )


def _trino(definition: Definition, url: str) -> EngineSetup:
    meta = [f"  `{name}` STRING" for name in _META_COLUMNS]
    columns = [*meta, *_columns(definition, "hive", without=definition.partition_by)]
    parts = [line.strip() for line in _columns(definition, "hive") if line.split("`")[1] in definition.partition_by]
    partitions = f"PARTITIONED BY ({', '.join(parts)})\n" if parts else ""
    statement = (
        f"CREATE EXTERNAL TABLE {_quoted(definition.name)} (\n" + ",\n".join(columns) + f"\n)\n{partitions}"
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'\n"
        "STORED AS INPUTFORMAT 'org.apache.hudi.hadoop.HoodieParquetInputFormat'\n"
        "OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat'\n"
        f"LOCATION {_text(url)}"
    )
    return EngineSetup(
        engine="trino",
        statements=(statement,),
        settings={},
        options={"connector.name": "hudi"},
        notes=(
            "The statement is Hive's, for the metastore that hive.metastore.uri of Trino's catalog names. It was not tried.",
            *(["Register each partition: ALTER TABLE … ADD PARTITION … LOCATION …"] if parts else []),
            "Trino only reads, and base files alone (seen with 476): it shows rows once they are compacted (`headgate compact`).",
        ),
    )


def _columns(definition: Definition, dialect: Dialect, without: tuple[str, ...] = ()) -> list[str]:
    return [f"  {_quoted(each.name)} {sql_type(each.type, dialect)}" for each in definition.schema if each.name not in without]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(value: str, *, flink: bool = False) -> str:
    """A string of SQL; only Flink's doubles a quote."""
    return "'" + (value.replace("'", "''") if flink else value.replace("\\", "\\\\").replace("'", "\\'")) + "'"
