"""E-mail against a real mail server: what arrives, and what is known of a mail that fails half-way."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.channels.email.channel import EmailChannel
from bot.channels.email.message import compose
from bot.channels.ports import Channel
from bot.clock import SystemClock
from bot.courier import Courier
from bot.model.delivery import ChannelName, Delivery, Later, Never, Sent, Target
from bot.model.person import Person
from bot.model.reading import Known
from bot.model.record import Decision, Telling
from bot.model.run import Run, RunState
from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.redaction import Redactor
from bot.settings import EmailSettings
from bot.store.store import Store
from tests.fakes.certificates import Authority
from tests.fakes.clock import FakeClock
from tests.fakes.mail import PASSWORD, USER, MailServer, mail_server

AT = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
RUN = RunId("hero-12d8b6f0")
ADA, BOB = PersonName("ada"), PersonName("bob")
PEOPLE = (Person(name=ADA, email="ada@example.org"), Person(name=BOB, email="bob@example.org"))


def update(**fields: Any) -> Update:
    given_: dict[str, Any] = {
        "kind": UpdateKind.ESCALATION,
        "run_id": RUN,
        "at": AT,
        "severity": Severity.CRITICAL,
        "headline": "I4 has waited 1 h for a person: no step for 40 min",
        "standing": Standing(state=RunState.RUNNING, step=812, final_step=10_000),
        "evidence": ("I4 told 2026-11-29 03:00 UTC",),
        "next": "to stop this: `/hero ack I4`",
        "asked": ADA,
        "also_asked": (BOB,),
    }
    return Update(**given_ | fields)


def delivery(key: str = "k/email", *, attempt: int = 0, **fields: Any) -> Delivery:
    said = update(**fields)
    return Delivery(
        number=1,
        key=key,
        channel=ChannelName.EMAIL,
        run_id=said.run_id,
        target=Target(),
        update=said,
        created_at=AT,
        attempt=attempt,
    )


def channel(server: MailServer, **fields: Any) -> EmailChannel:
    given_: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "security": "none",
        "sender": "hero@example.org",
        "to": ("oncall@example.org",),
        "deadline": timedelta(seconds=30),
    }
    return EmailChannel(EmailSettings(**given_ | fields), SystemClock(), people=PEOPLE)


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with mail_server() as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def parts(mail: EmailMessage) -> tuple[str, str]:
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    return text.get_content(), html.get_content()


async def test_a_mail_says_it_all_in_its_subject_and_goes_to_who_is_asked_and_to_the_list(server: MailServer) -> None:
    mailer: Channel = channel(server)

    outcome = await mailer.send(delivery())

    (mail,) = server.taken
    assert outcome == Sent(message_id=mail["Message-ID"])
    assert mail["Subject"] == ("hero-12d8b6f0 at step ~812/10000: I4 has waited 1 h for a person: no step for 40 min")
    assert server.envelopes == [
        ("hero@example.org", ("ada@example.org", "bob@example.org", "oncall@example.org")),
    ]
    assert mail["Auto-Submitted"] == "auto-generated"
    text, html = parts(mail)
    assert "Next: to stop this: `/hero ack I4`" in text
    assert "Asked: ada, bob" in text
    assert "<pre>I4 told 2026-11-29 03:00 UTC</pre>" in html
    assert mailer.trouble == ""


async def test_a_mail_sent_again_is_the_same_mail_and_a_runs_mails_are_one_thread(server: MailServer) -> None:
    mailer = channel(server)

    for attempt, key in ((0, "a"), (1, "a"), (0, "b")):
        await mailer.send(delivery(key, attempt=attempt))
    await mailer.send(delivery("c", run_id=RunId("other")))

    first, again, second, other = server.taken
    assert first["Message-ID"] == again["Message-ID"] != second["Message-ID"]
    assert (first["Date"], first["Subject"]) == (again["Date"], again["Subject"])
    assert first["References"] == second["References"] == second["In-Reply-To"] != other["References"]


async def test_a_connection_is_encrypted_and_logged_in_as_the_settings_say(authority: Authority) -> None:
    async with mail_server(authority.serving(), wants_login=True) as server:
        mailer = channel(
            server,
            security="starttls",
            ca_file=authority.file,
            username=USER,
            password=SecretStr(PASSWORD),
        )

        outcome = await mailer.send(delivery())

    assert isinstance(outcome, Sent)
    assert server.secure == [True]


async def test_tls_from_the_first_byte(authority: Authority) -> None:
    async with mail_server(authority.serving(), is_tls=True) as server:
        outcome = await channel(server, security="tls", ca_file=authority.file).send(delivery())

    assert isinstance(outcome, Sent)


async def test_a_wrong_password_is_said_with_the_fix_and_never_shown(authority: Authority) -> None:
    async with mail_server(authority.serving(), wants_login=True) as server:
        mailer = channel(
            server, security="starttls", ca_file=authority.file, username=USER, password=SecretStr("not the one")
        )

        outcome = await mailer.send(delivery())

    assert outcome == Later(reason="the login was refused (535)")
    assert "correct [email] username and password" in mailer.trouble
    assert "not the one" not in repr(outcome) + mailer.trouble
    assert server.taken == []


async def test_a_server_that_is_not_trusted_or_offers_no_encryption_gets_nothing(
    authority: Authority, server: MailServer
) -> None:
    async with mail_server(authority.serving()) as strange:
        untrusted = await channel(strange, security="starttls").send(delivery())
    async with mail_server(authority.serving(), is_tls=True) as strange_too:
        untrusted_too = await channel(strange_too, security="tls").send(delivery())
    plain = await channel(server, security="starttls", ca_file=authority.file).send(delivery())

    for outcome in (untrusted, untrusted_too):
        assert isinstance(outcome, Later)
        assert "certificate" in outcome.reason
        assert not outcome.is_uncertain
    assert plain == Later(reason="the server offers no STARTTLS")
    assert (strange.taken, strange_too.taken, server.taken) == ([], [], [])


async def test_what_passes_is_tried_again_and_what_does_not_is_given_up_with_the_fix(server: MailServer) -> None:
    mailer = channel(server)
    server.data_status = "451 try again later"
    later = await mailer.send(delivery())
    assert "451 try again later" in mailer.trouble
    server.data_status = "552 too big"
    never = await mailer.send(delivery())
    server.data_status, server.mail_status = "", "550 not from here"
    sender = await mailer.send(delivery())

    assert later == Later(reason="the server answered 451 try again later")
    assert isinstance(never, Never)
    assert "552 too big" in never.reason
    assert isinstance(sender, Later)
    assert "[email] sender" in mailer.trouble


async def test_one_bad_address_keeps_nobody_else_from_the_mail(server: MailServer) -> None:
    mailer = channel(server)
    server.rcpt_statuses = {"bob@example.org": "550 no such user"}

    outcome = await mailer.send(delivery())

    assert isinstance(outcome, Sent)
    assert server.envelopes[0][1] == ("ada@example.org", "oncall@example.org")
    assert "bob@example.org (550)" in mailer.trouble


async def test_nobody_gets_a_mail_twice_because_another_address_is_put_off(server: MailServer) -> None:
    mailer = channel(server)
    server.rcpt_statuses = {"bob@example.org": "450 greylisted"}

    put_off = await mailer.send(delivery())
    at_last = await mailer.send(delivery(attempt=5))

    assert isinstance(put_off, Later)
    assert not put_off.is_uncertain
    assert isinstance(at_last, Sent)
    assert len(server.taken) == 1


async def test_addresses_that_are_all_refused_are_never_tried_again(server: MailServer) -> None:
    server.rcpt_statuses = dict.fromkeys(("ada@example.org", "bob@example.org", "oncall@example.org"), "550 unknown")

    outcome = await channel(server).send(delivery())

    assert isinstance(outcome, Never)
    assert "[people]" in outcome.fix


async def test_a_connection_lost_after_data_is_uncertain_and_the_second_mail_is_the_first(server: MailServer) -> None:
    mailer = channel(server)
    server.drops_after_data = True
    lost = await mailer.send(delivery())
    server.drops_after_data = False

    sent = await mailer.send(delivery(attempt=1))

    assert isinstance(lost, Later)
    assert lost.is_uncertain
    assert isinstance(sent, Sent)
    assert len({mail["Message-ID"] for mail in server.taken}) == 1


async def test_a_server_that_never_answers_is_cut_off_at_the_deadline(server: MailServer) -> None:
    server.hangs_after_data = True

    outcome = await channel(server, deadline=timedelta(seconds=1)).send(delivery())

    assert isinstance(outcome, Later)
    assert outcome.is_uncertain


async def test_a_server_that_is_not_there_is_no_uncertainty() -> None:
    mailer = channel(MailServer(9))

    outcome = await mailer.send(delivery())

    assert isinstance(outcome, Later)
    assert not outcome.is_uncertain
    assert "[email] host" in mailer.trouble


async def test_without_an_address_it_is_said_what_is_missing(server: MailServer) -> None:
    outcome = await channel(server, to=()).send(delivery(asked=PersonName("eve"), also_asked=()))

    assert isinstance(outcome, Never)
    assert "[email] to" in outcome.fix


async def test_what_comes_from_outside_forges_no_header_and_no_markup(server: MailServer) -> None:
    evil = "x\r\nBcc: victim@example.org\r\n\r\n<script>alert(1)</script>\x1b[31m\u202e"

    await channel(server).send(
        delivery(run_id=RunId(f"run{evil}"), headline=evil, next=evil, evidence=(evil,), asked=PersonName(f"ada{evil}"))
    )

    (mail,) = server.taken
    assert mail["Bcc"] is None
    assert "victim@example.org" not in {address for _, every in server.envelopes for address in every}
    assert "\n" not in mail["Subject"]
    text, html = parts(mail)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in text + html
    assert "\u202e" not in text + html


async def test_letters_of_every_script_arrive(server: MailServer) -> None:
    await channel(server).send(delivery(headline="Verlust steigt: 損失 ‰ 📈", evidence=("naïve Zeile",)))

    (mail,) = server.taken
    assert mail["Subject"].endswith("Verlust steigt: 損失 ‰ 📈")
    assert "naïve Zeile" in parts(mail)[0]


async def test_a_request_is_shown_whole_and_says_that_it_is_not_answered_here(server: MailServer) -> None:
    await channel(server).send(
        delivery(plan=("stop: /ada/hero", "command: python train.py"), choice=Choice(request="R7", is_open=True))
    )

    text, _ = parts(server.taken[0])
    assert "command: python train.py" in text
    assert "in the run's conversation, not here" in text
    assert "Hero sends mail and reads none" in text


async def test_nobody_speaks_by_mail(server: MailServer) -> None:
    standing = await channel(server).identify(actor=None)  # type: ignore[arg-type] # whoever it is

    assert isinstance(standing, Known)
    assert not standing.value.is_member


@given(key=st.text(), run=st.text(max_size=300), said=st.text(max_size=2000))
def test_any_text_makes_a_mail_with_ascii_headers_of_bounded_length(key: str, run: str, said: str) -> None:
    one = delivery(key, run_id=RunId(run), headline=said, evidence=(said,), next=said)

    raw = compose(one, sender="hero@example.org", recipients=("ada@example.org",), timezone="UTC")

    head = raw.partition(b"\r\n\r\n")[0].decode("ascii")
    names = [line.partition(":")[0] for line in head.split("\r\n") if not line.startswith((" ", "\t"))]
    assert sorted(names) == sorted(
        [
            *("From", "To", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted"),
            *("X-Auto-Response-Suppress", "MIME-Version", "Content-Type"),
        ]
    )
    assert all(len(line) <= 998 for line in raw.decode("utf-8", "replace").split("\r\n")), "RFC 5322, 2.1.1"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"host": "m.example.org"}, "sender is missing"),
        ({"host": "m", "sender": "a@b.c", "username": "u"}, "go together"),
        (
            {"host": "m", "sender": "a@b.c", "username": "u", "password": SecretStr("p"), "security": "none"},
            "in the clear",
        ),
        ({"sender": "a@b.c\r\nBcc: x@y.z"}, "sender"),
        ({"to": ["two@a.b, three@a.b"]}, "to"),
        ({"kinds": ["live_status"]}, "cannot be mailed"),
    ],
)
def test_settings_that_cannot_work_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        EmailSettings(**fields)


async def test_a_mail_lost_after_data_goes_out_again_from_the_outbox_after_a_restart_as_the_same_mail(
    server: MailServer, tmp_path: Path
) -> None:
    clock, given_up = FakeClock(AT), list[Delivery]()
    told = Telling(update=update(), key="escalation/I4/email", channels=(ChannelName.EMAIL,))
    outcomes: list[bool] = []
    for life in range(3):
        store = await Store.open(f"sqlite:///{tmp_path}/hero.db", clock, Redactor())
        if life == 0:
            async with store.transaction() as tx:
                await tx.apply(Decision(run=Run(run_id=RUN), tell=(told,)), RUN, AT)
        server.drops_after_data = life == 0

        async def give_up(delivery: Delivery, _outcome: Never) -> None:
            given_up.append(delivery)

        courier = Courier(
            channel=channel(server),
            store=store,
            clock=clock,
            deadline=timedelta(seconds=60),
            posts_per_minute=20,
            give_up=give_up,
            alarm=lambda error: pytest.fail(str(error)),
            lease=lambda: None,
        )
        outcomes.append(await courier.send_due())
        await store.close()
        clock.advance(timedelta(minutes=10))

    assert outcomes == [False, True, False], "uncertain; sent; nothing is left to send"
    assert len(server.taken) == 2
    assert len({mail["Message-ID"] for mail in server.taken}) == 1
    assert given_up == []
