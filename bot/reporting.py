"""Keeps the report of each trial where people can open it: a page, a picture, and the comparison as JSON."""

import contextlib
import json
import os
import re
import tempfile
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import quote

import structlog

from bot.clock import Clock
from bot.errors import BusyError, DeadlineError
from bot.model.conduct import Trial
from bot.model.contract import RUN_ID_PATTERN, Contract
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.series import History
from bot.model.trial import Comparison, Window
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.render.trial import comparison_row
from bot.render.trial_page import PageFacts, TrialPages
from bot.replay.coverage import attempts_of, logged_in
from bot.replay.overlay import overlay_png
from bot.replay.panels import shown_figures
from bot.threads import BoundedThreads

log = structlog.get_logger()

PAGE, PICTURE, COMPARISON = "index.html", "overlay.png", "comparison.json"

_DRAWING = timedelta(seconds=45)
"""The first picture of a process takes some three seconds, on a machine that is busy many more."""
_WRITING = timedelta(seconds=20)
_LOOKS = 5
"""A report is believed for so many looks of the trial."""
_LEAST_BELIEF = timedelta(minutes=5)
_MOST_FIGURES = 24


class TrialReports:
    """Writes reports below a directory, ``RUN/CHILD/index.html`` and what belongs to it, one whole file at a time."""

    def __init__(
        self,
        directory: Path,
        public_url: str | None,
        clock: Clock,
        *,
        timezone: str = "UTC",
        redactor: Redactor | None = None,
    ) -> None:
        """Take where reports go; nothing is written yet.

        Args:
            directory: made when it is missing.
            public_url: under which Hero's HTTP is reached from outside; None when it is not.
            clock: says when a report was made.
            timezone: in which people read times.
            redactor: hides the secrets that the settings and contracts hold.
        """
        self._directory = directory
        self._public_url = public_url.rstrip("/") if public_url else None
        self._clock = clock
        self._timezone = timezone
        self._pages = TrialPages(redactor.text if redactor else str)
        self._redactor = redactor or Redactor()
        self._drawing = BoundedThreads("drawing of reports", 2)
        self._writing = BoundedThreads("writing of reports", 2)

    async def publish(
        self,
        contract: Contract,
        trial: Trial,
        control: History,
        child: History,
        found: Comparison | None,
        *,
        links: tuple[tuple[str, str], ...] = (),
        unknown: tuple[str, ...] = (),
        until: datetime | None = None,
    ) -> Reading[str]:
        """Write the report of a trial anew, and return where it is.

        A report without its picture is still a report: when that cannot be drawn, the page says why.

        Args:
            contract: of the old run.
            trial: as it is now.
            control: what the old run logged in the window and around it.
            child: what the child logged; nothing yet, perhaps.
            found: what was judged; None before the child's first step.
            links: what to open for more, as label and address: the issue, the tracker.
            unknown: what could not be read this time, each with its reason.
            until: until when to believe it; None for a few looks of the trial.

        Returns:
            The address of the page, or the path of its file when nobody outside reaches Hero. Unknown when it cannot be
            written.
        """
        at = self._clock.now()
        run, child_id = contract.run_id, trial.plan.child_run_id
        if not (is_name(run) and is_name(child_id)):
            return Unknown(reason=Gap.REFUSED, detail="a run id that is no name of a directory has no report", at=at)
        window = found.window if found else window_of(trial)
        picture, why = await self._draw(run, trial, (control, child), window, found)
        gated = tuple(gate.metric for gate in contract.trial.gates)
        facts = PageFacts(
            run_id=run,
            trial=trial,
            window=window,
            found=found,
            logged=logged_in(control, child, window, shown_figures(control, child, gated, _MOST_FIGURES)),
            notes=(*attempts_of("control", control, window), *attempts_of("child", child, window)),
            unknown=unknown,
            links=links,
            made_at=at,
            until=until or at + max(_LEAST_BELIEF, _LOOKS * contract.trial.look),
            timezone=self._timezone,
            picture=why,
        )
        return await self._keep(facts, picture)

    async def _draw(
        self, run: RunId, trial: Trial, histories: tuple[History, History], window: Window, found: Comparison | None
    ) -> tuple[bytes | None, str]:
        """Return the picture, or None and why there is none."""
        control, child = histories
        gates = found.gates if found else ()
        title = f"{trial.plan.child_run_id} against {run}\nsteps {window.first_step} to {window.last_step}"
        try:
            draw = partial(overlay_png, control, child, window, gates, title)
            return await self._drawing.call(draw, deadline=_DRAWING), ""
        except (BusyError, DeadlineError) as error:
            return None, str(error)
        except Exception as error:  # a fault in drawing must not keep the numbers from people
            log.exception("trial_picture_broke", run_id=run)
            return None, f"drawing it failed with {type(error).__name__}; the log has more"

    async def _keep(self, facts: PageFacts, picture: bytes | None) -> Reading[str]:
        """Render and write everything; the page comes last, so that what it shows is there."""
        at, child = facts.made_at, facts.trial.plan.child_run_id
        place = self._directory / facts.run_id / child
        try:
            await self._writing.call(self._write, place, facts, picture, deadline=_WRITING)
        except OSError as error:
            return Unknown(reason=Gap.REFUSED, detail=f"the report cannot be written: {error}"[:2000], at=at)
        except BusyError as error:
            return Unknown(reason=Gap.BUSY, detail=str(error)[:2000], at=at)
        except DeadlineError as error:
            return Unknown(reason=Gap.TIMEOUT, detail=str(error)[:2000], at=at)
        if self._public_url is None:
            return Known(value=str(place / PAGE), at=at)
        return Known(value=f"{self._public_url}/trials/{quote(facts.run_id)}/{quote(child)}/", at=at)

    def _write(self, place: Path, facts: PageFacts, picture: bytes | None) -> None:
        page = self._pages.trial(facts).encode()
        place.mkdir(parents=True, exist_ok=True)
        if picture is None:
            (place / PICTURE).unlink(missing_ok=True)  # an old one beside new numbers would mislead
        else:
            _replace(place / PICTURE, picture)
        row = self._redactor.value(report_row(facts))
        _replace(place / COMPARISON, json.dumps(row, indent=2, ensure_ascii=False, allow_nan=False).encode())
        _replace(place / PAGE, page)


def window_of(trial: Trial) -> Window:
    """Return the steps that a trial compares: so many from the handoff checkpoint's on."""
    return Window(first_step=trial.plan.window_first, steps=trial.plan.window_steps)


def report_row(facts: PageFacts) -> dict[str, object]:
    """Return what outsiders rely on: that of ``hero trial compare --json``, and when it was so.

    Before the child's first step ``outcome`` is null and there are no gates.
    """
    control, child = facts.run_id, facts.trial.plan.child_run_id
    window = {"first_step": facts.window.first_step, "last_step": facts.window.last_step, "steps": facts.window.steps}
    found: dict[str, object] = {"outcome": None, "control": control, "child": child, "window": window}
    if facts.found is not None:
        found = comparison_row(control, child, facts.found)
    return found | {
        "stage": facts.trial.stage.value,
        "made_at": facts.made_at.isoformat(),
        "believe_until": None if facts.trial.is_over else facts.until.isoformat(),
        "unknown": list(facts.unknown),
    }


def is_name(text: str) -> bool:
    """Say whether a run id is the name of one directory and leads nowhere else."""
    return bool(re.fullmatch(RUN_ID_PATTERN, text)) and text not in {".", ".."}


def _replace(path: Path, content: bytes) -> None:
    """Put a whole file in the place of another, or of none; who reads meanwhile gets the one or the other.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
