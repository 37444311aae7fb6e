"""Structured logs on stderr: text for people, or one JSON object per line. stdout is for the ready line."""

import logging
import sys

from headgate_runtime import plain_structlog  # isort: skip  # noqa: F401 - before structlog
import structlog
from structlog.typing import EventDict, Processor

from headgate_runtime.settings import ServiceSettings

get_logger = structlog.get_logger

_NO_LOCALS = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
"""By default structlog prints the variables of every frame, and some of them are rows and tokens."""


def configure(settings: ServiceSettings) -> None:
    """Configures the logs of the process. Call it once, at the start. Logs of libraries that use ``logging`` look the same."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendered: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if settings.log_format == "json":
        rendered += [structlog.processors.ExceptionRenderer(_NO_LOCALS), structlog.processors.JSONRenderer()]
    else:
        plain = structlog.dev.plain_traceback
        rendered += [_printable, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=rendered, foreign_pre_chain=shared))
    logging.basicConfig(handlers=[handler], level=settings.log_level.upper(), force=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _printable(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Escapes control characters: a channel's name must not move the cursor, or forge a line, on the operator's terminal."""
    return {key: _escaped(value) if isinstance(value, str) else value for key, value in event.items()}


def _escaped(text: str) -> str:
    return text if text.isprintable() else text.encode("unicode_escape").decode()
