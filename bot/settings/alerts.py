"""The tables about reaching people who do not look: e-mail, the pager, and the ladder of escalation."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from bot.model.durations import Duration, parse_duration
from bot.model.ladder import Ladder, Ladders, Rung
from bot.model.update import UpdateKind
from bot.secret_names import is_secret_name
from bot.settings.section import Section

ADDRESS_PATTERN = r"^[A-Za-z0-9._%+/=&'*!?^~-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$"
"""What every mail server takes; a domain in other letters is written in its ``xn--`` form."""

type Address = Annotated[str, Field(pattern=ADDRESS_PATTERN)]

_NEVER_MAILED = {UpdateKind.LIVE_STATUS, UpdateKind.ANSWER, UpdateKind.ESCALATION}


class EmailSettings(Section):
    """``[email]``: mail that is sent and never read: nobody approves or commands by it."""

    host: str | None = Field(default=None, pattern=r"^\S+$", examples=["smtp.example.org"])
    """The mail server to which Hero submits; e-mail is set up when this is given."""

    port: int = Field(default=587, gt=0, le=65535)
    """Its port: 587 is usual for `starttls`, 465 for `tls`, 25 for `none`."""

    security: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is encrypted. A server that does not offer it is not talked to; there is no falling back."""

    ca_file: Path | None = None
    """The authority that signed the server's certificate, as PEM; without it the system's are trusted."""

    username: str | None = None
    """For a server that wants to know who sends; never sent over an unencrypted connection."""

    password: SecretStr | None = None
    """From HERO_EMAIL__PASSWORD or ``password_file``."""

    password_file: Path | None = None
    """A file that holds the password and nothing else."""

    sender: Address | None = Field(default=None, examples=["hero@example.org"])
    """From whom mail comes; its domain is also that of the messages' ids, so keep it."""

    to: tuple[Address, ...] = Field(default=(), examples=[["training-oncall@example.org"]])
    """Who gets every mail, beside the persons asked."""

    kinds: tuple[UpdateKind, ...] = ()
    """Kinds of news that are mailed at once to ``to`` and to who is asked, e.g. ``failed``, ``completed``. Without it
    only what the ladder of ``[escalation]`` brings there is mailed."""

    deadline: Duration = timedelta(seconds=30)
    """How long one mail may take until it counts as not sent, or as uncertain when its text was on the way."""

    @field_validator("kinds")
    @classmethod
    def _may_be_mailed(cls, value: tuple[UpdateKind, ...]) -> tuple[UpdateKind, ...]:
        if wrong := ", ".join(kind for kind in value if kind in _NEVER_MAILED):
            msg = f"{wrong} cannot be mailed; leave it out"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        missing: list[str] = []
        if self.host is not None and self.sender is None:
            missing.append("sender is missing; give the address that mail comes from, hero@example.org")
        if (self.username is None) != (self.password is None):
            missing.append("username and password go together; set both, or neither")
        if self.username is not None and self.security == "none":
            missing.append('a password would be sent in the clear; set security = "starttls" or "tls"')
        if missing:
            raise ValueError("\n".join(missing))
        return self


class PagerSettings(Section):
    """``[pager]``: a webhook that calls whoever is on duty; the last rung of ``[escalation]``."""

    format: Literal["pagerduty", "generic"] = "pagerduty"
    """``pagerduty`` speaks the Events API v2, which others take too; ``generic`` posts flat JSON with ``title``,
    ``severity``, ``run``, ``link``, ``dedup_key`` and ``status``."""

    routing_key: SecretStr | None = None
    """The integration key of a PagerDuty service; from HERO_PAGER__ROUTING_KEY or ``routing_key_file``."""

    routing_key_file: Path | None = None
    """A file that holds the routing key."""

    url: SecretStr | None = None
    """Where to post; a secret, since such addresses often hold one. From HERO_PAGER__URL or ``url_file``. For
    ``pagerduty`` without it https://events.pagerduty.com/v2/enqueue."""

    url_file: Path | None = None
    """A file that holds the address."""

    authorization: SecretStr | None = None
    """The whole value of the ``Authorization`` header, e.g. ``GenieKey …``; from HERO_PAGER__AUTHORIZATION or
    ``authorization_file``."""

    authorization_file: Path | None = None
    """A file that holds that value."""

    headers: dict[str, str] = {}
    """Further headers, e.g. a tenant's name; what holds a secret goes into ``authorization``."""

    deadline: Duration = timedelta(seconds=20)
    """How long one call may take."""

    @field_validator("headers")
    @classmethod
    def _are_plain(cls, value: dict[str, str]) -> dict[str, str]:
        for name, content in value.items():
            if is_secret_name(name) or name.lower() == "authorization":
                msg = f"{name} holds a secret and must not stand here; set HERO_PAGER__AUTHORIZATION"
                raise ValueError(msg)
            if not (name.isascii() and name.replace("-", "").isalnum()) or not (
                content.isascii() and content.isprintable()
            ):
                msg = f'{name!r} is no header; write NAME = "value" in plain ASCII'
                raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.format == "pagerduty" and self.url is not None and self.routing_key is None:
            msg = "routing_key is missing; set HERO_PAGER__ROUTING_KEY or routing_key_file"
            raise ValueError(msg)
        if self.format == "generic" and self.routing_key is not None and self.url is None:
            msg = "url is missing; set HERO_PAGER__URL or url_file"
            raise ValueError(msg)
        return self

    @property
    def address(self) -> str | None:
        """Where to post; None when no pager is set up."""
        if self.url is not None:
            return self.url.get_secret_value().strip()
        return PAGERDUTY_URL if self.routing_key is not None else None


PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"


def _parse_wait(raw: object) -> object:
    return None if raw == "off" else parse_duration(raw)


type Wait = Annotated[timedelta | None, BeforeValidator(_parse_wait)]
"""A duration, or ``off``."""


class _Times(Section):
    @property
    def ladder(self) -> Ladder:
        waits = {rung: getattr(self, rung.value) for rung in Rung}
        return Ladder(times={rung: wait for rung, wait in waits.items() if wait is not None})


class CriticalTimes(_Times):
    """``[escalation.critical]``: for critical incidents, and for questions about a run that is down.

    Each value is a time since people were told, or ``off``.
    """

    thread: Wait = timedelta(0)
    """A reminder in the conversation that rings nobody; ``0s``: the first message is enough."""

    mention: Wait = timedelta(minutes=15)
    """The DRI is mentioned in the conversation."""

    direct: Wait = timedelta(minutes=30)
    """The DRI gets a direct message, in Slack and Discord."""

    deputies: Wait = timedelta(hours=1)
    """The contract's deputies are mentioned, and get a direct message."""

    email: Wait = timedelta(hours=1)
    """DRI, deputies and ``[email] to`` get a mail."""

    pager: Wait = timedelta(hours=2)
    """The pager is triggered."""


class WarningTimes(_Times):
    """``[escalation.warning]``: for questions by whose waiting nothing is lost: a stop, a clean-up, a first launch.

    It waits for the DRI's working hours. Each value is a time since people were told, or ``off``.
    """

    thread: Wait = timedelta(hours=4)
    """A reminder in the conversation that rings nobody."""

    mention: Wait = timedelta(hours=8)
    """The DRI is mentioned in the conversation."""

    direct: Wait = timedelta(hours=12)
    """The DRI gets a direct message, in Slack and Discord."""

    deputies: Wait = None
    """The contract's deputies are mentioned, and get a direct message; off."""

    email: Wait = timedelta(hours=12)
    """The DRI and ``[email] to`` get a mail."""

    pager: Wait = None
    """The pager is triggered; off."""


class EscalationSettings(Section):
    """``[escalation]``: who is reached, and when, while nobody gives a sign.

    In use when this table is there, or when e-mail or a pager is set up; else an open request is brought up every
    ``[bot] request_reminder``, and that is all.
    """

    critical: CriticalTimes = CriticalTimes()
    warning: WarningTimes = WarningTimes()

    per_day: int = Field(default=24, ge=10)
    """Noise budget: the most messages of the ladder about one run in 24 hours. What is over it waits; a page does
    not."""

    @property
    def ladders(self) -> Ladders:
        return Ladders(critical=self.critical.ladder, warning=self.warning.ladder, per_day=self.per_day)
