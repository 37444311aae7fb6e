"""Every error that the SDK raises on purpose, sorted by what the caller can do next.

HeadgateError
├── RetryLater                   the same call may succeed later; what was taken is kept and still being sent
│   ├── UnavailableError             no coordinator, writer or owner of the table answered in time
│   ├── OverloadedError              a limit is reached: memory, or log files that wait for compaction
│   └── NotCommittedError            a wait ended first; ``offset``, ``level`` and ``acks`` say what is missing
├── Resume                       this channel object is finished; open the channel again, go on behind its committed offset
│   └── TableRestoredError           an operator took the table back behind rows that this producer saw committed
├── FixCall                      the call is wrong and stays wrong; what was taken before is untouched
│   ├── RowError                     a row does not fit the table; ``row`` and ``column`` say where
│   ├── SchemaError                  a column is missing, unknown or of another type
│   ├── BatchRefusedError            a writer refused a batch and the channel stands still: correct or skip it
│   │   └── SliceSetAsideError           some rows belong to a file slice that takes none for now: send the others alone
│   ├── InvalidArgumentError         an argument is out of its range or contradicts another
│   ├── TooLargeError                one row or batch is over the limit of a message
│   ├── TableNotFoundError
│   ├── TableExistsError
│   └── ClosedError                  the connection or channel was closed before
└── GiveUp                       something outside the program has to change first
    ├── ChannelTakenOverError        a newer producer has this channel; never retried
    ├── ChannelForbiddenError        the channel belongs to another principal
    ├── UnauthenticatedError         no token, a wrong one, or one without the right
    ├── TableQuarantinedError        another program wrote to the table
    ├── UnexplainedAnswerError       a server said what cannot be true; nothing of it was adopted
    ├── UnknownOutcomeError          a call that must not be made twice broke off: look whether it was carried out
    └── InternalError                a defect, here or in the cluster
"""

from typing import TYPE_CHECKING

from headgate_proto.api.v1 import errors_pb2 as wire

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.entries import Acks, Level


class HeadgateError(Exception):
    """Base of all. ``fix`` is the next step for a person; ``str()`` holds the message and the fix."""

    def __init__(self, message: str, *, fix: str) -> None:
        super().__init__(message, fix)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}. {self.fix}"


class RetryLater(HeadgateError):
    """The same call may succeed later; what a channel has taken is kept and still being sent."""


class UnavailableError(RetryLater):
    """No coordinator, writer or owner of the table answered in time."""


class OverloadedError(RetryLater):
    """A limit is reached: of a writer's memory, or of log files that wait for compaction."""


class NotCommittedError(RetryLater):
    """A wait ended before the rows up to ``offset`` had reached ``level``; ``acks`` is how far they were."""

    def __init__(self, message: str, *, fix: str, offset: int, level: "Level | None", acks: "Acks") -> None:
        super().__init__(message, fix=fix)
        self.offset = offset
        self.level = level
        self.acks = acks


class Resume(HeadgateError):
    """This channel object is finished; open the channel again and go on behind its ``committed_offset``."""


class TableRestoredError(Resume):
    """An operator took the table back to ``committed_offset``, behind rows that this producer saw committed (rule CH8)."""

    def __init__(self, message: str, *, fix: str, committed_offset: int) -> None:
        super().__init__(message, fix=fix)
        self.committed_offset = committed_offset


class FixCall(HeadgateError):
    """The call is wrong and stays wrong; what was taken before is untouched."""


class RowError(FixCall):
    """A row does not fit the table. ``row`` counts from 0 in the call's rows; ``column`` is a name."""

    def __init__(self, message: str, *, fix: str, row: int, column: str) -> None:
        super().__init__(message, fix=fix)
        self.row = row
        self.column = column


class SchemaError(FixCall):
    """A column is missing, unknown or of another type than the table's."""


class BatchRefusedError(FixCall):
    """A writer refused a batch, and the channel stands still until it is corrected or skipped (rule CH2).

    ``reason`` is the code without its prefix (``"NULL_KEY"``), ``rows`` the refused rows, ``offset`` that of their last row and
    ``after`` the one before them. Rows given later are kept and sent once this is settled::

        try:
            ch.flush()
        except headgate.BatchRefusedError as refused:
            ch.upsert(corrected(refused.rows), offset=refused.offset)  # takes the same place
            # or: ch.skip()                                            # gives these rows up
    """

    def __init__(self, message: str, *, fix: str, reason: str, after: int, offset: int, rows: "pa.RecordBatch") -> None:
        super().__init__(message, fix=fix)
        self.reason = reason
        self.after = after
        self.offset = offset
        self.rows = rows


class SliceSetAsideError(BatchRefusedError):
    """Some rows of the batch belong to a file slice that takes none, until operators have put it in order.

    ``held``: those rows; ``others``: the rest of the batch, in its order, which is taken when it is sent in the batch's place::

        except headgate.SliceSetAsideError as refused:
            keep_for_later(refused.held)
            if refused.others.num_rows:
                ch.upsert(refused.others, offset=refused.offset)
            else:
                ch.skip()

    Later rows of the same keys are refused too, so that rows that were kept and are sent once the slice takes rows again stay in
    their order, if the program keeps it.
    """

    def __init__(
        self,
        message: str,
        *,
        fix: str,
        reason: str,
        after: int,
        offset: int,
        rows: "pa.RecordBatch",
        held: "pa.RecordBatch",
        others: "pa.RecordBatch",
    ) -> None:
        super().__init__(message, fix=fix, reason=reason, after=after, offset=offset, rows=rows)
        self.held = held
        self.others = others


class InvalidArgumentError(FixCall):
    """An argument is out of its range or contradicts another."""


class TooLargeError(FixCall):
    """One row, or a batch with an own offset, is over the limit of a message."""


class TableNotFoundError(FixCall):
    """No table of this name."""


class TableExistsError(FixCall):
    """There is a table of this name already, or one with another definition."""


class ClosedError(FixCall):
    """The connection or channel was closed before."""


class GiveUp(HeadgateError):
    """Something outside the program has to change first."""


class ChannelTakenOverError(GiveUp):
    """A newer producer opened this channel (rule CH4). Never retried: two would fence each other forever."""


class ChannelForbiddenError(GiveUp):
    """The channel belongs to another principal (rule CH5)."""


class UnauthenticatedError(GiveUp):
    """No token, a wrong one, or one without the right to do this."""


class TableQuarantinedError(GiveUp):
    """Another program wrote to the table; it takes no rows until an operator has adopted that."""


class UnexplainedAnswerError(GiveUp):
    """A server said what cannot be true after what was sent; nothing of it was adopted, and the channel stands still."""


class UnknownOutcomeError(GiveUp):
    """A call that must not be made twice broke off without an answer. Look whether it was carried out."""


class InternalError(GiveUp):
    """A defect, here or in the cluster."""


_BY_CODE: dict[int, type[HeadgateError]] = {
    wire.CODE_UNAVAILABLE: UnavailableError,
    wire.CODE_OVERLOADED: OverloadedError,
    wire.CODE_INVALID_ARGUMENT: InvalidArgumentError,
    wire.CODE_SCHEMA: SchemaError,
    wire.CODE_TOO_LARGE: TooLargeError,
    wire.CODE_TABLE_NOT_FOUND: TableNotFoundError,
    wire.CODE_TABLE_EXISTS: TableExistsError,
    wire.CODE_CHANNEL_TAKEN_OVER: ChannelTakenOverError,
    wire.CODE_CHANNEL_FORBIDDEN: ChannelForbiddenError,
    wire.CODE_UNAUTHENTICATED: UnauthenticatedError,
    wire.CODE_TABLE_QUARANTINED: TableQuarantinedError,
    wire.CODE_INTERNAL: InternalError,
}
_BY_ACTION: dict[int, type[HeadgateError]] = {
    wire.ACTION_RETRY: RetryLater,
    wire.ACTION_RESUME: Resume,
    wire.ACTION_FIX_CALL: FixCall,
    wire.ACTION_GIVE_UP: GiveUp,
}


def from_wire(error: wire.Error) -> HeadgateError:
    """A server's error as the caller sees it: by its code, or by its action when the code is newer than this SDK."""
    kind = _BY_CODE.get(error.code) or _BY_ACTION.get(error.action, InternalError)
    message = error.message or f"The server answered {code_name(error)}"
    return kind(message, fix=error.fix or "Look into the server's log.")


def code_name(error: wire.Error) -> str:
    """``NULL_KEY`` for CODE_NULL_KEY; a number for a code that is newer than this SDK."""
    descriptor = wire.Code.DESCRIPTOR.values_by_number.get(error.code)
    return descriptor.name.removeprefix("CODE_") if descriptor else str(error.code)
