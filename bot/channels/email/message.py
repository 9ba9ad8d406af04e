"""One delivery as one mail, the same bytes' worth of headers however often it is sent.

The Message-ID is made from the delivery's key: a mail that is sent once more, because nobody knows whether the first
one arrived, is the same mail to whoever reads it. All mail about a run hangs below one id, so that it is one thread.
"""

import hashlib
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from bot.model.delivery import Delivery
from bot.render.email import render_email

_ABOUT_HERO = "hero"


def message_id(key: str, domain: str) -> str:
    """Return the id of the mail of a delivery; keys hold names from outside, so what stands there is a digest."""
    return f"<{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:40]}@{domain}>"


def thread_id(run_id: str | None, domain: str) -> str:
    """Return the id below which all mail about a run hangs; there is no mail of that id itself."""
    return message_id(f"thread of {run_id or _ABOUT_HERO}", domain)


def compose(delivery: Delivery, *, sender: str, recipients: tuple[str, ...], timezone: str) -> bytes:
    """Return the mail as it is sent.

    Args:
        delivery: what to say.
        sender: the address that it comes from.
        recipients: addresses, checked when the settings were read.
        timezone: of the people who read times.
    """
    domain = sender.rpartition("@")[2]
    mail = render_email(delivery.update, timezone=timezone)
    message = EmailMessage(policy=SMTP)
    message["From"] = f"Hero <{sender}>"
    message["To"] = ", ".join(recipients)
    message["Date"] = format_datetime(delivery.created_at)
    message["Message-ID"] = message_id(delivery.key, domain)
    root = thread_id(delivery.run_id, domain)
    message["In-Reply-To"] = root
    message["References"] = root
    # RFC 3834: no vacation notice and no other robot answers this.
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(mail.text)
    message.add_alternative(mail.html, subtype="html")
    return b"Subject: " + _subject(mail.subject) + b"\r\n" + message.as_bytes()


def _subject(text: str) -> bytes:
    """Return a subject as it stands in a header; rendered on one line, it can forge no other.

    It is not left to EmailMessage, which loses spaces between encoded words (CPython issue 92081).
    """
    line = " ".join(text.split())
    if line.isascii() and "=?" not in line:
        return line.encode("ascii")
    return Header(line, "utf-8", header_name="Subject").encode(linesep="\r\n").encode("ascii")
