"""What an error means for the table that it came from, and for the process."""

from collections.abc import Iterator

import structlog

from headgate_tables.errors import SyncFailedError, TablesError

_LONGEST_TEXT = 200
_log = structlog.get_logger()


class UnforeseenError(TablesError):
    """An error that no code expects: a defect, or memory that ran out. It ends one ownership, not the process."""


def trouble_of(table: str, error: Exception) -> TablesError:
    """Why the ownership of ``table`` ended. An error that nobody foresaw is logged with its stack.

    Raises SyncFailedError: after one, nothing that this process holds may be trusted (hazard H14).
    """
    errors = list(_leaves(error))
    for each in errors:
        if isinstance(each, SyncFailedError):
            raise each
    foreseen = [each for each in errors if isinstance(each, TablesError)]
    if len(foreseen) == len(errors):
        return foreseen[0]
    _log.error("an error that nobody foresaw ended an ownership", table=table, exc_info=error)
    strange = next(each for each in errors if not isinstance(each, TablesError))
    return UnforeseenError(
        f"an error that nobody foresaw: {type(strange).__name__}: {str(strange)[:_LONGEST_TEXT]}",
        fix="The table is opened again after a pause. Report this with its stack from the coordinator's log.",
    )


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
