"""What the owner of a table says, as this process keeps it."""

import json
from collections.abc import Mapping

import numpy as np

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.log_layout import LOG_LAYOUT
from headgate_tables.storage.open import open_store
from headgate_tables.system import Ids
from headgate_writer.adopted import AdoptedTable, Member, Plan


def read_plan(plan: wire.Plan) -> Plan:
    """A checkpoint's members and assignment."""
    members = tuple(Member(member.process, member.address) for member in plan.members)
    assignment = np.array(plan.assignment, dtype=np.uint16)
    return Plan(plan.checkpoint, members, assignment, plan.slice_files, plan.slice_bytes, plan.intake_bytes)


def read_adopt(order: wire.TableOrder, storage_options: Mapping[str, str], ids: Ids) -> AdoptedTable:
    """The table that ``order.adopt`` names. Raises OptionError when the url and our storage options do not fit."""
    return AdoptedTable(
        name=order.table,
        epoch=order.epoch,
        generation=order.generation,
        url=order.adopt.url,
        definition=Definition.decode(json.loads(order.adopt.definition)),
        drop_beaten=order.adopt.drop_beaten,
        store=open_store(order.adopt.url, storage_options, ids, anchor=LOG_LAYOUT.root),
        restored=order.adopt.restored,
    )
