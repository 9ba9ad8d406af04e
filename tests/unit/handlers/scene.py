"""A run on record with its people, its conversations and a request that waits: what handlers are tested on."""

from datetime import datetime, timedelta
from typing import Any

from bot.actions.ports import Submission
from bot.actions.relaunch import plan_relaunch, shape_of
from bot.model.action import Action
from bot.model.delivery import ChannelName, Posted
from bot.model.event import Place, Pressed, Said
from bot.model.person import Actor, Person, Platform, Standing
from bot.model.plan import Request
from bot.model.planned import NoPlan, RelaunchPlan
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision, Record
from bot.model.run import Run, RunState
from bot.model.snapshot import Snapshot
from bot.model.update import UpdateKind
from bot.model.value import JobId, PersonName
from bot.redaction import Redactor
from handlers.context import Context, Rules
from tests.fakes import snapshots
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT, JOB, RUN

ADA, BOB = PersonName("ada"), PersonName("bob")
PEOPLE = (
    Person(name=ADA, slack="U0ADA", github="ada", github_id=11, console=True),
    Person(name=BOB, slack="U0BOB", github="bob", github_id=22),
    Person(name=PersonName("eve"), slack="U0TWIN"),
    Person(name=PersonName("eva"), slack="U0TWIN", github="renamed"),
)
RULES = Rules(
    cadence=timedelta(minutes=15),
    request_expires=timedelta(hours=24),
    request_reminder=timedelta(hours=4),
    status_every=timedelta(hours=24),
)
EVERYWHERE = (ChannelName.SLACK, ChannelName.GITHUB, ChannelName.CONSOLE)
MEMBER: Reading[Standing] = Known(value=Standing(is_member=True, is_bot=False), at=AT)
GUEST: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="a guest"), at=AT)
A_BOT: Reading[Standing] = Known(value=Standing(is_member=True, is_bot=True), at=AT)
DARK: Reading[Standing] = Unknown(reason=Gap.TIMEOUT, detail="slack did not answer in time", at=AT)

POSTED = (
    Posted(channel=ChannelName.SLACK, run_id=RUN, slot="thread", message_id="C0HERO:100.000100"),
    Posted(channel=ChannelName.SLACK, run_id=RUN, slot="request:7", message_id="C0HERO:200.000200"),
    Posted(channel=ChannelName.GITHUB, run_id=RUN, slot="thread", message_id="4"),
    Posted(channel=ChannelName.GITHUB, run_id=RUN, slot="request:7", message_id="2000"),
    Posted(channel=ChannelName.CONSOLE, run_id=RUN, slot="thread", message_id=f"console:{RUN}"),
    Posted(channel=ChannelName.CONSOLE, run_id=RUN, slot="request:7", message_id="console:2000"),
)
SLACK_AFTER, GITHUB_AFTER, CONSOLE_AFTER = "200.000201", "2001", "2001"
"""Messages that came right after the request's own."""


def context(**fields: Any) -> Context:
    """Return the run's surroundings; ``fields`` are the contract's, ``rules`` and ``people`` may be given too."""
    rules, people = fields.pop("rules", RULES), fields.pop("people", PEOPLE)
    channels = fields.pop("channels", EVERYWHERE)
    return Context(contract=snapshots.contract(**fields), people=people, channels=channels, rules=rules)


def request(number: int = 7, **fields: Any) -> Request:
    given: dict[str, Any] = {
        "number": number,
        "run_id": RUN,
        "plan": a_plan(RUN),
        "reason": "the job failed with exit code 137",
        "incident": 1,
        "dri": ADA,
        "asked_at": AT,
        "expires_at": AT + timedelta(hours=24),
    }
    return Request(**given | fields)


def record(*requests: Request, **fields: Any) -> Record:
    given: dict[str, Any] = {
        "run": Run(run_id=RUN, state=RunState.FAILED, last_checked_at=AT),
        "instances": (snapshots.instance(),),
        "requests": requests,
        "posted": POSTED,
        "next_incident": 5,
        "next_request": 9,
        "next_action": 3,
    }
    return Record(**given | fields)


def slack(user: str = "U0ADA", **fields: Any) -> Actor:
    return Actor(platform=Platform.SLACK, user_id=user, **fields)


def github(login: str = "ada", number: int = 11, **fields: Any) -> Actor:
    return Actor(platform=Platform.GITHUB, user_id=str(number), login=login, **fields)


def console() -> Actor:
    return Actor(platform=Platform.CONSOLE, user_id="root")


def place(platform: Platform, message: str) -> Place:
    match platform:
        case Platform.SLACK:
            return Place(conversation="C0HERO", thread="100.000100", message=message)
        case Platform.GITHUB:
            return Place(conversation="4", message=message)
        case Platform.DISCORD:
            return Place(conversation="100000000000000000", message=message)
        case Platform.CONSOLE:
            return Place(conversation="console", thread=RUN, message=message)


_AFTER = {Platform.SLACK: SLACK_AFTER, Platform.GITHUB: GITHUB_AFTER, Platform.CONSOLE: CONSOLE_AFTER}


def said(
    text: str,
    actor: Actor | None = None,
    message: str | None = None,
    *,
    at: datetime = AT + timedelta(minutes=5),
    is_edited: bool = False,
) -> Said:
    actor = actor or slack()
    where = place(actor.platform, _AFTER[actor.platform] if message is None else message)
    return Said(actor=actor, place=where, text=text, said_at=at, is_edited=is_edited)


def pressed(
    request_name: str = "R7",
    actor: Actor | None = None,
    *,
    is_approval: bool = True,
    at: datetime = AT + timedelta(minutes=5),
) -> Pressed:
    where = Place(conversation="C0HERO", thread="100.000100", message="200.000200")
    return Pressed(actor=actor or slack(), place=where, request=request_name, is_approval=is_approval, said_at=at)


class OneCommand:
    """The pure half of a launcher: every launch of the run is the contract's command as one job."""

    def prepare(self, contract: Any, *, number: int) -> Submission:
        return Submission(job_id=JobId(JOB), command=contract.command)


def planner(surroundings: Context) -> Any:
    """Return what makes the plan, as the dispatcher does."""

    def make(seen: Snapshot, known: Record) -> RelaunchPlan | NoPlan:
        launcher: Any = OneCommand()
        return plan_relaunch(surroundings.contract, seen, known.instance, launcher, Redactor())

    return make


def shape(surroundings: Context) -> dict[str, str]:
    return shape_of(surroundings.contract, Redactor())


def kinds(decision: Decision) -> list[UpdateKind]:
    """Return what is told, but for the status that is only edited."""
    return [t.update.kind for t in decision.tell if t.update.kind is not UpdateKind.LIVE_STATUS]


def grants(decision: Decision) -> tuple[Action, ...]:
    return tuple(action for action in decision.actions if action.state == "granted")
