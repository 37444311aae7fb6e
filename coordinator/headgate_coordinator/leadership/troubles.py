"""Finds what an error means: the end of one table's ownership, or of the process."""

from collections.abc import Iterator

import structlog

from headgate_tables.errors import SyncFailedError, TablesError

_LONGEST_TEXT = 200
_log = structlog.get_logger()


class UnforeseenError(TablesError):
    """An error that no code expects: a defect, or out of memory. It ends one ownership, not the process."""


def trouble_of(table: str, error: Exception) -> TablesError:
    """Returns why the ownership of ``table`` ended. Logs an unexpected error with its stack.

    Raises SyncFailedError if it is among the errors: after one, no data of this process can be trusted (hazard H14).
    """
    errors = list(_leaves(error))
    for each in errors:
        if isinstance(each, SyncFailedError):
            raise each
    foreseen = [each for each in errors if isinstance(each, TablesError)]
    if len(foreseen) == len(errors):
        return foreseen[0]
    _log.error("an unexpected error ended an ownership", table=table, exc_info=error)
    strange = next(each for each in errors if not isinstance(each, TablesError))
    return UnforeseenError(
        f"unexpected error: {type(strange).__name__}: {str(strange)[:_LONGEST_TEXT]}",
        fix="The table is opened again after a pause. Report the error with its stack from the coordinator's log.",
    )


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
