"""Sets up logging: structlog and the libraries' own records through one chain, scrubbed just before it is printed.

Whoever logs writes ``log = structlog.get_logger()`` and an event in snake_case and past tense; ids go in keys, bound at
the borders with ``structlog.contextvars.bound_contextvars``. Nothing is printed that ``bot.redaction`` has not seen.
"""

import contextlib
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

from bot.redaction import WITHHELD, RedactingProcessor, Redactor

_CHATTY = (
    *("aiohttp", "aiosqlite", "alembic", "apscheduler", "asyncio", "discord", "github", "httpcore", "httpx"),
    *("slack_bolt", "slack_sdk", "sqlalchemy", "urllib3", "uvicorn", "wandb"),
)
# What these log of a store is in the error that they raise too, and that is told as what could not be read.
_ECHOES = ("gcsfs", "s3fs", "fsspec", "aiobotocore", "botocore", "google")
# Newlines and tabs lay out tracebacks; everything else that moves a cursor or cannot be encoded is spelled out.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def configure_logs(*, level: str, redactor: Redactor, json: bool | None = None, stream: TextIO | None = None) -> None:
    """Route every log line of the process to ``stream``, scrubbed; may be called again with other settings.

    Args:
        level: the least severe level that is printed, e.g. ``info``; libraries print warnings at least.
        redactor: knows the secrets of the settings.
        json: one JSON object a line, or text for people; None means text on a terminal and JSON elsewhere.
        stream: where to print; standard error by default.

    Raises:
        ValueError: there is no such level.
    """
    number = logging.getLevelNamesMapping().get(level.strip().upper())
    if number is None:
        raise ValueError(f"log level {level!r} is unknown; use debug, info, warning, error or critical")
    output = sys.stderr if stream is None else stream
    as_json = not output.isatty() if json is None else json
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    handler = _Handler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Plain tracebacks: those with local variables would print what the code holds in its hands.
                structlog.processors.format_exc_info,
                RedactingProcessor(redactor),
                *_renderers(as_json=as_json, colors=output.isatty()),
            ],
        )
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    _take_over(handler, number)


class _Handler(logging.StreamHandler[TextIO]):
    """Prints one line a record; a record that cannot be printed is withheld, not dumped with its arguments."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- the standard library's name
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(f"{WITHHELD} ({record.levelname})\n")


def _take_over(handler: logging.Handler, level: int) -> None:
    """Make ``handler`` the only way out, for loggers that libraries have equipped with their own as well."""
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in (*_CHATTY, *_ECHOES):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL if name in _ECHOES else max(level, logging.WARNING))
        logger.handlers.clear()
        logger.propagate = True


def _renderers(*, as_json: bool, colors: bool) -> tuple[Processor, ...]:
    if as_json:
        return (structlog.processors.JSONRenderer(),)
    plain = structlog.dev.plain_traceback
    return (_printable, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain))


def _printable(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Keep foreign text from steering the terminal."""
    return {key: _spelled(value) if isinstance(value, str) else value for key, value in event.items()}


def _spelled(text: str) -> str:
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)
