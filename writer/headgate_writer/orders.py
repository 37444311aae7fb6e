"""Reads an owner's orders into this process's own types."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.cluster.v1.table_pb2 import TableDefinition
from headgate_runtime.definitions import definition_fields
from headgate_runtime.logs import get_logger
from headgate_tables.face.definition import Definition
from headgate_tables.face.settings import BLOCK_FORMATS, BlockFormat
from headgate_tables.opening import define, open_folder, read_schema
from headgate_tables.system import Ids
from headgate_writer.attached import AttachedTable, Member, Membership

_log = get_logger()
_logged: Final[set[str]] = set()
"""Block formats that this process does not know and has logged: an owner names its own with every checkpoint."""


class WrongOrderError(Exception):
    """An order about a table that nothing can follow. Only this table cannot go on with it."""


def read_membership(membership: wire.Membership, key_groups: int) -> Membership:
    """Reads the members and the assignment of a checkpoint. ``key_groups``: of the table. Raises WrongOrderError."""
    members = tuple(Member(member.process, member.address) for member in membership.members)
    assignment = np.array(membership.assignment, dtype=np.uint16)
    if members and (len(assignment) != key_groups or int(assignment.max(initial=0)) >= len(members)):
        highest = int(assignment.max(initial=0))
        raise WrongOrderError(
            f"the owner assigned {len(assignment)} key groups to members 0 to {highest}; the table has {key_groups} key groups, "
            f"and checkpoint {membership.checkpoint} has {len(members)} members"
        )
    return Membership(
        membership.checkpoint,
        members,
        assignment,
        _block_format(membership.block_format),
        membership.slice_files,
        membership.slice_bytes,
        membership.intake_bytes,
    )


def _block_format(named: str) -> BlockFormat:
    """Parquet, which every reader reads, for one that only a newer owner knows."""
    if named and named not in BLOCK_FORMATS and named not in _logged:
        _logged.add(named)
        _log.warning("the owner names a block format that this writer does not know: Parquet is taken", block_format=named)
    return BLOCK_FORMATS.get(named, "parquet")


def read_definition(message: TableDefinition) -> Definition:
    """Returns a table's definition. Raises UnknownMessageError, CorruptFileError."""
    fields = definition_fields(message)
    return define(schema=read_schema(message.schema), **fields)


def read_attach(order: wire.TableOrder, store: str, storage_options: Mapping[str, str], ids: Ids) -> AttachedTable:
    """Returns the table of ``order.attach``. Raises OptionError when the url and our settings do not fit,
    UnknownMessageError for a missing or unknown field of the definition.
    """
    return AttachedTable(
        name=order.table,
        epoch=order.epoch,
        generation=order.generation,
        url=order.attach.url,
        definition=read_definition(order.attach.definition),
        store=open_folder(order.attach.url, storage_options, ids, store),
        restored=order.attach.restored,
    )
