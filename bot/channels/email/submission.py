"""One mail to one mail server, a command at a time, so that it is known how far it got when it fails.

Up to DATA nothing has been sent, and it is safe to begin again. From DATA on no answer means that nobody knows: the
server may have taken the mail.
"""

import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiosmtplib
from aiosmtplib import SMTP

from bot.model.value import Value
from bot.settings import EmailSettings

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_PERMANENT = 500
_GOODBYE_S = 2.0


class Refused(Value):
    """An address that the server did not take."""

    address: str
    code: int
    said: str

    @property
    def is_permanent(self) -> bool:
        return self.code >= _PERMANENT


class SubmissionError(Exception):
    """A mail was not taken, or nobody knows whether it was.

    Args:
        reason: what happened, without a secret.
        stage: where: ``connect``, ``tls``, ``login``, ``sender``, ``recipients`` or ``data``.
        code: the server's answer; 0 when there was none.
        is_uncertain: whether the server may have taken it.
    """

    def __init__(self, reason: str, *, stage: str, code: int = 0, is_uncertain: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.stage = stage
        self.code = code
        self.is_uncertain = is_uncertain

    @property
    def is_permanent(self) -> bool:
        return self.code >= _PERMANENT


@asynccontextmanager
async def connected(settings: EmailSettings) -> AsyncIterator[SMTP]:
    """Hand out a connection that is encrypted as the settings demand, and logged in.

    Raises:
        SubmissionError: stage ``connect``, ``tls`` or ``login``.
    """
    context = _trust(settings)
    timeout_s = settings.deadline.total_seconds()
    client = SMTP(
        hostname=settings.host,
        port=settings.port,
        use_tls=settings.security == "tls",
        start_tls=False,
        tls_context=context,
        timeout=timeout_s,
        local_hostname=_own_name(),
    )
    try:
        try:
            await client.connect()
            await client.ehlo()
        except ssl.SSLError as error:
            raise _untrusted(error) from error
        except aiosmtplib.SMTPResponseException as error:
            raise _answered(error, "connect") from error
        except aiosmtplib.SMTPException as error:
            if isinstance(error.__cause__, ssl.SSLError):
                raise _untrusted(error.__cause__) from error
            raise SubmissionError(f"no connection: {_say(error)}", stage="connect") from error
        if settings.security == "starttls":
            await _encrypt(client, context)
        if settings.username is not None and settings.password is not None:
            await _log_in(client, settings.username, settings.password.get_secret_value())
        yield client
    finally:
        client.close()


async def submit(
    client: SMTP, message: bytes, *, sender: str, recipients: tuple[str, ...], waits_for_all: bool = True
) -> tuple[Refused, ...]:
    """Send one mail; return the addresses that were not taken, while at least one was.

    Args:
        client: connected.
        message: with all of its headers.
        sender: of the envelope.
        recipients: of the envelope.
        waits_for_all: whether it is not sent at all while one address is put off (a 4xx, as by greylisting): sent once
            more for that one, it would come twice to the others.

    Raises:
        SubmissionError: stage ``sender``, ``recipients`` or ``data``.
    """
    try:
        await client.mail(sender)
    except aiosmtplib.SMTPResponseException as error:
        raise _answered(error, "sender") from error
    except aiosmtplib.SMTPException as error:
        raise SubmissionError(f"the connection was lost: {_say(error)}", stage="sender") from error
    refused = [each for address in recipients if (each := await _refused(client, address)) is not None]
    for each in refused:
        if (waits_for_all and not each.is_permanent) or len(refused) == len(recipients):
            raise SubmissionError(f"{each.address}: {each.code} {each.said}", stage="recipients", code=each.code)
    try:
        await client.data(message)
    except aiosmtplib.SMTPResponseException as error:
        raise _answered(error, "data") from error
    except aiosmtplib.SMTPException as error:
        raise SubmissionError(f"no answer after DATA: {_say(error)}", stage="data", is_uncertain=True) from error
    return tuple(refused)


async def quit_politely(client: SMTP) -> None:
    """Say goodbye; what was taken is taken, whatever comes of this."""
    try:
        await client.quit(timeout=_GOODBYE_S)
    except aiosmtplib.SMTPException:
        return


async def _refused(client: SMTP, address: str) -> Refused | None:
    try:
        await client.rcpt(address)
    except aiosmtplib.SMTPResponseException as error:
        return Refused(address=address, code=error.code, said=_words(error))
    except aiosmtplib.SMTPException as error:
        raise SubmissionError(f"the connection was lost: {_say(error)}", stage="recipients") from error
    return None


async def _encrypt(client: SMTP, context: ssl.SSLContext | None) -> None:
    if not client.supports_extension("starttls"):
        raise SubmissionError("the server offers no STARTTLS", stage="tls")
    try:
        await client.starttls(tls_context=context)
        await client.ehlo()
    except ssl.SSLError as error:
        raise _untrusted(error) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        if isinstance(error.__cause__, ssl.SSLError):
            raise _untrusted(error.__cause__) from error
        raise SubmissionError(f"STARTTLS failed: {_say(error)}", stage="tls") from error


async def _log_in(client: SMTP, username: str, password: str) -> None:
    if not client.supports_extension("auth"):
        raise SubmissionError("the server offers no login over this connection", stage="login")
    try:
        await client.login(username, password)
    except aiosmtplib.SMTPResponseException as error:
        # Only the code: some servers repeat what was sent to them.
        raise SubmissionError(f"the login was refused ({error.code})", stage="login", code=error.code) from None
    except aiosmtplib.SMTPException as error:
        raise SubmissionError(f"the login failed: {type(error).__name__}", stage="login") from None


def _trust(settings: EmailSettings) -> ssl.SSLContext | None:
    if settings.security == "none":
        return None
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SubmissionError(f"[email] ca_file cannot be used: {error}", stage="tls") from error


def _untrusted(error: ssl.SSLError) -> SubmissionError:
    reason = getattr(error, "verify_message", "") or error.reason or type(error).__name__
    return SubmissionError(f"the encryption failed: {reason}", stage="tls")


def _answered(error: aiosmtplib.SMTPResponseException, stage: str) -> SubmissionError:
    return SubmissionError(f"the server answered {error.code} {_words(error)}", stage=stage, code=error.code)


def _words(error: aiosmtplib.SMTPResponseException) -> str:
    return " ".join(str(error.message).split())[:300]


def _say(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _own_name() -> str:
    """Return what Hero calls itself in EHLO; the machine's name, without asking DNS for a longer one."""
    name = socket.gethostname()
    return name if _HOST.fullmatch(name) else "localhost"
