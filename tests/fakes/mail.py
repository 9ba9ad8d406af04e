"""A real mail server of a test's own: aiosmtpd, with STARTTLS and AUTH, that can be told how to misbehave."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "hero", "correct horse"


class MailServer:
    """What it took, and what it answers; a status of its own is given by setting the attribute of that command."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.taken: list[EmailMessage] = []
        self.envelopes: list[tuple[str, tuple[str, ...]]] = []
        self.secure: list[bool] = []
        self.mail_status = ""
        self.rcpt_statuses: dict[str, str] = {}
        self.data_status = ""
        self.drops_after_data = False
        self.hangs_after_data = False
        self.takes_before_it_drops = True

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.mail_status:
            return self.mail_status
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if status := self.rcpt_statuses.get(address):
            return status
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        if self.data_status:
            return self.data_status
        if not self.drops_after_data or self.takes_before_it_drops:
            content = envelope.content
            assert isinstance(content, bytes)
            message = BytesParser(policy=default).parsebytes(content)
            assert isinstance(message, EmailMessage)
            self.taken.append(message)
            self.envelopes.append((envelope.mail_from or "", tuple(envelope.rcpt_tos)))
            self.secure.append(session.ssl is not None)
        if self.drops_after_data:
            _drop(server)
        if self.hangs_after_data:
            await asyncio.Event().wait()
        return "250 taken"


def _drop(protocol: SMTP) -> None:
    """Break the connection without a word."""
    if isinstance(protocol.transport, asyncio.WriteTransport):
        protocol.transport.abort()


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    assert isinstance(data, LoginPassword)
    is_right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=False)


@asynccontextmanager
async def mail_server(
    context: ssl.SSLContext | None = None, *, is_tls: bool = False, wants_login: bool = False
) -> AsyncIterator[MailServer]:
    """Serve on a free port of 127.0.0.1: STARTTLS when there is a context, TLS from the start with ``is_tls``."""
    handler = MailServer(0)
    protocols: list[SMTP] = []

    def make() -> SMTP:
        protocol = SMTP(
            handler,
            hostname="mail.test",
            tls_context=None if is_tls else context,
            require_starttls=context is not None and not is_tls,
            auth_required=wants_login,
            auth_require_tls=False if is_tls else wants_login,
            authenticator=_authenticate if wants_login else None,
            loop=asyncio.get_running_loop(),
        )
        protocols.append(protocol)
        return protocol

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, ssl=context if is_tls else None)
    handler.port = server.sockets[0].getsockname()[1]
    try:
        yield handler
    finally:
        server.close()
        for protocol in protocols:
            _drop(protocol)
        await server.wait_closed()
        await asyncio.sleep(0)
