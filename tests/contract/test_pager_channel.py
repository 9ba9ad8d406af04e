"""The pager against a local receiver: what it is posted, and what becomes of each answer."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.channels.pager.channel import PagerChannel
from bot.channels.ports import Channel
from bot.clock import SystemClock
from bot.model.delivery import ChannelName, Delivery, Later, Never, Sent, Target
from bot.model.ladder import Page, PageStatus
from bot.model.update import Update, UpdateKind
from bot.model.value import PersonName, RunId
from bot.model.verdict import Severity
from bot.settings import PagerSettings

AT = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
RUN = RunId("hero-12d8b6f0")
KEY = f"hero/{RUN}/I4"


class Receiver:
    """Takes events as PagerDuty does, by their deduplication key; answers as it is told."""

    def __init__(self) -> None:
        self.posts: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.status = 202
        self.headers: dict[str, str] = {}

    async def take(self, asked: web.Request) -> web.Response:
        self.posts.append((dict(asked.headers), await asked.json()))
        return web.json_response({"status": "success"}, status=self.status, headers=self.headers)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, body in self.posts]


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[Receiver, str]]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/v2/s3cret-path", receiver.take)
    async with TestServer(app) as server:
        yield receiver, str(server.make_url("/v2/s3cret-path"))


def delivery(status: PageStatus = PageStatus.TRIGGER, key: str = KEY, **fields: Any) -> Delivery:
    update = Update(
        kind=UpdateKind.ESCALATION,
        run_id=RUN,
        at=AT,
        severity=Severity.CRITICAL,
        headline=fields.pop("headline", "I4 has waited 2 h for a person: no step for 40 min"),
        evidence=("I4 tried so far: e-mail 2026-11-29 02:00 UTC",),
        next="to stop this: `/hero ack I4`",
        asked=PersonName("ada"),
        page=Page(key=key, status=status, link="https://chat.example/4"),
        **fields,
    )
    return Delivery(
        number=1,
        key=f"k/{status}/pager",
        channel=ChannelName.PAGER,
        run_id=RUN,
        target=Target(slot="page:I4"),
        update=update,
        created_at=AT,
    )


async def pager(url: str, **fields: Any) -> PagerChannel:
    given: dict[str, Any] = {"url": SecretStr(url), "routing_key": SecretStr("R0UTING")}
    return PagerChannel(PagerSettings(**given | fields), SystemClock())


async def test_pagerduty_is_triggered_acknowledged_and_resolved_under_one_key(receiver: tuple[Receiver, str]) -> None:
    taken, url = receiver
    channel: Channel = await pager(url)

    outcomes = [await channel.send(delivery(status)) for status in PageStatus]
    await channel.close()

    assert outcomes == [Sent(message_id=KEY)] * 3
    trigger, acknowledge, resolve = taken.bodies
    assert trigger["payload"]["summary"] == "hero-12d8b6f0: I4 has waited 2 h for a person: no step for 40 min"
    assert (trigger["payload"]["severity"], trigger["payload"]["source"]) == ("critical", RUN)
    assert trigger["links"] == [{"href": "https://chat.example/4", "text": "the run's conversation"}]
    assert trigger["payload"]["custom_details"]["next"] == "to stop this: `/hero ack I4`"
    assert [each["event_action"] for each in taken.bodies] == ["trigger", "acknowledge", "resolve"]
    assert {(each["routing_key"], each["dedup_key"]) for each in taken.bodies} == {("R0UTING", KEY)}
    assert "payload" not in acknowledge
    assert "payload" not in resolve


async def test_a_generic_receiver_gets_flat_json_with_two_states(receiver: tuple[Receiver, str]) -> None:
    taken, url = receiver
    channel = await pager(
        url,
        format="generic",
        routing_key=None,
        authorization=SecretStr("GenieKey 123"),
        headers={"X-Scope-OrgID": "ml"},
    )

    outcomes = [await channel.send(delivery(status)) for status in PageStatus]
    await channel.close()

    assert all(isinstance(outcome, Sent) for outcome in outcomes)
    assert [body["status"] for body in taken.bodies] == ["trigger", "resolve"]
    first = taken.bodies[0]
    assert {name: first[name] for name in ("severity", "run", "link", "dedup_key")} == {
        "severity": "critical",
        "run": RUN,
        "link": "https://chat.example/4",
        "dedup_key": KEY,
    }
    headers = taken.posts[0][0]
    assert (headers["Authorization"], headers["X-Scope-OrgID"]) == ("GenieKey 123", "ml")


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (429, {"Retry-After": "7"}, Later(reason="the pager answered HTTP 429", after=timedelta(seconds=7))),
        (429, {"Retry-After": "soon"}, Later(reason="the pager answered HTTP 429")),
        (503, {}, Later(reason="the pager answered HTTP 503", is_uncertain=True)),
    ],
)
async def test_what_passes_is_tried_again(
    receiver: tuple[Receiver, str], status: int, headers: dict[str, str], outcome: Later
) -> None:
    taken, url = receiver
    taken.status, taken.headers = status, headers
    channel = await pager(url)

    assert await channel.send(delivery()) == outcome
    assert channel.trouble == ""
    await channel.close()


@pytest.mark.parametrize("status", [301, 401, 403, 404])
async def test_what_a_person_can_mend_is_said_and_tried_again(receiver: tuple[Receiver, str], status: int) -> None:
    taken, url = receiver
    taken.status, taken.headers = status, {"Location": "https://elsewhere.example/"}
    channel = await pager(url)

    outcome = await channel.send(delivery())

    assert isinstance(outcome, Later)
    assert "HERO_PAGER__URL" in channel.trouble
    assert len(taken.posts) == 1, "no redirect is followed: the address is a secret"
    taken.status = 202
    await channel.send(delivery())
    assert channel.trouble == ""
    await channel.close()


async def test_an_event_that_is_refused_is_given_up_and_told_elsewhere(receiver: tuple[Receiver, str]) -> None:
    taken, url = receiver
    taken.status = 400
    channel = await pager(url)

    assert isinstance(await channel.send(delivery()), Never)
    await channel.close()


async def test_no_secret_is_shown_when_nobody_answers() -> None:
    with capture_logs() as logs:
        channel = await pager("http://127.0.0.1:9/v2/s3cret-path")
        outcome = await channel.send(delivery())
        await channel.close()

    assert outcome == Later(reason="no answer: ConnectError", is_uncertain=True)
    assert "s3cret" not in f"{outcome} {channel.trouble} {logs}"


async def test_long_and_foreign_text_stays_within_pagerdutys_limits(receiver: tuple[Receiver, str]) -> None:
    taken, url = receiver
    channel = await pager(url)

    await channel.send(delivery(key=f"hero/{'x' * 400}/I4", headline="損失\x1b[31m\r\n" * 2_000))
    await channel.close()

    (body,) = taken.bodies
    assert len(body["dedup_key"]) <= 255
    assert len(body["payload"]["summary"]) <= 1_024
    assert "\x1b" not in json.dumps(body, ensure_ascii=False)
    assert "\n" not in body["payload"]["summary"]


async def test_what_is_no_page_rings_nobody(receiver: tuple[Receiver, str]) -> None:
    taken, url = receiver
    channel = await pager(url)
    plain = delivery().model_copy(update={"update": delivery().update.model_copy(update={"page": None})})

    assert isinstance(await channel.send(plain), Never)
    assert taken.posts == []
    await channel.close()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": SecretStr("https://x.example")}, "routing_key is missing"),
        ({"format": "generic", "routing_key": SecretStr("k")}, "url is missing"),
        ({"headers": {"X-Api-Key": "abc"}}, "holds a secret"),
        ({"headers": {"X-Name": "a\r\nX-Other: b"}}, "is no header"),
    ],
)
def test_settings_that_cannot_work_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PagerSettings(**fields)


def test_a_routing_key_alone_is_pagerduty_itself() -> None:
    assert PagerSettings(routing_key=SecretStr("k")).address == "https://events.pagerduty.com/v2/enqueue"
    assert PagerSettings().address is None
