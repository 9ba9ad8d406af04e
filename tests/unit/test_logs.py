"""What is printed of a log line, and what never is."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from bot.logs import _CHATTY, _ECHOES, configure_logs
from bot.redaction import WITHHELD, Redactor

SECRETS = {
    "slack.bot_token": "xoxb-1111-2222-abcdef",
    "slack.app_token": "xapp-1-A0-33-ffff",
    "slack.signing_secret": "8f742231b10e8888abcd99yyyzzz85a5",
    "discord.token": "discord-made-up-token-value",
    "github.token": "ghp_madeupmadeupmadeupmadeup",
    "github.webhook_secret": 'w3bh00k with spaces & "quotes"',
    "github.private_key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEmadeupmadeupmadeup\n-----END RSA PRIVATE KEY-----",
    "wandb.api_key": "0123456789abcdef0123456789abcdef01234567",
    "email.password": "m4il/p@ss",
    "heartbeat.url": "https://heartbeat.example.org/ping/6b1f-secret-path",
}


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers = root.handlers[:]
    levels = {logger: logger.level for logger in (root, *(logging.getLogger(name) for name in (*_CHATTY, *_ECHOES)))}
    yield
    root.handlers[:] = handlers
    for logger, level in levels.items():
        logger.setLevel(level)
    structlog.reset_defaults()


def _configured(*, json: bool = True, level: str = "info", redactor: Redactor | None = None) -> io.StringIO:
    stream = io.StringIO()
    configure_logs(json=json, level=level, redactor=redactor or Redactor(SECRETS.values()), stream=stream)
    return stream


def _only_line(stream: io.StringIO) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(stream.getvalue())
    return line


def test_a_line_is_one_json_object_with_level_time_and_keys() -> None:
    stream = _configured()

    with structlog.contextvars.bound_contextvars(run_id="hero-12d8b6f0"):
        structlog.get_logger("bot.outbox").info("delivery_sent", attempt=2)

    line = _only_line(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "delivery_sent",
        "level": "info",
        "logger": "bot.outbox",
        "run_id": "hero-12d8b6f0",
        "attempt": 2,
    }


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_of_the_settings_is_printed(name: str, as_json: bool) -> None:
    secret = SECRETS[name]
    stream = _configured(json=as_json)
    log = structlog.get_logger()

    log.warning(
        "request_refused", url=f"https://h/?q={secret}", nested={"a": [secret, {"b": secret}]}, held=ValueError(secret)
    )
    log.error("send_failed", exc_info=RuntimeError(f"refused {secret}"), body=json.dumps({"x": secret}))
    logging.getLogger("some.library").error("sent %s", secret, extra={"headers": secret})

    printed = stream.getvalue()
    assert printed.count("[redacted]") >= 6
    for part in (secret, json.dumps(secret)[1:-1], secret.splitlines()[len(secret.splitlines()) // 2]):
        assert part not in printed


def test_a_traceback_is_printed_without_local_variables() -> None:
    stream = _configured()

    def _fails(held_in_hand: str) -> None:
        raise RuntimeError(f"no answer after {len(held_in_hand)} tries")

    try:
        _fails("local value")
    except RuntimeError:
        structlog.get_logger().exception("send_failed")

    shown = _only_line(stream)["exception"]
    assert "in _fails" in shown
    assert shown.endswith("RuntimeError: no answer after 11 tries")
    assert "local value" not in shown.replace('_fails("local value")', "")


def test_library_records_pass_the_same_chain_and_chatty_ones_only_warn() -> None:
    stream = _configured(level="debug")

    logging.getLogger("slack_sdk.web").info("token=x1")
    logging.getLogger("github.Requester").debug("token=x1")
    logging.getLogger("apscheduler.scheduler").info("token=x1")
    logging.getLogger("some.library").debug("opened token=%s", "x1")

    line = _only_line(stream)
    assert line["event"] == "opened token=[redacted]"
    assert line["logger"] == "some.library"


def test_a_level_silences_what_is_below_it_in_libraries_too() -> None:
    stream = _configured(level="error")

    structlog.get_logger().warning("source_slow")
    logging.getLogger("slack_sdk").warning("slow")

    assert stream.getvalue() == ""


def test_configuring_again_replaces_the_stream() -> None:
    first, second = _configured(), _configured()

    structlog.get_logger().info("started")

    assert first.getvalue() == ""
    assert second.getvalue().count("started") == 1


def test_an_unknown_level_is_refused_with_the_fix() -> None:
    with pytest.raises(ValueError, match=r"log level 'loud' is unknown; use debug, info"):
        configure_logs(json=True, level="loud", redactor=Redactor())


def test_a_line_that_cannot_be_scanned_is_withheld() -> None:
    class _Broken(Redactor):
        def value(self, value: Any) -> Any:
            raise MemoryError(value)

    stream = _configured(redactor=_Broken())

    structlog.get_logger().error("send_failed", body="token=x1")

    assert _only_line(stream) == {"event": WITHHELD, "level": "error"}


def test_a_library_record_that_cannot_be_formatted_does_not_dump_its_arguments() -> None:
    stream = _configured()

    logging.getLogger("some.library").error("%d tries", "token x1")

    assert stream.getvalue() == f"{WITHHELD} (ERROR)\n"


def test_foreign_text_cannot_steer_the_terminal() -> None:
    stream = _configured(json=False)

    structlog.get_logger().info("line_seen", text="\x1b[2Jgone\u202e \ud800")

    printed = stream.getvalue()
    assert "\\x1b[2Jgone\\u202e \\ud800" in printed.replace("\\\\", "\\")
    assert "\x1b" not in printed


def test_json_is_the_default_where_no_terminal_is() -> None:
    stream = io.StringIO()

    configure_logs(level="info", redactor=Redactor(), stream=stream)
    structlog.get_logger().info("started")

    assert _only_line(stream)["event"] == "started"


@pytest.mark.parametrize("level", ["debug", "error"])
def test_what_a_store_logs_beside_the_error_that_it_raises_is_not_printed(level: str) -> None:
    stream = _configured(level=level)

    for name in ("gcsfs", "botocore.hooks"):
        logging.getLogger(name).error("out of retries", exc_info=OSError("no route to storage.googleapis.com"))

    assert not stream.getvalue()
