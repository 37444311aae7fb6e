"""What the SDK logs while a command runs."""

import contextlib
import logging
from collections.abc import Iterator

from headgate_cli.output import Output
from headgate_cli.wording import for_command_line


@contextlib.contextmanager
def warnings_printed(output: Output) -> Iterator[None]:
    """Inside the block, warnings of the SDK are printed as those of the command, for people alone."""
    log, printing = logging.getLogger("headgate"), _Printing(output)
    log.addHandler(printing)
    try:
        yield
    finally:
        log.removeHandler(printing)


class _Printing(logging.Handler):
    def __init__(self, output: Output) -> None:
        super().__init__(logging.WARNING)
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        self._output.print_warning(for_command_line(record.getMessage()))
