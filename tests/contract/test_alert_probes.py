"""The doctor's questions to e-mail and the pager: nobody is sent anything by them."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.commands.alert_probes import probe_email, probe_pager
from bot.model.person import Person
from bot.model.value import PersonName
from bot.settings import EmailSettings, PagerSettings
from tests.fakes.certificates import Authority
from tests.fakes.mail import PASSWORD, USER, mail_server

ADA = Person(name=PersonName("ada"))


def email(port: int, **fields: Any) -> EmailSettings:
    given: dict[str, Any] = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "hero@example.org"}
    return EmailSettings(**given | {"deadline": timedelta(seconds=20)} | fields)


async def test_a_mail_server_is_logged_into_and_nothing_is_sent(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with mail_server(authority.serving(), wants_login=True) as server:
        login: dict[str, Any] = {"security": "starttls", "ca_file": authority.file, "username": USER}
        right = await probe_email(
            email(server.port, password=SecretStr(PASSWORD), to=("a@b.org",), **login), people=(ADA,)
        )
        wrong = await probe_email(email(server.port, password=SecretStr("no"), **login), people=())

    assert [probe.ok for probe in right] == [True]
    assert "encrypted by STARTTLS, logged in; nothing was sent" in right[0].detail
    assert (wrong[0].ok, wrong[0].fix) == (False, "correct [email] username and password")
    assert server.taken == []


async def test_it_is_said_who_would_get_no_mail() -> None:
    async with mail_server() as server:
        _, recipients = await probe_email(email(server.port), people=(ADA,))

    assert recipients.detail == "ada would get no mail"
    assert "[email] to" in recipients.fix


async def test_a_mail_server_that_is_not_there_comes_with_the_fix() -> None:
    (probe,) = await probe_email(email(9), people=())

    assert not probe.ok
    assert "[email] host" in probe.fix


async def test_a_pager_is_reached_by_its_certificate_and_not_posted_to(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()

    strange = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=Authority(tmp_path).serving())
    plain = await asyncio.start_server(listen, "127.0.0.1", 0)
    ports = [server.sockets[0].getsockname()[1] for server in (strange, plain)]
    async with strange, plain:
        (untrusted,) = await probe_pager(_generic(f"https://127.0.0.1:{ports[0]}/s3cret"))
        (reached,) = await probe_pager(_generic(f"http://127.0.0.1:{ports[1]}/s3cret"))

    assert "its certificate is not trusted" in untrusted.detail
    assert reached.ok
    assert reached.fix == "use an https address"
    assert b"".join(heard) == b""
    assert "s3cret" not in f"{untrusted} {reached}"


@pytest.mark.parametrize("address", ["s3cret", "ftp://host/s3cret", "https://[bad/s3cret", "http://127.0.0.1:9/s3cret"])
async def test_an_address_that_cannot_work_comes_with_the_fix_and_is_not_shown(address: str) -> None:
    (probe,) = await probe_pager(_generic(address))

    assert not probe.ok
    assert probe.fix
    assert "s3cret" not in f"{probe}"


def _generic(url: str) -> PagerSettings:
    return PagerSettings(format="generic", url=SecretStr(url))
