"""Brings a table to another of Hudi's versions. Timeline and data files of all versions are the same (fact HF13): only the
properties change, in a CONFIG slot that carries them, so that the next owner finishes what a crash interrupts.
"""

import base64
import hashlib

from headgate_tables.commitlog.bodies import Configured
from headgate_tables.commitlog.records import ReplacedFile
from headgate_tables.errors import ForeignWriterError, OptionError
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.properties import PROPERTIES_PATH, parse, render
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.table_properties import in_version
from headgate_tables.hudi.versions import TableVersion


def change_version(table: TableContext, version: TableVersion) -> TableVersion:
    """Wins a CONFIG slot and replaces the properties; returns the version before. Does nothing when the table has it already.

    Raises OptionError for a table whose keys the version would write differently; ForeignWriterError.
    """
    table.check()
    content, before = _present(table)
    if before is version:
        return before
    _check_keys(table.definition, version)
    was = hashlib.sha256(content).hexdigest()
    properties = in_version(parse(content, PROPERTIES_PATH), table.definition, version)

    def build(time: str) -> Configured:
        # The time keeps the bytes from being those of an earlier change, which a repeated slot would take for its own.
        new = render(properties, f"Headgate made this version {version.value} at {time}")
        return Configured(
            settings=table.log.state.settings,
            config={"table_version": version.value},
            replaces=ReplacedFile(PROPERTIES_PATH, was, base64.b64encode(new).decode()),
        )

    table.log.decide(build)
    if _present(table)[1] is not version:
        table.log.check_owner()
        raise ForeignWriterError(
            f"another program changed {PROPERTIES_PATH} at the same moment, and its content stays",
            fix="Stop the other program, then ask again.",
        )
    return before


def _present(table: TableContext) -> tuple[bytes, TableVersion]:
    content = table.store.get(PROPERTIES_PATH).to_pybytes()
    return content, TableVersion.from_properties(parse(content, PROPERTIES_PATH), PROPERTIES_PATH)


def _check_keys(definition: Definition, version: TableVersion) -> None:
    if definition.prefixed_keys != version.prefixes_keys(len(definition.record_key), len(definition.partition_by)):
        form = f"{definition.record_key[0]}:value" if definition.prefixed_keys else "value"
        raise OptionError(
            f"the table's record keys are stored as {form}, and Hudi writes them differently in version {version.value}: "
            "another program would double rows",
            fix=f"Leave the table in its version, or load its rows into a new table of version {version.value}.",
        )
