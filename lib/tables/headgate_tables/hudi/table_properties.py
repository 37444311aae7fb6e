"""What ``hoodie.properties`` says of a table of ours, in each table version (facts HF12, HF13)."""

from collections.abc import Mapping

from headgate_tables.hudi.definition import Definition, avro_schema
from headgate_tables.hudi.properties import CHECKSUM_KEY, name_checksum
from headgate_tables.hudi.versions import TableVersion

VERSION_KEY = "hoodie.table.version"
PAYLOAD_KEY = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_KEY = "hoodie.table.legacy.payload.class"
FORMAT_KEY = "hoodie.table.format"
STRATEGY_KEY = "hoodie.record.merge.strategy.id"
TIMEZONE_KEY = "hoodie.table.timeline.timezone"
MERGE_MODE_KEY = "hoodie.record.merge.mode"
ORDERING_KEYS = {TableVersion.EIGHT: "hoodie.table.precombine.field", TableVersion.NINE: "hoodie.table.ordering.fields"}
STRATEGIES = {
    "EVENT_TIME_ORDERING": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "COMMIT_TIME_ORDERING": "ce9acb64-bde0-424c-9b91-f6ebba25356d",
}
PAYLOADS = {
    "EVENT_TIME_ORDERING": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "COMMIT_TIME_ORDERING": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
}


def properties_of(definition: Definition) -> dict[str, str]:
    """Every key that Spark-Hudi writes for such a table. To a reader of rows, all versions say the same."""
    mode, version = _merge_mode(definition), definition.table_version
    properties = {
        "hoodie.table.name": definition.name,
        "hoodie.table.type": "MERGE_ON_READ",
        VERSION_KEY: str(version.value),
        "hoodie.table.initial.version": str(version.value),
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.database.name": "default",
        CHECKSUM_KEY: name_checksum("default", definition.name),
        "hoodie.table.recordkey.fields": ",".join(definition.record_key),
        "hoodie.table.keygenerator.type": key_generator_type(definition),
        MERGE_MODE_KEY: mode,
        "hoodie.datasource.write.hive_style_partitioning": str(definition.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(definition.url_encode).lower(),
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.populate.meta.fields": "true",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.multiple.base.file.formats.enable": "false",
        TIMEZONE_KEY: "UTC",
        "hoodie.table.cdc.enabled": "false",
        # The schema that readers assume before there is a commit.
        "hoodie.table.create.schema": avro_schema(definition, meta_columns=False),
    }
    match version:
        case TableVersion.EIGHT:
            properties |= {STRATEGY_KEY: STRATEGIES[mode], PAYLOAD_KEY: PAYLOADS[mode]}
        case TableVersion.NINE:
            properties[FORMAT_KEY] = "native"
    if definition.partition_by:
        properties["hoodie.table.partition.fields"] = ",".join(definition.partition_by)
    if definition.ordering:
        properties[ORDERING_KEYS[version]] = definition.ordering
    return properties


def in_version(properties: Mapping[str, str], definition: Definition, version: TableVersion) -> dict[str, str]:
    """The present ``properties`` of the table in another version, as Hudi's own upgrade and downgrade change them. Keys that
    both versions have, and unknown ones, stay.
    """
    mode = _merge_mode(definition)
    of_one_version = (STRATEGY_KEY, PAYLOAD_KEY, LEGACY_PAYLOAD_KEY, FORMAT_KEY, *ORDERING_KEYS.values())
    changed = {key: value for key, value in properties.items() if key not in of_one_version}
    changed |= {VERSION_KEY: str(version.value), MERGE_MODE_KEY: mode}
    payload = properties.get(PAYLOAD_KEY) or properties.get(LEGACY_PAYLOAD_KEY)
    match version:
        case TableVersion.EIGHT:
            changed |= {STRATEGY_KEY: STRATEGIES[mode], PAYLOAD_KEY: payload or PAYLOADS[mode]}
        case TableVersion.NINE:
            changed |= {LEGACY_PAYLOAD_KEY: payload} if payload else {}
    ordering = properties.get(ORDERING_KEYS[TableVersion.NINE]) or properties.get(ORDERING_KEYS[TableVersion.EIGHT])
    return changed | ({ORDERING_KEYS[version]: ordering} if ordering else {})


def _merge_mode(definition: Definition) -> str:
    return "EVENT_TIME_ORDERING" if definition.ordering else "COMMIT_TIME_ORDERING"


def key_generator_type(definition: Definition) -> str:
    """As Spark names the key generator for such keys and partitions."""
    if not definition.partition_by:
        return "NON_PARTITION"
    return "SIMPLE" if len(definition.record_key) == 1 and len(definition.partition_by) == 1 else "COMPLEX"
