"""The thin, blocking side: asks the W&B SDK, and knows nothing of what the answers mean.

Every method is called in a worker thread. A new question never meets an old answer: the SDK hands the same run object
out for ever, so its cache is emptied first (wandb 0.31, run).
"""

import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bot.errors import DeadlineError, RefusedError, UnrecognisedError
from bot.settings import WandbSettings
from bot.sources.wandb.environment import prepare_environment, sdk_timeout_s
from bot.sources.wandb.failure import SERVICE, of_sdk

_HIGHEST_PAGE = 2**31 - 1
_SAMPLES = 500
NAMESAKES_READ = 20
_REPORTS_A_PAGE = 50


class WandbClient:
    """Asks through ``wandb.Api``; may be used by several threads."""

    def __init__(self, settings: WandbSettings) -> None:
        self._settings = settings
        self._idle: list[Any] = []
        self._guard = threading.Lock()
        self._first_use = threading.Lock()

    def run(self, entity: str | None, project: str, run_id: str) -> Any:
        """Return the run as it is now.

        Raises:
            NoSuchRunError: W&B answered that there is none.
            ServiceError: any other way in which there is no answer.
        """
        with self._api() as api:
            # The path's pieces are joined by the SDK's own rule; without an entity it takes the key's default one.
            return api.run("/".join(filter(None, (entity, project, run_id))))

    def named(self, entity: str | None, project: str, name: str) -> tuple[Any, ...]:
        """Return the first runs of a project with this display name, oldest first; without config and summary.

        Raises:
            NoSuchRunError: W&B answered that there is no such project.
            ServiceError: any other way in which there is no answer.
        """
        with self._api() as api:
            path = "/".join(filter(None, (entity, project)))
            runs = api.runs(path, filters={"display_name": name}, per_page=NAMESAKES_READ)
            return tuple(run for run, _ in zip(runs, range(NAMESAKES_READ), strict=False))

    def rows(
        self, run: Any, first: int, end: int, *, page: int, is_late: Callable[[], bool]
    ) -> tuple[list[Mapping[str, Any]], bool]:
        """Return the rows with ``first <= _step < end``, and whether these are all.

        Args:
            run: from ``run``.
            first: where to begin.
            end: where to stop.
            page: how many steps one question covers.
            is_late: whether to stop; what was read by then is returned, so that the next look goes on there.

        Raises:
            ServiceError: there is no answer.
        """
        found: list[Mapping[str, Any]] = []
        for row in self.scan(run, first, end, page=page):
            found.append(row)
            if is_late():
                return found, False
        return found, True

    def scan(self, run: Any, first: int, end: int, *, page: int) -> Iterator[Mapping[str, Any]]:
        """Yield the rows with ``first <= _step < end``; a page is asked for when its first row is wanted.

        Raises:
            ServiceError: there is no answer.
        """
        with _translated():
            yield from run.scan_history(
                page_size=min(page, _HIGHEST_PAGE),
                min_step=first,
                max_step=end,
                use_cache=False,  # a downloaded file is never read anew, although it grows
            )

    def reports(self, entity: str | None, project: str, most: int) -> list[Any]:
        """Return the first reports of a project as the SDK has them, ``most`` at most; drafts are not among them.

        Raises:
            ServiceError: there is no answer, also when there is no such project.
        """
        with self._api() as api:
            asked = api.reports("/".join(filter(None, (entity, project))), per_page=_REPORTS_A_PAGE)
            # The SDK would hand the same list out for ever, and flushing empties its cache of runs alone (wandb 0.31).
            api._reports.clear()  # noqa: SLF001 - there is no other way to ask anew
            return [report for report, _ in zip(asked, range(most), strict=False)]

    def sampled(self, run: Any) -> list[Mapping[str, Any]]:
        """Return some rows of the history by the other way there is; never all, and not the same ones each time.

        Raises:
            ServiceError: there is no answer.
        """
        with _translated():
            rows = run.history(samples=_SAMPLES, pandas=False)
            return [row for row in rows if isinstance(row, Mapping)]

    def close(self) -> None:
        """End the SDK's helper process, and with it every question that still waits for an answer; waits for that."""
        sdk = sys.modules.get("wandb")
        if sdk is not None:
            sdk.teardown()

    @contextmanager
    def _api(self) -> Iterator[Any]:
        api = self._take()
        with _translated():
            api.flush()
            yield api
        with self._guard:  # one that failed is not used again
            self._idle.append(api)

    def _take(self) -> Any:
        with self._guard:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _connect(self) -> Any:
        key = self._settings.api_key
        if key is None:
            raise RefusedError(SERVICE, "there is no key; set HERO_WANDB__API_KEY or [wandb] api_key_file")
        # Importing and starting the helper takes a second, and twice at once would start two.
        if not self._first_use.acquire(timeout=self._settings.deadline.total_seconds()):
            raise DeadlineError(SERVICE, "the SDK is still being started")
        try:
            sdk = self._sdk()
            with _translated():
                return sdk.Api(
                    overrides={"base_url": self._settings.base_url},
                    api_key=key.get_secret_value(),
                    timeout=sdk_timeout_s(self._settings),
                )
        finally:
            self._first_use.release()

    def _sdk(self) -> Any:
        try:
            prepare_environment(self._settings)
        except OSError as error:
            raise UnrecognisedError(SERVICE, f"no place for the SDK's files: {error.strerror}") from error
        try:
            # Not at the top: it takes a second, and reads the environment.
            sdk = importlib.import_module("wandb")
        except ImportError as error:
            raise RefusedError(SERVICE, f"the wandb package cannot be imported ({error}); install wandb") from error
        # After every scan it logs an error about the answer to its own tidying-up (wandb 0.31, run).
        logging.getLogger("wandb.sdk.mailbox").setLevel(logging.CRITICAL)
        return sdk


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (RefusedError, UnrecognisedError, DeadlineError):
        raise
    except Exception as error:
        # The SDK raises a dozen unrelated types, KeyError on a strange answer among them; all of them are one answer.
        raise of_sdk(error) from error
