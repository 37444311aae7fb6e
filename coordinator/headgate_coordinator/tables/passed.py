"""Writers follow a later epoch than that of a table's owner (rule R6)."""

from headgate_tables.errors import ReopenTable


class EpochPassedError(ReopenTable):
    """This process owns the table, and writers ignore it. ``followed``: the epoch above which the table is fenced next."""

    def __init__(self, epoch: int, followed: int) -> None:
        super().__init__(
            f"writers have followed epoch {followed} of the table, but its commit log is at {epoch}: the table's folder was "
            "replaced by an older copy",
            fix="The table is opened again by itself, above that epoch. Rows that were committed after the copy are not in it.",
        )
        self.followed = followed
