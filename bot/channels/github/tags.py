"""Tags of the repository that holds the runs' source: where a finished run is sealed.

docs.github.com, "Git database": an annotated tag is an object (POST git/tags) and a reference to it (POST git/refs).
The object alone is seen by nobody; the reference can be made once only: a second one is refused as existing (422).
"""

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

from github.Repository import Repository

from bot.channels.github.client import GitHubClient
from bot.channels.github.errors import BadTokenError, DeniedError, MovedError, UncertainError
from bot.channels.github.standing import unknown_of
from bot.clock import Clock
from bot.errors import ServiceError
from bot.model.action import Done, Refused, StepOutcome, Uncertain, Waiting
from bot.model.reading import Known, Reading
from bot.model.tag import Tag
from bot.settings import GitHubSettings


class GitHubTagger:
    """Implements ``bot.actions.sealing.Tagger``."""

    def __init__(self, settings: GitHubSettings, clock: Clock, *, pacing: timedelta = timedelta(seconds=1)) -> None:
        """Make it; nothing is asked yet. ``settings`` have a token and a repository."""
        source = settings.model_copy(update={"repository": settings.source_repository or settings.repository})
        self._client = GitHubClient(source, clock, pacing=pacing)
        self._clock = clock

    @property
    def repository(self) -> str:
        return self._client.repository

    async def close(self) -> None:
        self._client.close()

    async def find_tag(self, name: str) -> Reading[Tag | None]:
        """Ask for a tag and for the commit behind it."""

        def ask(repository: Repository) -> Tag:
            reference = repository.get_git_ref(f"tags/{name}").complete()
            target = reference.object
            sha = repository.get_git_tag(target.sha).object.sha if target.type == "tag" else target.sha
            return Tag(name=name, sha=sha)

        at = self._clock.now()
        try:
            return Known(value=await self._client.read(ask), at=at)
        except DeniedError as error:
            # A repository that may not be seen is "not found" too; only one that answers for itself has no such tag.
            if error.status == HTTPStatus.NOT_FOUND:
                return await self._none_if_repository_is_there(error)
            return unknown_of(error, at)
        except ServiceError as error:
            return unknown_of(error, at)

    async def _none_if_repository_is_there(self, missing: DeniedError) -> Reading[Tag | None]:
        at = self._clock.now()
        try:
            await self._client.ask_repository()
        except DeniedError:
            return unknown_of(missing, at)
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=None, at=at)

    async def create_tag(self, tag: Tag, message: str) -> StepOutcome:
        """Create the tag's object, then the reference that makes it a tag."""

        def ask(repository: Repository, enter: Callable[[], None]) -> str:
            enter()
            made = repository.create_git_tag(tag=tag.name, message=message, object=tag.sha, type="commit")
            repository.create_git_ref(f"refs/tags/{tag.name}", made.sha)
            return str(made.sha)

        try:
            await self._client.write(ask)
        except (UncertainError, MovedError) as error:
            return Uncertain(detail=f"whether {tag.name} was created is not known: {error.detail}")
        except DeniedError as error:
            return _denied(error, tag, self.repository)
        except BadTokenError as error:
            return Refused(detail=f"{error.detail}; no tag was created")
        except ServiceError as error:
            return Waiting(detail=error.detail)
        return Done(detail=f"{tag.name} points to {tag.sha} in {self.repository}")


def _denied(error: DeniedError, tag: Tag, repository: str) -> StepOutcome:
    """An existing reference is looked at anew; every other no is final."""
    if error.status == HTTPStatus.UNPROCESSABLE_ENTITY and "exists" in error.message:
        return Uncertain(detail=f"{tag.name} exists in {repository} by now")
    fix = "the token needs `contents: write`" if error.status == HTTPStatus.FORBIDDEN else f"is {tag.sha} pushed there?"
    return Refused(detail=f"{repository} refused the tag {tag.name}: {error.detail}; {fix}")
