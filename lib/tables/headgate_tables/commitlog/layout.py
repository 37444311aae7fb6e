"""Where a table's commit log lies. The format hands it in: the log knows no format."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLayout:
    """``root``: the folder that the format keeps beside the data, from the table's root. It exists as long as the table does.

    It holds the timeline, which says what data counts, so its files are deleted one by one, in order. The log lies in it, too.
    """

    root: str

    @property
    def folder(self) -> str:
        """The log's own folder."""
        return f"{self.root}/.headgate"

    @property
    def slots(self) -> str:
        """The folder of slots."""
        return f"{self.folder}/slot"

    @property
    def folds(self) -> str:
        """The folder of folds."""
        return f"{self.folder}/fold"

    @property
    def bounds(self) -> str:
        """The folder of boundaries (rule G2)."""
        return f"{self.folder}/bound"

    @property
    def stages(self) -> str:
        """The folder of stage folders, one an epoch (rule W2)."""
        return f"{self.folder}/stage"

    @property
    def probes(self) -> str:
        """The folder in which a store is probed before the log begins."""
        return f"{self.folder}/probe"

    @property
    def tombstone(self) -> str:
        """What is left of a dropped table (rule D6). It lies outside of the root, so that a local folder loses all of that."""
        return ".headgate-dropped"

    @property
    def removed_root(self) -> str:
        """What ``root`` is called while the end of a drop deletes it (rule D6)."""
        return f"{self.root}.dropped"

    @property
    def removed_folder(self) -> str:
        """The log's folder in ``removed_root``."""
        return f"{self.removed_root}{self.folder.removeprefix(self.root)}"

    def slot_path(self, n: int) -> str:
        """Where slot ``n`` lies, from the table's root."""
        return f"{self.slots}/{number_name(n)}"

    def stage_folder(self, epoch: int, process: str) -> str:
        """Where a process of this epoch puts data files until their slot is won (rule W2); ``process`` is its random id."""
        return f"{self.stages}/{epoch}/{process}"

    def is_data(self, path: str) -> bool:
        """Whether the file is data, and not one of the format's own."""
        return not path.startswith(f"{self.root}/")


_DIGITS = 20


def number_name(n: int) -> str:
    """Slots, folds and boundaries are named by 20 digits, so that names sort as numbers do."""
    return f"{n:0{_DIGITS}d}"


def is_number(name: str) -> bool:
    """Whether a slot, fold or boundary has this name; a file of any other name is none."""
    return len(name) == _DIGITS and name.isascii() and name.isdigit()
