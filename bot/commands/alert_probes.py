"""What the doctor asks of e-mail and of the pager, without sending anybody anything."""

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

from bot.commands.probing import Probe, bad, good
from bot.model.person import Person
from bot.settings import EmailSettings, PagerSettings

_PORTS = {"http": 80, "https": 443}
_PAGER_FIX = "correct HERO_PAGER__URL or url_file: https://HOST/PATH"


async def probe_email(settings: EmailSettings, people: tuple[Person, ...]) -> tuple[Probe, ...]:
    """Connect, encrypt and log in as for a mail, and leave; see that somebody would get it."""
    if settings.host is None:
        return (good("email", "not configured"),)
    # Its library is loaded only where mail is sent.
    from bot.channels.email.channel import FIXES  # noqa: PLC0415 - see above
    from bot.channels.email.submission import SubmissionError, connected, quit_politely  # noqa: PLC0415 - see above

    try:
        async with connected(settings) as client:
            await quit_politely(client)
    except SubmissionError as error:
        return (bad("email", f"{settings.host}:{settings.port}: {error.reason}", FIXES[error.stage]),)
    how = {"starttls": "encrypted by STARTTLS", "tls": "encrypted", "none": "not encrypted"}[settings.security]
    login = "logged in" if settings.username else "without a login"
    reached = good("email", f"{settings.host}:{settings.port} answers, {how}, {login}; nothing was sent")
    without = ", ".join(person.name for person in people if person.email is None)
    if without and not settings.to:
        fix = "set [email] to, or their `email` in [people.NAME]"
        return (reached, good("email recipients", f"{without} would get no mail", fix))
    return (reached,)


async def probe_pager(settings: PagerSettings) -> tuple[Probe, ...]:
    """See that the address can be one and is reached, with its certificate; nothing is posted, so nobody is woken."""
    if settings.address is None:
        return (good("pager", "not configured"),)
    host, port, is_encrypted = _where(settings.address)
    if not host:
        return (bad("pager", "its address is no http(s) address", _PAGER_FIX),)
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=is_encrypted or None)
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason
        return (bad("pager", f"{host}:{port}: its certificate is not trusted: {reason}", _PAGER_FIX),)
    except OSError as error:
        detail = f"{host}:{port}: not reached ({type(error).__name__})"
        return (bad("pager", detail, "see that it can be reached from here"),)
    writer.close()
    with contextlib.suppress(OSError):  # how it takes leave is its own affair
        await writer.wait_closed()
    if is_encrypted:
        return (good("pager", f"{host}:{port} is reached, encrypted; nothing was posted"),)
    return (good("pager", f"{host}:{port} is reached, not encrypted; nothing was posted", "use an https address"),)


def _where(address: str) -> tuple[str, int, bool]:
    """Return host, port and whether it is encrypted; an empty host when it is no address of the web."""
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", 0, False
    host = parts.hostname if parts.scheme in _PORTS else None
    return host or "", port, parts.scheme == "https"
