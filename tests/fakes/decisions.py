"""Values that tests of the store and of what works on it need: a run's request, action, event and telling."""

from datetime import timedelta

from bot.model.action import Action
from bot.model.delivery import ChannelName, Target
from bot.model.event import Place, Said
from bot.model.person import Actor, Platform
from bot.model.plan import Grant, Request
from bot.model.planned import RelaunchPlan
from bot.model.record import Telling
from bot.model.update import Update, UpdateKind
from bot.model.value import JobId, PersonName, RunId
from bot.model.verdict import Severity
from tests.fakes.clock import START

RUN = RunId("hero-12d8b6f0")
ANN = PersonName("ann")


def a_plan(run_id: RunId = RUN) -> RelaunchPlan:
    return RelaunchPlan(
        run_id=run_id,
        instance="/ann/hero@2026-11-28T00:00:00Z",
        stop=None,
        command=("python", "train.py"),
        command_sha256="0" * 64,
        directory="/src/train",
        job_id=JobId("/ann/hero"),
        output_root="gs://bucket/hero",
        resume_from=None,
        source_sha=None,
        config_digest="1" * 64,
        changes=(),
    )


def a_request(number: int, run_id: RunId = RUN) -> Request:
    return Request(
        number=number,
        run_id=run_id,
        plan=a_plan(run_id),
        reason="The job ended with exit code 137",
        incident=None,
        dri=ANN,
        asked_at=START,
        expires_at=START + timedelta(hours=24),
    )


def an_action(number: int, request: Request) -> Action:
    grant = Grant(
        request=request.number,
        run_id=request.run_id,
        digest=request.digest,
        by=ANN,
        at=START,
        expires_at=request.expires_at,
    )
    return Action(number=number, run_id=request.run_id, plan=request.plan, grant=grant)


def a_reply(text: str) -> Said:
    actor = Actor(platform=Platform.SLACK, user_id="U0ANN")
    return Said(actor=actor, place=Place(conversation="C0HERO", thread="1.0"), text=text, said_at=START)


def a_telling(
    key: str,
    *,
    severity: Severity = Severity.INFO,
    slot: str = "",
    headline: str = "The run goes on",
    run_id: RunId | None = RUN,
    channels: tuple[ChannelName, ...] = (ChannelName.SLACK,),
    replaces: tuple[str, ...] = (),
) -> Telling:
    update = Update(kind=UpdateKind.NOTICE, run_id=run_id, at=START, severity=severity, headline=headline)
    return Telling(update=update, key=key, channels=channels, target=Target(slot=slot), replaces=replaces)
