"""All kinds of slots of table services, as the commit log gets them."""

from collections.abc import Callable, Mapping
from typing import Final

from headgate_tables.commitlog.bodies import ServiceBody, SlotKind
from headgate_tables.commitlog.fields import Fields
from headgate_tables.hudi.decisions.adoption import Adopt
from headgate_tables.hudi.decisions.altering import Altered
from headgate_tables.hudi.decisions.dropping import GraceChanged, TableDropped
from headgate_tables.hudi.decisions.plans import PlanCancelled, PlanDone, PlanMade, SliceSetAside
from headgate_tables.hudi.decisions.retention import Archive, Clean
from headgate_tables.hudi.decisions.savepoints import Restore, decode_savepoint

SERVICES: Final[Mapping[SlotKind, Callable[[Fields], ServiceBody]]] = {
    SlotKind.PLAN: PlanMade.decode,
    SlotKind.PLAN_DONE: PlanDone.decode,
    SlotKind.PLAN_CANCELLED: PlanCancelled.decode,
    SlotKind.CLEAN: Clean.decode,
    SlotKind.SAVEPOINT: decode_savepoint,
    SlotKind.RESTORE: Restore.decode,
    SlotKind.ARCHIVE: Archive.decode,
    SlotKind.ADOPT: Adopt.decode,
    SlotKind.SLICE: SliceSetAside.decode,
    SlotKind.DROP: TableDropped.decode,
    SlotKind.GRACE: GraceChanged.decode,
    SlotKind.ALTER: Altered.decode,
}
