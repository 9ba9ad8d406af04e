"""Hero as a GitHub App over the real PyGithub: who it is, and tokens that live an hour (R15)."""

import time
from collections.abc import Iterator
from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr, ValidationError

from bot.channels.github.access import Access
from bot.channels.github.channel import GitHubChannel
from bot.model.delivery import ChannelName, Delivery, Later, Sent, Target
from bot.model.update import Update, UpdateKind
from bot.model.value import RunId
from bot.settings import GitHubSettings
from tests.fakes.clock import START, FakeClock
from tests.fakes.github import APP_ID, APP_SLUG, FakeGitHub
from tests.fakes.github_views import INSTALLATION_ID
from tests.fakes.ledger import FakeLedger

RUN = RunId("hero-12d8b6f0")
HOUR = timedelta(hours=1)


@pytest.fixture
def gh() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        yield fake
        assert fake.mistakes == ()


def settings(gh: FakeGitHub, **changes: object) -> GitHubSettings:
    given = {
        "app_id": APP_ID,
        "app_private_key": SecretStr(gh.app_private_key),
        "repository": "acme/training",
        "base_url": gh.url,
        "deadline": timedelta(seconds=20),
    }
    return GitHubSettings.model_validate(given | changes)


def app(gh: FakeGitHub, **changes: object) -> GitHubChannel:
    return GitHubChannel(
        settings(gh, **changes), FakeLedger(), FakeClock(), people=(), issues=lambda _: 1, pacing=timedelta()
    )


def news(number: int) -> Delivery:
    update = Update(kind=UpdateKind.FAILED, run_id=RUN, at=START, headline=f"news {number}")
    return Delivery(
        number=number,
        key=f"key-{number}",
        channel=ChannelName.GITHUB,
        run_id=RUN,
        target=Target(),
        update=update,
        created_at=START,
    )


def minted(gh: FakeGitHub) -> int:
    return len(gh.posts("/access_tokens"))


def refused(gh: FakeGitHub) -> int:
    """How many requests came with a token that is no good."""
    return sum(asked.login is None for asked in gh.requests)


async def test_an_app_finds_its_installation_and_knows_its_own_comments_from_the_start(gh: FakeGitHub) -> None:
    gh.open_issue("a run")
    channel = app(gh)

    outcome = await channel.send(news(1))

    assert isinstance(outcome, Sent)
    (comment,) = gh.issue(1).comments
    assert (comment.author, comment.by_app) == (f"{APP_SLUG}[bot]", True)
    assert await channel._own.login() == f"{APP_SLUG}[bot]"
    (token, *_) = await channel.doctor()
    assert token[:3] == ("github token", True, f"speaks as {APP_SLUG}[bot], an app")
    await channel.close()


async def test_thirteen_hours_of_posts_alone_meet_no_dead_token(gh: FakeGitHub) -> None:
    gh.open_issue("a run")
    channel = app(gh)

    for hour in range(13):
        # The server's tokens end while PyGithub, by its own clock, still trusts them: the case that it never renews.
        gh.access.clock_offset = hour * (HOUR + timedelta(minutes=1))
        assert isinstance(await channel.send(news(hour)), Sent)

    assert len(gh.issue(1).comments) == 13
    assert channel.trouble == ""
    assert refused(gh) == 12, "each dead token is tried once, and the request made again with a new one"
    await channel.close()


async def test_a_token_is_renewed_before_it_ends(gh: FakeGitHub) -> None:
    gh.open_issue("a run")
    gh.access.token_life = timedelta(seconds=15)  # less than the margin that PyGithub keeps
    channel = app(gh)

    await channel.send(news(1))
    first = minted(gh)
    await channel.send(news(2))

    assert minted(gh) > first
    assert refused(gh) == 0
    await channel.close()


async def test_a_key_that_github_does_not_know_is_said_with_the_fix_and_tried_again_once(gh: FakeGitHub) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    channel = app(gh, app_private_key=SecretStr(other.decode()))

    outcome = await channel.send(news(1))

    assert isinstance(outcome, Later)
    assert "see its app_id, its private key" in outcome.reason
    assert len(gh.requests) == 2
    await channel.close()


async def test_a_private_key_that_is_none_is_refused_and_never_shown(gh: FakeGitHub) -> None:
    with pytest.raises(ValidationError, match=r"give the \.pem file") as refusal:
        settings(gh, app_private_key=SecretStr("hunter2"))
    assert "hunter2" not in str(refusal.value)

    what = "RSA PRIVATE KEY"  # in two pieces, or the hook against keys in git would take it for one
    broken = f"-----BEGIN {what}-----\nhunter2\n-----END {what}-----"
    channel = app(gh, app_private_key=SecretStr(broken))
    outcome = await channel.send(news(1))

    assert isinstance(outcome, Later)
    assert "private key cannot be used" in outcome.reason
    assert "hunter2" not in outcome.reason
    assert gh.requests == []
    await channel.close()


def test_a_token_and_an_app_exclude_each_other_and_an_app_needs_its_key(gh: FakeGitHub) -> None:
    with pytest.raises(ValidationError, match="exclude each other"):
        settings(gh, token=SecretStr("ghp_x"))
    with pytest.raises(ValidationError, match="app_private_key is missing"):
        settings(gh, app_private_key=None)


def test_the_jwt_begins_a_minute_ago_and_a_key_in_one_line_will_do(gh: FakeGitHub) -> None:
    in_one_line = SecretStr(gh.app_private_key.replace("\n", "\\n"))

    token = Access(settings(gh, app_private_key=in_one_line))._app_auth().token

    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["iat"] <= time.time() - 60
    assert claims["exp"] <= time.time() + 540
    assert claims["iss"] == str(APP_ID)


async def test_an_installation_that_is_named_is_not_looked_for_and_a_missing_one_says_so(gh: FakeGitHub) -> None:
    gh.open_issue("a run")
    named = app(gh, app_installation=INSTALLATION_ID)
    assert isinstance(await named.send(news(1)), Sent)
    assert not [asked for asked in gh.requests if asked.path.endswith("/installation")]
    await named.close()

    wrong = app(gh, app_installation=1)
    (found,) = await wrong.doctor()
    assert found[1] is False
    await wrong.close()
