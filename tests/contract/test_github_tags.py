"""The seal's tag, over the real PyGithub: created once, never moved, and what is not known is said."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from pydantic import SecretStr

from bot.channels.github.tags import GitHubTagger
from bot.model.action import Done, Refused, Uncertain, Waiting
from bot.model.reading import Gap, Known, Unknown
from bot.model.tag import Tag
from bot.settings import GitHubSettings
from tests.fakes.clock import FakeClock
from tests.fakes.github import Broken, FakeGitHub, StoredThenLost

SHA, OTHER = "a" * 40, "b" * 40
TAG = Tag(name="seal/hero-12d8b6f0", sha=SHA)
WORDS = "hero-12d8b6f0 is finished and sealed\nfinal step 9000"
REFS = "/repos/*/*/git/refs"


@pytest.fixture
def gh() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        fake.add_user("hero-bot", permission="write")
        fake.add_token("a-token-that-may-push", "hero-bot")
        fake.push(SHA)
        yield fake


@pytest.fixture
async def tagger(gh: FakeGitHub) -> AsyncIterator[GitHubTagger]:
    settings = GitHubSettings(
        token=SecretStr("a-token-that-may-push"),
        repository="acme/issues",
        source_repository="acme/training",
        base_url=gh.url,
        deadline=timedelta(seconds=20),
    )
    tagger = GitHubTagger(settings, FakeClock(), pacing=timedelta())
    yield tagger
    await tagger.close()


async def test_a_tag_is_created_with_its_words_and_found_at_its_commit(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    before = await tagger.find_tag(TAG.name)

    outcome = await tagger.create_tag(TAG, WORDS)

    assert isinstance(before, Known)
    assert before.value is None
    assert outcome == Done(detail=f"{TAG.name} points to {SHA} in acme/training")
    assert gh.tags == {TAG.name: (SHA, WORDS)}
    after = await tagger.find_tag(TAG.name)
    assert isinstance(after, Known)
    assert after.value == TAG


async def test_a_tag_that_somebody_made_is_found_and_never_moved(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    gh.push(OTHER)
    gh.tag(TAG.name, OTHER)

    found = await tagger.find_tag(TAG.name)
    outcome = await tagger.create_tag(TAG, WORDS)

    assert isinstance(found, Known)
    assert found.value == Tag(name=TAG.name, sha=OTHER)
    assert isinstance(outcome, Uncertain), "it is looked at once more, and refused there"
    assert gh.tags[TAG.name] == (OTHER, "")


async def test_an_answer_that_is_lost_leaves_it_open_and_a_second_try_makes_no_second_tag(
    gh: FakeGitHub, tagger: GitHubTagger
) -> None:
    gh.fail("POST", REFS, StoredThenLost())

    first = await tagger.create_tag(TAG, WORDS)
    second = await tagger.create_tag(TAG, WORDS)

    assert isinstance(first, Uncertain)
    assert isinstance(second, Uncertain)
    assert "exists" in second.detail
    assert gh.tags == {TAG.name: (SHA, WORDS)}


async def test_a_commit_that_was_not_pushed_is_no_tag(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    outcome = await tagger.create_tag(Tag(name=TAG.name, sha=OTHER), WORDS)

    assert isinstance(outcome, Refused)
    assert "is bbbb" in outcome.detail
    assert gh.tags == {}


async def test_a_token_that_may_not_push_is_told_what_it_needs(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    gh.add_user("hero-bot", permission="read")

    outcome = await tagger.create_tag(TAG, WORDS)

    assert isinstance(outcome, Refused)
    assert "contents: write" in outcome.detail


async def test_a_server_that_is_ill_is_no_absence(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    gh.fail("GET", "/repos/*/*/git/ref/*/*/*", Broken(502))

    found = await tagger.find_tag(TAG.name)

    assert isinstance(found, Unknown)


async def test_a_repository_that_may_not_be_seen_is_no_absence(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    gh.rename("acme/elsewhere")
    settings = GitHubSettings(token=SecretStr("a-token-that-may-push"), repository="acme/not-there", base_url=gh.url)
    blind = GitHubTagger(settings, FakeClock(), pacing=timedelta())

    found = await blind.find_tag(TAG.name)
    await blind.close()

    assert isinstance(found, Unknown)
    assert found.reason is Gap.REFUSED


async def test_a_revoked_token_creates_nothing(gh: FakeGitHub, tagger: GitHubTagger) -> None:
    gh.revoke_token("a-token-that-may-push")

    outcome = await tagger.create_tag(TAG, WORDS)

    assert isinstance(outcome, Refused | Waiting)
    assert gh.tags == {}
