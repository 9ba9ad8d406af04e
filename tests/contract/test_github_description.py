"""The fake GitHub against GitHub's own OpenAPI description: it notices what the description does not allow."""

from collections.abc import Callable, Iterator

import pytest
from github import Auth, Github
from github.GithubException import GithubException
from github.Repository import Repository

from tests.fakes.github import FakeGitHub
from tests.fakes.openapi import Description, github_description

COMMENTS = "/repos/acme/training/issues/1/comments"


@pytest.fixture
def gh() -> Iterator[FakeGitHub]:
    with FakeGitHub(marker=None) as fake:
        fake.open_issue("a run")
        yield fake


@pytest.fixture
def described() -> Description:
    return github_description()


def wrong(described: Description, verb: str, path: str, body: object, query: dict[str, str] | None = None) -> list[str]:
    endpoint = described.find(verb, path)
    assert endpoint is not None
    return [each.partition(": ")[2] for each in described.wrong_with_request(endpoint, query or {}, body)]


@pytest.mark.parametrize(
    ("asked", "body", "query", "said"),
    [
        (("POST", COMMENTS), {"body": "x"}, {}, []),
        (("POST", COMMENTS), {}, {}, ["body.body is missing"]),
        (("POST", COMMENTS), None, {}, ["there is no body"]),
        (("POST", COMMENTS), {"body": 5}, {}, ["body.body is int and not string"]),
        (("POST", COMMENTS), {"body": "x", "bdoy": "y"}, {}, ["body.bdoy is not described"]),
        (("GET", COMMENTS), None, {"since": "2026-11-29T03:00:00Z", "per_page": "100"}, []),
        (("GET", COMMENTS), None, {"since": "yesterday"}, ["query since is 'yesterday' and no date-time"]),
        (("GET", COMMENTS), None, {"after": "1"}, ["query after is not described"]),
        (("GET", COMMENTS), {"body": "x"}, {}, ["a body is not described"]),
        (("PATCH", "/repos/acme/training/issues/1"), {"state": "shut"}, {}, ["body.state is 'shut' and none of"]),
        (("POST", "/repos/acme/training/issues/1/labels"), {"labels": []}, {}, ["body.labels has 0 items"]),
        (("GET", "/repos/acme/training/issues"), None, {"state": "all", "direction": "down"}, ["query direction is"]),
    ],
)
def test_a_request_is_held_against_its_endpoint(
    asked: tuple[str, str], body: object, query: dict[str, str], said: list[str]
) -> None:
    found = wrong(github_description(), *asked, body, query)

    assert len(found) == len(said), found
    assert all(each.startswith(start) for each, start in zip(found, said, strict=True)), found


def test_paths_are_told_apart_as_github_does(described: Description) -> None:
    def name(path: str) -> str:
        found = described.find("GET", path)
        return found.name.removeprefix("GET /repos/{owner}/{repo}") if found else ""

    assert name("/repos/a/b/issues/comments") == "/issues/comments"
    assert name("/repos/a/b/issues/7") == "/issues/{issue_number}"
    assert name("/repos/a/b/issues/seven") == ""
    assert name("/repos/a/b/git/ref/tags/hero-run/x") == "/git/ref/{ref}"
    assert described.find("DELETE", "/repos/a/b") is None


def test_an_answer_is_held_against_its_endpoint(described: Description) -> None:
    endpoint = described.find("POST", COMMENTS)
    assert endpoint is not None

    def said(status: int, payload: object) -> list[str]:
        return [each.partition(": ")[2] for each in described.wrong_with_answer(endpoint, status, payload)]

    whole = described.completed("issue-comment", {"body": "x"})
    assert said(201, whole) == []
    assert said(201, {**whole, "id": "7"}) == ["answer.id is str and not integer"]
    assert said(201, {name: value for name, value in whole.items() if name != "html_url"}) == [
        "answer.html_url is missing"
    ]
    assert said(200, whole) == ["this status is not described"]
    assert said(403, {"message": "no"}) == []
    assert said(403, "no") == ["answer is str and not object"]


def ask_for_releases(repository: Repository) -> object:
    return list(repository.get_releases())


def misspell(repository: Repository) -> object:
    return repository.requester.requestJsonAndCheck("POST", COMMENTS, input={"body": "x", "tags": []})


@pytest.mark.parametrize(
    ("act", "mistake"),
    [
        (ask_for_releases, "GitHub's description has no such endpoint"),
        (misspell, "body.tags is not described"),
    ],
)
def test_what_a_client_does_wrong_is_a_mistake_of_the_test(
    gh: FakeGitHub, act: Callable[[Repository], object], mistake: str
) -> None:
    client = Github(base_url=gh.url, auth=Auth.Token(gh.token), retry=None, lazy=True)
    try:
        act(client.get_repo("acme/training"))
    except GithubException:
        pass
    finally:
        client.close()

    assert any(mistake in each for each in gh.mistakes), gh.mistakes
