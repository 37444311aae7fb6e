"""Checks of a server's answers and of offsets, shared by the decisions of a channel."""

from headgate.errors import InvalidArgumentError, ProtocolViolationError

MAX_OFFSET = 2**63 - 1


def require(possible: bool, what: str) -> None:
    """Raises ProtocolViolationError with ``what`` when an answer is not ``possible``."""
    if not possible:
        raise violation(what)


def violation(what: str) -> ProtocolViolationError:
    """The error for an answer that contradicts what was sent; ``what`` describes the answer."""
    return ProtocolViolationError(
        f"the server answered {what}",
        fix="Uncommitted rows are kept out of the table. Report this, and check that no second cluster uses the same store.",
    )


def check_range(offset: int) -> None:
    """Raises InvalidArgumentError for an offset that the protocol cannot carry."""
    if not 0 <= offset <= MAX_OFFSET:
        raise InvalidArgumentError(f"offset {offset} is out of range", fix="Offsets lie between 1 and 2**63 - 1.")
