"""Which reports of a W&B project name a run or a metric: they show the old run until somebody selects the new one."""

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

from bot.clock import Clock
from bot.errors import RefusedError, ServiceError, UnrecognisedError
from bot.model.reading import Known, Reading
from bot.model.rehearsal import Pin
from bot.settings import WandbSettings
from bot.sources.gaps import unknown_of
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE
from bot.threads import BoundedThreads

MOST = 500
"""So many reports are looked through; with more of them it cannot be said which ones pin the run."""


class WandbReports:
    """Looks through a project's reports; drafts are not told by W&B."""

    def __init__(self, settings: WandbSettings, clock: Clock, *, threads: BoundedThreads | None = None) -> None:
        self._settings = settings
        self._clock = clock
        self._client = WandbClient(settings)
        self._threads = threads or BoundedThreads(SERVICE, settings.threads)

    async def pinning(self, entity: str | None, project: str | None, words: Sequence[str]) -> Reading[tuple[Pin, ...]]:
        """Return each report that names one of ``words`` in its text, its run sets or its panels, once a word.

        Args:
            entity: whose project; without it that of the settings, else the key's own.
            project: which; without it that of the settings.
            words: ids of runs, or keys of metrics.
        """
        at = self._clock.now()
        try:
            pins = await self._threads.call(
                self._ask,
                entity or self._settings.entity,
                project or self._settings.project,
                tuple(words),
                deadline=self._settings.deadline,
            )
        except ServiceError as error:
            return unknown_of(error, at)
        return Known(value=pins, at=at)

    def _ask(self, entity: str | None, project: str | None, words: tuple[str, ...]) -> tuple[Pin, ...]:
        if not project:
            raise RefusedError(SERVICE, "no project is named; give [tracker] project in the contract")
        reports = self._client.reports(entity, project, MOST + 1)
        if len(reports) > MOST:
            raise UnrecognisedError(
                SERVICE, f"{project} has more than {MOST} reports; not all of them were looked through"
            )
        return tuple(
            Pin(where=address_of(report), what=word)
            for report in reports
            for word in words
            if names_word(_text_of(report), word)
        )


def names_word(text: str, word: str) -> bool:
    """Return whether a report's text has the word, and not only a longer one around it. Pure.

    Run sets also write a run as W&B's own node id, base64 of ``Run:v1:ID:PROJECT:ENTITY``.
    """
    # A run's id also stands in addresses, between slashes; a metric's key may have slashes of its own.
    inside = r"\w/-" if "/" in word else r"\w-"
    whole = rf"(?<![{inside}])(?<!\w\.){re.escape(word)}(?![{inside}])(?!\.\w)"
    return re.search(whole, text) is not None or any(
        node.split(":")[2:3] == [word] for node in _nodes(text) if node.startswith("Run:")
    )


def address_of(report: Any) -> str:
    """Return where people read a report; its title when the SDK makes no address of it."""
    return str(report.url or f"report {report.display_name!r}")[:2000]


def _nodes(text: str) -> list[str]:
    """Return what W&B's node ids in a text stand for."""
    found = []
    for code in dict.fromkeys(re.findall(r"\bUnVu[A-Za-z0-9+/]+", text)):
        padded = code + "=" * (-len(code) % 4)
        try:
            found.append(base64.b64decode(padded, validate=True).decode())
        except ValueError:
            continue
    return found


def _text_of(report: Any) -> str:
    return "\n".join((str(report.display_name), str(report.description), json.dumps(report.spec, ensure_ascii=False)))
