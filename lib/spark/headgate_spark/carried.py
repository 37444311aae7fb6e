"""Errors of the table library and of the SDK on their way from a task to the driver: Spark brings nothing but text."""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import re
import sys
from collections.abc import Iterator
from typing import Final, Protocol

from headgate_tables.errors import TablesError

_CARRIED: Final = re.compile(r"\[headgate-error ([A-Za-z0-9+/=]+)\]")
_HOMES: Final = ("headgate_tables.errors", "headgate.errors")


class Helpful(Protocol):
    """An error of either: what is wrong, and what to do."""

    message: str
    fix: str


class TaskError(Exception):
    """Such an error as text. Spark runs the task again, as it does after any error."""

    @classmethod
    def of(cls, error: Helpful) -> TaskError:
        """Keeps its kind, for ``carried_by``."""
        content = json.dumps([type(error).__module__, type(error).__name__, error.message, error.fix])
        return cls(f"{error} [headgate-error {base64.b64encode(content.encode()).decode()}]")


@contextlib.contextmanager
def carrying() -> Iterator[None]:
    """Raises a TaskError for an error of either."""
    try:
        yield
    except TablesError as error:
        raise TaskError.of(error) from error
    except Exception as error:
        sdk = sys.modules.get("headgate.errors")  # is there if the SDK is used
        if sdk is not None and isinstance(error, sdk.HeadgateError):
            raise TaskError.of(error) from error
        raise


def carried_by(failed: BaseException) -> Exception | None:
    """The error that ended the task because of which Spark raised ``failed``; None when it was something else, or an SDK's error
    that is made of more than texts.
    """
    found = _CARRIED.search(str(failed))
    if found is None:
        return None
    try:
        home, kind, message, fix = json.loads(base64.b64decode(found[1]))
        made = getattr(importlib.import_module(home), kind) if home in _HOMES else None
        error = made(message, fix=fix) if isinstance(made, type) else None
    except (ValueError, ImportError, AttributeError, TypeError):
        return None
    return error if isinstance(error, Exception) else None
