"""Alters a table's columns while it is in use (rule C7): an ALTER slot, with an empty commit that tells readers (fact HF6).

Spark's ALTER TABLE makes the same commit. No file is touched: each says itself which columns it has.
"""

from dataclasses import replace

from headgate_tables.commitlog.records import encode_derived
from headgate_tables.errors import TransactionError
from headgate_tables.face.altering import Alteration, AlterResult
from headgate_tables.hudi.commit_files import commit_files, pending_deltacommit
from headgate_tables.hudi.decisions.altering import Altered
from headgate_tables.hudi.definition_values import encode_schema
from headgate_tables.hudi.schema.altered import altered, changes
from headgate_tables.hudi.schema.arrow_to_avro import avro_schema
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.timeline.commit_metadata import encode_commit
from headgate_tables.hudi.timeline.instant import Instant, State

_OPERATION = "ALTER_SCHEMA"


def alter(table: TableContext, alteration: Alteration, *, plan_only: bool) -> AlterResult:
    """Wins an ALTER slot unless nothing changes. Raises SchemaError and UnsupportedTypeError before anything is decided,
    TransactionError while a transaction is open: its files have the columns of before.
    """
    definition = table.definition
    ordering = () if definition.ordering is None else (definition.ordering,)
    schema = altered(definition.schema, alteration, {*definition.record_key, *definition.partition_by, *ordering})
    planned = changes(definition.schema, schema)
    if plan_only or not planned.changes:
        return planned
    if table.log.open_instants:
        raise TransactionError("a transaction is open", fix="Commit or roll it back first.")
    table.check()
    instant = table.log.next_time()
    stored = avro_schema(schema, definition.name, meta_columns=False)
    metadata = encode_commit(instant, [], stored, _OPERATION, {})

    def body(completion: str) -> Altered:
        done = Instant(instant, "deltacommit", State.COMPLETED, completion)
        derived = commit_files(pending_deltacommit(instant), [], done, metadata)
        config = {"schema": encode_schema(schema)}
        return Altered(instant=instant, completion=completion, config=config, publish=encode_derived(derived))

    table.log.decide(body)
    return replace(planned, instant=instant)
