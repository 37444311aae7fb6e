"""Every error that the SDK raises on purpose, sorted by what the caller can do next.

HeadgateError
├── RetryLater                   the same call may succeed later; buffered rows are kept and still being sent
│   ├── UnavailableError             no coordinator, writer or owner of the table answered in time
│   ├── OverloadedError              a limit is reached: memory, or log files that wait for compaction
│   └── NotCommittedError            the timeout passed first; ``offset``, ``level`` and ``acks`` say what is missing
├── Resume                       this channel object is finished; open the channel again, resume above its committed offset
│   └── TableRestoredError           a restore undid rows that this producer saw committed
├── FixCall                      the call is wrong and stays wrong; rows buffered before it are unaffected
│   ├── RowError                     a row does not fit the table; ``row`` and ``column`` say where
│   ├── SchemaError                  a column is missing, unknown or of another type
│   ├── BatchRefusedError            a writer refused a batch and the channel is stopped: correct or skip the batch
│   │   └── SliceSetAsideError           some rows belong to a file slice that takes none for now: send the others alone
│   ├── InvalidArgumentError         an argument is out of range or contradicts another
│   ├── TooLargeError                one row or batch exceeds the limit of a message
│   ├── QuotaError                   a quota of the principal is used up; the message names it
│   ├── TableNotFoundError
│   │   ├── TableDroppedError            there was one; the message says when it was dropped, and by whom
│   │   └── TableRenamedError            it has another name now, which the message says
│   ├── RangeGoneError               the past that a scan asks for was cleaned away; the message names what is left
│   ├── TableExistsError
│   ├── InsideCallError              a signal's handler made it, in the middle of another call of its thread
│   └── ClosedError                  the connection or channel is closed
└── GiveUp                       something outside the program has to change first
    ├── ChannelTakenOverError        a newer producer opened this channel; never retried
    ├── ChannelForbiddenError        the channel belongs to another principal
    ├── UnauthenticatedError         no token, or one that is not known, has expired or was revoked
    ├── PermissionDeniedError        the token's principal lacks a right on the table; the message names it
    ├── VersionError                 SDK and server are more than one version apart; the message says which to upgrade
    ├── MissingExtraError            a package is not installed; the message has the line for pip
    ├── UnreadableTableError         files of the table are damaged or gone, or of a kind that is not read here
    ├── TableQuarantinedError        another program wrote to the table
    ├── ProtocolViolationError       a server's answer contradicts what was sent; the channel ignored it and stopped
    ├── UnknownOutcomeError          a call that must not be made twice broke off: check whether it was carried out
    └── InternalError                a defect, here or in the cluster
"""

from typing import TYPE_CHECKING

from headgate_proto.api.v1 import errors_pb2 as wire

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.acks import Acks, Level


class HeadgateError(Exception):
    """Base of all. ``fix`` is the next step for a person; ``str()`` joins message and fix."""

    def __init__(self, message: str, *, fix: str) -> None:
        super().__init__(message, fix)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message.rstrip('.')}. {self.fix}"


class RetryLater(HeadgateError):
    """The same call may succeed later; rows that the channel has buffered are kept and still being sent."""


class UnavailableError(RetryLater):
    """No coordinator, writer or owner of the table answered in time."""


class OverloadedError(RetryLater):
    """A limit is reached: a writer's memory, or the log files that wait for compaction."""


class NotCommittedError(RetryLater):
    """The timeout passed before the rows up to ``offset`` reached ``level``; ``acks`` says how far they came.

    ``level`` is None when the call waited for buffer space, not for a commit.
    """

    def __init__(self, message: str, *, fix: str, offset: int, level: "Level | None", acks: "Acks") -> None:
        super().__init__(message, fix=fix)
        self.offset = offset
        self.level = level
        self.acks = acks


class Resume(HeadgateError):
    """This channel object is finished; open the channel again and send the rows that follow its ``committed_offset``."""


class TableRestoredError(Resume):
    """A restore took the channel back to ``committed_offset``, undoing rows that this producer saw committed (rule CH8)."""

    def __init__(self, message: str, *, fix: str, committed_offset: int) -> None:
        super().__init__(message, fix=fix)
        self.committed_offset = committed_offset


class FixCall(HeadgateError):
    """The call is wrong and stays wrong; rows buffered before it are unaffected."""


class RowError(FixCall):
    """A row does not fit the table. ``row`` counts from 0 in the call's rows; ``column`` is a name."""

    def __init__(self, message: str, *, fix: str, row: int, column: str) -> None:
        super().__init__(message, fix=fix)
        self.row = row
        self.column = column


class SchemaError(FixCall):
    """A column is missing, unknown, or of a different type than the table's."""


class BatchRefusedError(FixCall):
    """A writer refused a batch, and the channel is stopped until the batch is corrected or skipped (rule CH2).

    ``reason`` is the error code without its prefix (``"NULL_KEY"``), ``rows`` are the refused rows, ``offset`` is the offset of
    the last of them and ``after`` the offset before the first. Rows appended later stay buffered and follow then::

        try:
            ch.flush()
        except headgate.BatchRefusedError as refused:
            ch.upsert(corrected(refused.rows), offset=refused.offset)  # replaces the batch
            # or: ch.skip()                                            # discards it
    """

    def __init__(self, message: str, *, fix: str, reason: str, after: int, offset: int, rows: "pa.RecordBatch") -> None:
        super().__init__(message, fix=fix)
        self.reason = reason
        self.after = after
        self.offset = offset
        self.rows = rows


class SliceSetAsideError(BatchRefusedError):
    """Some rows of the batch belong to a file slice that an operator set aside, or that is full and cannot be compacted.

    ``set_aside`` holds those rows, ``others`` the rest of the batch in its order. Send ``others`` in the batch's place::

        try:
            ch.flush()
        except headgate.SliceSetAsideError as refused:
            save_for_later(refused.set_aside)
            if refused.others.num_rows:
                ch.upsert(refused.others, offset=refused.offset)
            else:
                ch.skip()

    The slice refuses later rows of the same keys too. Rows that are kept stay in order if sent in order once it takes rows again.
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
        set_aside: "pa.RecordBatch",
        others: "pa.RecordBatch",
    ) -> None:
        super().__init__(message, fix=fix, reason=reason, after=after, offset=offset, rows=rows)
        self.set_aside = set_aside
        self.others = others


class InvalidArgumentError(FixCall):
    """An argument is out of range or contradicts another."""


class TooLargeError(FixCall):
    """One row, or a batch with an offset of its own, exceeds the limit of a message."""


class QuotaError(FixCall):
    """A quota of the principal is used up; the message names it."""


class TableNotFoundError(FixCall):
    """The cluster has no table of this name."""


class TableDroppedError(TableNotFoundError):
    """The table was dropped; the message says when, and by whom. Its rows are gone; a new table of its name is another one."""


class TableRenamedError(TableNotFoundError):
    """The table has another name now, which the message says. Open its channels by the new name; they go on at their offsets."""


class RangeGoneError(FixCall):
    """The past that a scan asks for was archived or cleaned away; the message names the oldest point that is left."""


class TableExistsError(FixCall):
    """A table of this name exists; with ``exist_ok``, one with another definition."""


class InsideCallError(FixCall):
    """A signal's handler made the call in the middle of another one of its thread, which it would wait for without end."""


class ClosedError(FixCall):
    """The connection or channel is closed."""


class GiveUp(HeadgateError):
    """Something outside the program has to change first."""


class ChannelTakenOverError(GiveUp):
    """A newer producer opened this channel (rule CH4). Never retried: two producers would fence each other forever."""


class ChannelForbiddenError(GiveUp):
    """The channel belongs to another principal (rule CH5)."""


class UnauthenticatedError(GiveUp):
    """No token, or one that is not known, has expired or was revoked."""


class PermissionDeniedError(GiveUp):
    """The token's principal lacks the right to do this to this table; the message names the right."""


class VersionError(GiveUp):
    """This SDK and the server are more than one version apart; the message says which of them to upgrade."""


class MissingExtraError(GiveUp):
    """A package that reading needs is not installed; ``fix`` is the line for pip."""


class UnreadableTableError(GiveUp):
    """Files of the table are damaged, gone, or of a kind that is not read here."""


class TableQuarantinedError(GiveUp):
    """Another program wrote to the table; it takes no rows until an operator adopts those changes."""


class ProtocolViolationError(GiveUp):
    """A server's answer contradicts what was sent. The channel ignores the answer and stops."""


class UnknownOutcomeError(GiveUp):
    """A call that must not be made twice broke off without an answer. Check whether it was carried out."""


class InternalError(GiveUp):
    """A defect, here or in the cluster."""


_BY_CODE: dict[int, type[HeadgateError]] = {
    wire.CODE_UNAVAILABLE: UnavailableError,
    wire.CODE_OVERLOADED: OverloadedError,
    wire.CODE_INVALID_ARGUMENT: InvalidArgumentError,
    wire.CODE_SCHEMA: SchemaError,
    wire.CODE_TOO_LARGE: TooLargeError,
    wire.CODE_QUOTA: QuotaError,
    wire.CODE_TABLE_NOT_FOUND: TableNotFoundError,
    wire.CODE_TABLE_DROPPED: TableDroppedError,
    wire.CODE_TABLE_RENAMED: TableRenamedError,
    wire.CODE_TABLE_EXISTS: TableExistsError,
    wire.CODE_CHANNEL_TAKEN_OVER: ChannelTakenOverError,
    wire.CODE_CHANNEL_FORBIDDEN: ChannelForbiddenError,
    wire.CODE_UNAUTHENTICATED: UnauthenticatedError,
    wire.CODE_PERMISSION_DENIED: PermissionDeniedError,
    wire.CODE_TABLE_QUARANTINED: TableQuarantinedError,
    wire.CODE_INTERNAL: InternalError,
    wire.CODE_VERSION: VersionError,
}
_BY_ACTION: dict[int, type[HeadgateError]] = {
    wire.ACTION_RETRY: RetryLater,
    wire.ACTION_RESUME: Resume,
    wire.ACTION_FIX_CALL: FixCall,
    wire.ACTION_GIVE_UP: GiveUp,
}


def connection_closed() -> ClosedError:
    """The error of calls to a closed connection."""
    return ClosedError("the connection is closed", fix="Connect again.")


def from_wire(error: wire.Error) -> HeadgateError:
    """The exception for a server's error: by its code, or by its action when the code is newer than this SDK."""
    kind = _BY_CODE.get(error.code) or _BY_ACTION.get(error.action, InternalError)
    message = error.message or f"The server answered {code_name(error)}"
    return kind(message, fix=error.fix or "Read the server's log.")


def code_name(error: wire.Error) -> str:
    """``NULL_KEY`` for CODE_NULL_KEY; a number for a code that is newer than this SDK."""
    descriptor = wire.Code.DESCRIPTOR.values_by_number.get(error.code)
    return descriptor.name.removeprefix("CODE_") if descriptor else str(error.code)
