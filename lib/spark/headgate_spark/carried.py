"""Errors of the table library on their way from a task to the driver: Spark brings nothing but text."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from typing import Final

from headgate_tables import errors
from headgate_tables.errors import TablesError

_CARRIED: Final = re.compile(r"\[headgate-error ([A-Za-z0-9+/=]+)\]")


class TaskError(Exception):
    """A TablesError as text. Spark runs the task again, as it does after any error."""


@contextlib.contextmanager
def carrying() -> Iterator[None]:
    """Raises a TaskError for a TablesError."""
    try:
        yield
    except TablesError as error:
        content = json.dumps([type(error).__name__, error.message, error.fix])
        raise TaskError(f"{error} [headgate-error {base64.b64encode(content.encode()).decode()}]") from error


def carried_by(failed: BaseException) -> TablesError | None:
    """The TablesError that ended the task because of which Spark raised ``failed``; None when it was something else."""
    found = _CARRIED.search(str(failed))
    if found is None:
        return None
    try:
        kind, message, fix = json.loads(base64.b64decode(found[1]))
    except ValueError:
        return None
    made = getattr(errors, kind, None)
    return made(message, fix=fix) if isinstance(made, type) and issubclass(made, TablesError) else None
