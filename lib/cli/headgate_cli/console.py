"""rich's console, imported by commands that print tables alone: it takes a tenth of a second."""

from typing import Never

from rich.console import Console


class PipedConsole(Console):
    """One whose reader may have enough (head, less): rich would end the program with 1."""

    def on_broken_pipe(self) -> Never:
        """Leaves it to ``headgate_cli.main``."""
        raise BrokenPipeError
