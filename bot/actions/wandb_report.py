"""Makes W&B's own report of a trial, once: both runs over one another (deploy checklist, "Execute the trial", 4).

W&B makes another report at each save, and wandb-core sends again what was answered with an error, also when it took
effect (wandb-workspaces 0.4, run). So nothing is ever sent twice here: the title tells the report, it is looked for
first, and after an answer that was lost it is found at the next try.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.actions.submission_lock import SubmissionLocks, SubmissionUnderWayError
from bot.actions.wandb_program import WandbProgram
from bot.clock import Clock
from bot.errors import DeadlineError, RefusedError, ServiceError, UnreachableError, UnrecognisedError
from bot.model.conduct import Trial
from bot.model.contract import Contract, MetricsContract
from bot.model.durations import say_duration
from bot.model.gate import parse_gate
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.trial import Window
from bot.model.value import RunId
from bot.redaction import Redactor
from bot.replay.panels import known_figures
from bot.settings import WandbSettings
from bot.sources.gaps import unknown_of
from bot.sources.wandb.client import WandbClient
from bot.sources.wandb.failure import SERVICE
from bot.sources.wandb.finding import find_run
from bot.sources.wandb.reports import MOST, address_of
from bot.sources.wandb.rows import TRACKER_STEP
from bot.sources.wandb.state import parse_run
from bot.threads import BoundedThreads

PROGRAM = Path(__file__).with_name("wandb_report_program.py")
PACKAGE = "wandb_workspaces"
DEADLINE = timedelta(seconds=45)
"""For the SDK's part; a report takes a few seconds."""
_TITLE_CHARS = 128
"""W&B's own limit."""
_MOST_PANELS = 24
_WORDS = ("loss", "tokens_per_second", "step_time_s", "grad_norm", "lr")


class WandbReporter:
    """Implements ``bot.conducting.TrackerReports``."""

    def __init__(
        self,
        settings: WandbSettings,
        clock: Clock,
        *,
        locks: Path,
        redactor: Redactor,
        deadline: timedelta = DEADLINE,
        threads: BoundedThreads | None = None,
    ) -> None:
        """Take the parts.

        Args:
            settings: for the server, the key, and the deadline of a look.
            clock: for when a look was.
            locks: a directory on this machine for lock files.
            redactor: for what the SDK says.
            deadline: how long the SDK may take; then it is killed, and the next try looks for the report.
            threads: for looks.
        """
        self._settings = settings
        self._clock = clock
        self._client = WandbClient(settings)
        self._threads = threads or BoundedThreads(SERVICE, settings.threads)
        self._locks = SubmissionLocks(locks)
        self._program = WandbProgram(settings, deadline=deadline, redactor=redactor)

    async def publish(self, contract: Contract, child: Contract, trial: Trial) -> Reading[str]:
        """Return the address of the trial's report, which is made when there is none of its title."""
        at = self._clock.now()
        try:
            with self._locks.hold(RunId(f"report-{trial.plan.child_run_id}")) as lock:
                return Known(value=await self._publish(contract, child, trial, lock), at=at)
        except SubmissionUnderWayError:
            return Unknown(reason=Gap.BUSY, detail="an earlier try to make the report is still under way", at=at)
        except OSError as error:
            return Unknown(reason=Gap.BROKEN, detail=f"the report cannot be begun: {error.strerror or error}", at=at)
        except ServiceError as error:
            return unknown_of(error, at)

    async def _publish(self, contract: Contract, child: Contract, trial: Trial, lock: int) -> str:
        if importlib.util.find_spec(PACKAGE) is None:
            raise RefusedError(SERVICE, "wandb-workspaces is missing; install pip install 'hero-bot[wandb-reports]'")
        title = title_of(trial)
        order = await self._ask(self._prepare, contract, child, trial, title)
        if isinstance(order, str):
            return order
        ended = await self._program.run(PROGRAM, order, repeats=False, pass_fds=(lock,))
        said = self._program.said(ended)
        match ended.exit_code:
            case 0:
                # Its address is taken from where the next try would find it, so that it is the same one.
                return await self._ask(self._find, order["entity"], order["project"], title) or _printed(ended.stdout)
            case None:
                limit = say_duration(self._program.deadline)
                raise DeadlineError(SERVICE, f"the report was not made in {limit}: {said}")
            case code:
                raise UnreachableError(SERVICE, f"the report was not made (exit code {code}): {said}")

    async def _ask[*A, R](self, ask: Callable[[*A], R], *args: *A) -> R:
        return await self._threads.call(ask, *args, deadline=self._settings.deadline)

    def _prepare(self, contract: Contract, child: Contract, trial: Trial, title: str) -> dict[str, Any] | str:
        """Return the address of the report that there is, or what is to be made. Blocks."""
        run = find_run(self._client, self._settings, contract.tracker)
        beside = find_run(self._client, self._settings, child.tracker)
        found = self._find(run.entity, run.project, title)
        if found:
            return found
        key = parse_run(run, contract.metrics).step_key
        keys = getattr(run, "historyKeys", None)
        logged = (
            frozenset(keys["keys"]) if isinstance(keys, Mapping) and isinstance(keys.get("keys"), Mapping) else None
        )
        if logged is None:
            raise UnrecognisedError(SERVICE, f"{run.id} has no keys, so there is nothing to show")
        return {
            "entity": run.entity,
            "project": run.project,
            "title": title,
            "runs": [{"label": f"control {run.id}", "id": run.id}, {"label": f"child {beside.id}", "id": beside.id}],
            **content_of(contract.metrics, trial, logged, "Step" if key == TRACKER_STEP else key),
        }

    def _find(self, entity: str, project: str, title: str) -> str:
        """Return the address of the oldest report of that title; empty when there is none. Blocks."""
        reports = self._client.reports(entity, project, MOST + 1)
        same = [report for report in reports if report.display_name == title]
        if same:
            return address_of(min(same, key=lambda report: str(report.created_at)))
        if len(reports) > MOST:
            raise RefusedError(
                SERVICE, f"{project} has more than {MOST} reports, so whether it is made already is unclear"
            )
        return ""


def title_of(trial: Trial) -> str:
    """Return what the trial's report is called: the same each time, and no other trial's. Pure."""
    window = _window(trial)
    child, behind = trial.plan.child_run_id, f", steps {window.first_step} to {window.last_step}"
    room = _TITLE_CHARS - len(f"Trial {behind}")
    if len(child) > room:
        digest = hashlib.sha256(child.encode()).hexdigest()[:8]
        child = RunId(f"{child[: room - 9]}-{digest}")
    return f"Trial {child}{behind}"


def content_of(names: MetricsContract, trial: Trial, logged: frozenset[str], x: str) -> dict[str, Any]:
    """Return text and panels: the gates' figures over the window, and all that is of interest over a wider one. Pure.

    Args:
        names: the run's own words for its figures.
        trial: for window and gates.
        logged: every key of the run's history; what is not among them is named in the text.
        x: the key of the horizontal axis.
    """
    window = _window(trial)
    metrics = tuple(dict.fromkeys(parse_gate(gate).metric for gate in trial.plan.gates))
    gates = {metric: _logged_as(names, metric, logged) for metric in metrics}
    shown = tuple(dict.fromkeys(filter(None, gates.values())))
    own = filter(None, (_logged_as(names, word, logged) for word in (*_WORDS, *names.further())))
    wider = list(dict.fromkeys((*shown, *own, *known_figures(logged))))[:_MOST_PANELS]
    missing = [metric for metric, key in gates.items() if key is None]
    text = [
        f"Control: {trial.plan.run_id}. Child: {trial.plan.child_run_id}.",
        f"Compared are steps {window.first_step} to {window.last_step}, from the handoff checkpoint on.",
        "Rows before that are inherited by the child and prove nothing of it.",
        *(f"Gate: {gate}" for gate in trial.plan.gates),
        *([f"Not logged here: {', '.join(missing)}"] if missing else []),
    ]
    steps = window.steps
    wide = (max(0, window.first_step - steps), window.last_step + steps)
    grids = (
        ("The gates over the window", (window.first_step, window.last_step), list(shown)),
        ("Wider context", wide, wider),
    )
    return {
        "text": text,
        "grids": [
            {"heading": heading, "x": x, "range": span, "metrics": keys} for heading, span, keys in grids if keys
        ],
    }


def _window(trial: Trial) -> Window:
    return Window(first_step=trial.plan.window_first, steps=trial.plan.window_steps)


def _logged_as(names: MetricsContract, word: str, logged: frozenset[str]) -> str | None:
    """Return under which key a figure is logged; None when it is under none."""
    given: Iterable[str] = names.further().get(word, ())
    own = getattr(names, word, None) if word in MetricsContract.model_fields else None
    return next((key for key in (own, *given, word) if isinstance(key, str) and key in logged), None)


def _printed(stdout: str) -> str:
    return str(json.loads(stdout.strip().splitlines()[-1])["url"])
