"""Apache Hudi tables: create, write, read."""

from headgate_tables.commitlog.records import OwnerProcess
from headgate_tables.face.results import CommitInfo, CommitResult, Finding, RepairResult, Verification
from headgate_tables.hudi.create import create_table
from headgate_tables.hudi.opening import finish_drop, open_table
from headgate_tables.hudi.scan import Scan
from headgate_tables.hudi.table import Table
from headgate_tables.hudi.transaction import Transaction

__all__ = [
    "CommitInfo",
    "CommitResult",
    "Finding",
    "OwnerProcess",
    "RepairResult",
    "Scan",
    "Table",
    "Transaction",
    "Verification",
    "create_table",
    "finish_drop",
    "open_table",
]
