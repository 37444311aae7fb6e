"""What the tasks of a sink tell the driver (PySpark 4), and whose query a batch is: only tasks learn that from Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

_QUERY: Final = "sql.streaming.queryId"
"""The local property by which Spark tells a task its query: the same one as long as its checkpoint is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMessage(WriterCommitMessage):  # type: ignore[misc]
    """``query``: of the batch, "" for a ``df.write``."""

    query: str = ""


def query_of_task() -> str:
    """The query of the batch that this task is of."""
    found: str = TaskContext.get().getLocalProperty(_QUERY)
    return found


def query_of(messages: Sequence[WriterCommitMessage | None]) -> str:
    """The query of the batch whose tasks sent these; "" for one without tasks, which has nothing that could come twice."""
    return next((each.query for each in messages if isinstance(each, TaskMessage)), "")
