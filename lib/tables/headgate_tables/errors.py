"""Every error that this library raises on purpose, sorted by what the caller can do next.

TablesError
├── RetryLater               the same call may succeed later; nothing of it was done
│   ├── StoreUnavailableError    the store did not answer, or answered that it is busy
│   ├── StoreDeniedError         the store is read-only, or gives no permission
│   ├── StoreFullError           no space or quota left
│   └── ClockError               the wall clock is more than 5 s behind the table's own times
├── ReopenTable              this handle is finished; open the table again and see what is there
│   ├── DeposedError             another process took the table over
│   ├── TableGoneError           the table's folder was moved or removed; nothing is made in its place
│   ├── OutcomeUnknownError      the store never said whether the commit was accepted
│   └── SyncFailedError          the disk refused to make data durable; never tried twice
├── FixCall                  the arguments are wrong; what was committed before is untouched
│   ├── SchemaError              a column is missing, unknown or of another type
│   │   └── UnsupportedTypeError     an Arrow type that has no place in a Hudi table, or not as a key
│   ├── NullKeyError             a record key column holds null, or an empty key
│   ├── NullOrderingError        the ordering column holds null
│   ├── PartitionValueError      a partition value cannot be a folder name
│   ├── OptionError              an argument is out of its range or contradicts another
│   ├── RangeGoneError           the past that is asked for was archived or cleaned away
│   ├── NotATableError           no Hudi table at this place
│   │   ├── TableDroppedError        there was one; the message says when it was dropped, and by whom
│   │   │   └── TableInGraceError    it can be brought back; the message says how, and until when
│   │   └── TableRenamedError        it has another name now, which the message says
│   ├── TableExistsError         there is a table already
│   │   └── OtherDefinitionError     with another definition than is asked for
│   └── TransactionError         commit out of order, or use after its end
└── OperatorNeeded           something outside the program has to change first
    ├── UnsupportedTableError    newer than we know, or with a feature that we do not write or read
    │   └── MetadataTableError       a metadata table appeared that would not see our files
    ├── TableOwnedError          a cluster owns the table
    ├── ForeignWriterError       another program wrote to the table; it is read-only for us
    ├── CorruptFileError         bytes are damaged, truncated or not what their name says
    ├── MissingFileError         a file that the timeline or a slot names is gone
    └── UnsafeStoreError         the store ignores conditional writes
"""

MOST_CHARACTERS = 2_000
"""Of a message. What it quotes may come from a damaged file, or from a stranger, and be of any length."""


class TablesError(Exception):
    """Base of all. ``fix`` is the next step for a person; ``str()`` holds the message and the fix."""

    def __init__(self, message: str, *, fix: str) -> None:
        if len(message) > MOST_CHARACTERS:
            message = f"{message[: MOST_CHARACTERS // 2]} […] {message[-MOST_CHARACTERS // 2 :]}"
        super().__init__(message, fix)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}. {self.fix}"


class RetryLater(TablesError):
    """The same call may succeed later; nothing of it was done."""


class StoreUnavailableError(RetryLater):
    """The store did not answer, or answered that it is busy."""


class StoreDeniedError(RetryLater):
    """The store is read-only or gives no permission (EROFS, EACCES, EPERM; 4xx): tokens are renewed, disks remounted."""


class StoreFullError(RetryLater):
    """No space or quota left (ENOSPC, EDQUOT)."""


class ClockError(RetryLater):
    """The wall clock is more than 5 s behind the table's own times (rule TM3)."""


class ReopenTable(TablesError):
    """This handle is finished; open the table again and see what is there."""


class DeposedError(ReopenTable):
    """Another process took the table over (rule C4). What was returned as committed stays."""


class TableGoneError(ReopenTable):
    """The table's folder is not at its place: moved, removed, or its disk is not mounted. Nothing is made there."""


class OutcomeUnknownError(ReopenTable):
    """The store never said whether the commit was accepted. It may be there after reopening."""


class SyncFailedError(ReopenTable):
    """fsync failed: nobody knows what the disk holds, and a second fsync would succeed without the data (hazard H14)."""


class FixCall(TablesError):
    """The arguments are wrong; what was committed before is untouched."""


class SchemaError(FixCall):
    """A column is missing, unknown or of another type than the table's."""


class UnsupportedTypeError(SchemaError):
    """An Arrow type that has no place in a Hudi table, or not as record key, partition or ordering."""


class NullKeyError(FixCall):
    """A record key column holds null, or the whole key is empty."""


class NullOrderingError(FixCall):
    """The ordering column holds null (rule DE1: Spark could not read the table any more)."""


class PartitionValueError(FixCall):
    """A partition value cannot be a folder name: ``..``, NUL, empty, null or too long."""


class OptionError(FixCall):
    """An argument is out of its range or contradicts another."""


class RangeGoneError(FixCall):
    """The past that is asked for was archived or cleaned away; the message names the oldest point that can be read."""


class NotATableError(FixCall):
    """No Hudi table at this place."""


class TableDroppedError(NotATableError):
    """The table was dropped; the message says when, and by whom. Its files are deleted, or are being deleted (rule D5)."""


class TableInGraceError(TableDroppedError):
    """The table was dropped, and can still be brought back; the message says until when (rule D9)."""


class TableRenamedError(NotATableError):
    """The table has another name now; the message says which, and since when (rule D11)."""


class TableExistsError(FixCall):
    """There is a table already."""


class OtherDefinitionError(TableExistsError):
    """The table that is there has another definition than the one that is asked for; the message says what differs."""


class TransactionError(FixCall):
    """A commit out of instant order, a third transaction, or use after the end."""


class OperatorNeeded(TablesError):
    """Something outside the program has to change first."""


class UnsupportedTableError(OperatorNeeded):
    """The table is newer than we know, or has a feature that we do not write or read."""


class MetadataTableError(UnsupportedTableError):
    """A metadata table is there; readers that trust it would not see our files."""


class TableOwnedError(OperatorNeeded):
    """A cluster owns the table; the library fences it only with ``take_over=True``."""


class ForeignWriterError(OperatorNeeded):
    """Another program wrote to the table (rule F1); it is read-only for us until adopted."""


class CorruptFileError(OperatorNeeded):
    """Bytes are damaged, truncated or not what their name says."""


class MissingFileError(OperatorNeeded):
    """A file that the timeline or a slot names is gone."""


class UnsafeStoreError(OperatorNeeded):
    """The store ignores conditional writes, so two writers could both win."""
