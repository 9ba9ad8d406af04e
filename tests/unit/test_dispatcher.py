"""Events from outside become decisions: each once, in one transaction, whatever arrives twice, at once or broken."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import bot.intake
from bot.contracts import BadContract
from bot.dispatcher import Dispatcher
from bot.errors import StoreError, StoreFullError
from bot.model.action import ActionState, StepName
from bot.model.audit import ATTEMPTS
from bot.model.delivery import ChannelName, Delivery, Never, SendOutcome, Sent, Target
from bot.model.event import Commanded, Place, RunChecked, Unsaid
from bot.model.person import Actor, Standing
from bot.model.plan import RequestState
from bot.model.planned import RelaunchPlan
from bot.model.preflight import PreflightFinding, PreflightReport, Weight
from bot.model.reading import Reading
from bot.model.record import Decision, Record
from bot.model.run import RunState
from bot.model.update import Update, UpdateKind
from bot.model.value import CheckId, RunId
from bot.redaction import Redactor
from bot.store.store import Store
from handlers.reply import decide_pressed
from tests.fakes.clock import FakeClock
from tests.fakes.snapshots import AT, JOB, RUN, checkpoint, contract, failed_job, instance, job, later, snapshot
from tests.unit.handlers.scene import (
    A_BOT,
    GUEST,
    MEMBER,
    PEOPLE,
    POSTED,
    RULES,
    OneCommand,
    github,
    pressed,
    record,
    request,
    said,
    slack,
)

OTHER = RunId("other-run")
SLACK, GITHUB = ChannelName.SLACK, ChannelName.GITHUB


class Platform:
    """A channel of which only the question who somebody is gets answered, as the test says."""

    def __init__(self, name: ChannelName) -> None:
        self.name = name
        self.standing: Reading[Standing] = MEMBER
        self.is_hung = False
        self.asked: list[Actor] = []

    async def identify(self, actor: Actor) -> Reading[Standing]:
        self.asked.append(actor)
        if self.is_hung:
            await asyncio.Event().wait()
        return self.standing

    async def send(self, _delivery: Delivery) -> SendOutcome:
        return Sent(message_id="1")


class Desk:
    """A dispatcher over the real store, with one run on record that waits for ada's answer to R7."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.slack, self.github = Platform(SLACK), Platform(GITHUB)
        self.contracts: dict[RunId, Any] = {RUN: contract()}
        self.soon: list[RunId] = []
        self.alarms: list[StoreError] = []
        self.dispatcher = self.a_new_one()

    def a_new_one(self) -> Dispatcher:
        channels: Any = {SLACK: self.slack, GITHUB: self.github}
        launchers: Any = {"iris": OneCommand()}
        contracts: Any = self
        self.dispatcher = Dispatcher(
            store=self.store,
            contracts=contracts,
            launchers=launchers,
            channels=channels,
            people=PEOPLE,
            rules=RULES,
            redactor=Redactor(),
            clock=self.clock,
            check_soon=self.soon.append,
            alarm=self.alarms.append,
            lease=lambda: None,
        )
        return self.dispatcher

    def load(self, run_id: RunId) -> Any:
        return self.contracts[run_id]

    def run_ids(self) -> tuple[RunId, ...]:
        return tuple(self.contracts)

    async def put(self, known: Record) -> None:
        decision = Decision(
            run=known.run,
            instances=known.instances,
            incidents=known.incidents,
            requests=known.requests,
            actions=known.actions,
        )
        async with self.store.transaction() as tx:
            await tx.apply(decision, RUN, AT)
        for posted in POSTED:
            await self.store.save_posted(posted)

    async def receive(self, payload: Any, event_id: str = "Ev1", source: str = "slack") -> bool:
        return await self.store.receive(source, event_id, payload)

    async def record(self, run_id: RunId = RUN) -> Record:
        found = await self.store.record(run_id)
        assert found is not None
        return found

    async def told(self, channel: ChannelName = SLACK) -> list[Update]:
        return [delivery.update for delivery in await self.store.due_deliveries(channel, limit=100)]

    async def answers(self, channel: ChannelName = SLACK) -> list[str]:
        return [update.headline for update in await self.told(channel) if update.kind is UpdateKind.ANSWER]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Draw no tracebacks: that costs more than the tests."""
    with capture_logs():
        yield


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    clock = FakeClock(later(6))
    store = await Store.open(f"sqlite:///{tmp_path}/hero.db", clock, Redactor())
    desk = Desk(store, clock)
    await desk.put(record(request()))
    yield desk
    await store.close()


# Once each


async def test_the_same_event_thrice_is_one_decision_also_over_a_restart(desk: Desk) -> None:
    """Field report R02."""
    yes = said("approve R7")
    first = await desk.receive(yes)
    second = await desk.receive(yes)
    assert await desk.dispatcher.handle_pending() == 1
    desk.a_new_one()
    third = await desk.receive(yes)
    assert await desk.dispatcher.handle_pending() == 0

    assert (first, second, third) == (True, False, False)
    known = await desk.record()
    assert [a.state for a in known.actions] == [ActionState.GRANTED]
    assert [r.state for r in known.requests] == [RequestState.GRANTED]
    assert await desk.answers() == []


async def test_two_yeses_at_once_over_two_platforms_are_one_grant_and_the_other_hears_so(desk: Desk) -> None:
    """Field report R43."""
    await desk.receive(said("approve R7"), "Ev1", "slack")
    await desk.receive(said("approve R7", github()), "c2001", "github")
    await desk.receive(pressed(), "Ev2", "slack")

    await asyncio.gather(desk.dispatcher.handle_pending(), desk.a_new_one().handle_pending(), return_exceptions=True)
    for _ in range(5):
        desk.clock.advance(timedelta(seconds=10))
        await desk.dispatcher.handle_pending()

    known = await desk.record()
    assert len(known.actions) == 1
    answers = await desk.answers() + await desk.answers(GITHUB)
    assert len(answers) == 2
    assert all("R7 was already handled: approved by ada" in answer for answer in answers)
    assert len({" in Slack at " in answer for answer in answers}) == 1
    assert (await desk.store.counts())["inbox_pending"] == 0


async def test_what_is_said_elsewhere_decides_nothing_and_only_a_decision_is_noted_and_answered(desk: Desk) -> None:
    elsewhere = said("approve R7")
    place = elsewhere.place.model_copy(update={"thread": "999.0"})
    await desk.receive(elsewhere.model_copy(update={"place": place}))
    await desk.receive(said("a nice day").model_copy(update={"place": place}), "Ev2")

    assert await desk.dispatcher.handle_pending() == 2

    assert (await desk.record()).actions == ()
    (answer,) = await desk.told()
    assert answer.headline == f"That decides nothing here: R7 is decided in the conversation of {RUN}."
    refused = await desk.store.audit(kinds=ATTEMPTS)
    assert [(each.why, each.digest != "") for each in refused] == [("another_place", True)]
    assert place.message in refused[0].detail


# Who is it?


async def test_a_platform_that_does_not_say_who_it_is_makes_no_grant(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot.intake, "_IDENTIFY_LIMIT", timedelta(milliseconds=20))
    desk.slack.is_hung = True
    await desk.receive(said("approve R7"))

    assert await desk.dispatcher.handle_pending() == 1

    assert (await desk.record()).actions == ()
    (answer,) = await desk.answers()
    assert "could not be verified (slack did not answer in time)" in answer
    assert [e.detail.rsplit(": ", 1)[-1] for e in await desk.store.audit(RUN)] == ["membership_unknown"]


async def test_a_platform_that_is_not_configured_makes_no_grant(desk: Desk) -> None:
    console = POSTED[4].message_id.split(":")
    yes = said("approve", Actor.model_validate({"platform": "console", "user_id": "root"}))
    assert yes.place.key == ":".join(console)
    await desk.receive(yes, source="console")

    await desk.dispatcher.handle_pending()

    assert (await desk.record()).actions == ()


@pytest.mark.parametrize("standing", [GUEST, A_BOT])
async def test_a_guest_and_a_bot_are_refused_by_the_platforms_word(desk: Desk, standing: Reading[Standing]) -> None:
    desk.slack.standing = standing
    await desk.receive(pressed())

    await desk.dispatcher.handle_pending()

    assert (await desk.record()).actions == ()


async def test_only_what_may_decide_costs_a_question_to_the_platform(desk: Desk) -> None:
    place = Place(conversation="C0HERO", thread="100.000100", message="300.0")
    await desk.receive(said("thank you"), "1")
    await desk.receive(Commanded(actor=slack(), place=place, text="status", said_at=AT), "2")
    await desk.receive(Unsaid(actor=slack(), place=place, said_at=AT), "3")
    await desk.dispatcher.handle_pending()
    assert desk.slack.asked == []

    await desk.receive(Commanded(actor=slack(), place=place, text="pause", said_at=AT), "4")
    await desk.receive(pressed("R99"), "5")
    await desk.dispatcher.handle_pending()

    assert len(desk.slack.asked) == 2


# What breaks


async def test_what_our_code_breaks_at_is_tried_again_then_kept_and_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_args: object) -> Decision:
        msg = "a bug of ours"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr(bot.intake, "decide_pressed", break_down)
    await desk.receive(pressed(), "broken")
    await desk.receive(said("deny R7"), "behind it")

    assert await desk.dispatcher.handle_pending() == 1, "the one behind it has its turn"
    assert (await desk.record()).requests[0].state is RequestState.DENIED
    for _ in range(10):
        desk.clock.advance(timedelta(minutes=5))
        await desk.dispatcher.handle_pending()

    counts = await desk.store.counts()
    assert (counts["inbox_pending"], counts["inbox_given_up"]) == (0, 1)
    (notice,) = [update for update in await desk.told() if update.kind is UpdateKind.NOTICE]
    assert "could not handle what U0ADA did on slack; it had no effect" in notice.headline
    assert (await desk.record()).actions == ()


async def test_an_event_that_succeeds_at_the_second_try_is_decided_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def break_once(*args: Any) -> Decision:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return decide_pressed(*args)

    monkeypatch.setattr(bot.intake, "decide_pressed", break_once)
    await desk.receive(pressed())
    await desk.dispatcher.handle_pending()
    assert (await desk.record()).actions == ()
    desk.clock.advance(timedelta(seconds=3))

    assert await desk.dispatcher.handle_pending() == 1

    assert len((await desk.record()).actions) == 1


async def test_a_full_disk_loses_nothing_that_was_accepted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field report R29: no approval takes effect, and none is forgotten."""
    await desk.receive(said("approve R7"))

    def refuse(_lease: object = None) -> Any:
        msg = "no space is left"
        raise StoreFullError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "transaction", refuse)
        for _ in range(10):
            with pytest.raises(StoreFullError):
                await desk.dispatcher.handle_pending()
            desk.clock.advance(timedelta(minutes=5))
    assert (await desk.record()).actions == ()

    assert await desk.dispatcher.handle_pending() == 1

    assert len((await desk.record()).actions) == 1


async def test_one_event_that_the_store_refuses_holds_up_no_other_and_is_never_given_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> Decision:
        msg = "a stored Request cannot be read"
        raise StoreError(msg)

    with monkeypatch.context() as patch:
        patch.setattr(bot.intake, "decide_pressed", refuse)
        await desk.receive(pressed(), "poison")
        await desk.receive(said("hello"), "behind it")
        assert await desk.dispatcher.handle_pending() == 1
        for _ in range(6):
            desk.clock.advance(timedelta(minutes=10))
            await desk.dispatcher.handle_pending()
    desk.clock.advance(timedelta(minutes=10))

    assert await desk.dispatcher.handle_pending() == 1

    assert len((await desk.record()).actions) == 1


# Contracts that cannot be used

BAD = BadContract(run_id=RUN, problems=("runs/hero-12d8b6f0.toml: dri is missing",))


async def test_a_malformed_contract_blocks_its_run_alone_and_is_told_once_until_it_is_another_fault(
    desk: Desk,
) -> None:
    other = BadContract(run_id=RUN, problems=("runs/hero-12d8b6f0.toml: is no TOML",))
    for bad in (BAD, BAD, other, other):
        await desk.dispatcher.contract_broke(bad)
    desk.a_new_one()
    await desk.dispatcher.contract_broke(other)

    notices = [u for u in await desk.told() if u.kind is UpdateKind.NOTICE]
    assert [n.evidence for n in notices] == [BAD.problems, other.problems]
    assert "the other runs are not affected" in notices[0].next
    assert (await desk.record()).run.state is RunState.BLOCKED


async def test_a_contract_that_breaks_again_in_the_same_way_is_told_again(desk: Desk) -> None:
    await desk.dispatcher.contract_broke(BAD)
    await desk.dispatcher.run_checked(contract(), checked())
    desk.clock.advance(timedelta(days=1))

    await desk.dispatcher.contract_broke(BAD)

    assert len([u for u in await desk.told() if u.kind is UpdateKind.NOTICE]) == 2


async def test_an_answer_while_the_contract_is_broken_is_answered(desk: Desk) -> None:
    desk.contracts[RUN] = BAD
    await desk.receive(said("approve R7"), "1")
    await desk.receive(said("hello"), "2")
    await desk.receive(pressed(actor=slack(is_bot=True)), "3")

    await desk.dispatcher.handle_pending()

    assert (await desk.record()).actions == ()
    (answer,) = await desk.answers()
    assert answer == f"Nothing can be decided about {RUN} while its contract cannot be used; nothing was changed."
    assert [entry.what for entry in await desk.store.audit(RUN)] == ["decision_refused"]


async def test_an_action_whose_contract_broke_is_told_and_asked_afresh_later(desk: Desk) -> None:
    await desk.receive(said("approve R7"))
    await desk.dispatcher.handle_pending()
    known = await desk.record()
    desk.contracts[RUN] = BAD
    void = known.actions[0].begun(StepName.VERIFY, AT).model_copy(update={"state": ActionState.VOID, "noted": "bad"})

    decision = desk.dispatcher.decide_action(known, void, AT)

    assert [r.state for r in decision.requests] == [RequestState.VOID]
    (telling,) = decision.tell
    assert f"R7 of {RUN} was approved, and stopped" in telling.update.headline
    assert BAD.problems[0] in telling.update.evidence


async def test_commands_answer_for_the_other_runs_while_one_contract_is_broken(desk: Desk) -> None:
    desk.contracts[OTHER] = BadContract(run_id=OTHER, problems=("runs/other-run.toml: is no TOML",))
    place = Place(conversation="D0", message="1.0")
    await desk.receive(Commanded(actor=slack(), place=place, text="runs", said_at=AT))

    await desk.dispatcher.handle_pending()

    (update,) = await desk.told()
    assert any(line.startswith(RUN) for line in update.evidence)
    assert f"{OTHER}: not watched: runs/other-run.toml: is no TOML" in update.evidence


async def test_who_comes_back_catches_up_on_what_happened_since_their_last_command(desk: Desk) -> None:
    place = Place(conversation="D0", message="1.0")

    async def catch_up(event_id: str) -> Update:
        await desk.receive(Commanded(actor=slack(), place=place, text="catchup", said_at=desk.clock.now()), event_id)
        await desk.dispatcher.handle_pending()
        return (await desk.told())[-1]

    first = await catch_up("Ev1")
    desk.clock.advance(timedelta(hours=2))
    await desk.receive(said("deny R7 because of the node", at=later(120), actor=slack()), "Ev2")
    await desk.dispatcher.handle_pending()
    second = await catch_up("Ev3")

    assert "(1 d)" in first.headline
    assert any("TO DECIDE by ada" in line for line in first.evidence)
    assert "(2 h)" in second.headline
    assert not any("TO DECIDE" in line for line in second.evidence)
    assert any("R7 denied by ada: of the node" in line for line in second.evidence)


async def test_the_audit_names_every_attempt_with_its_plan_and_the_address_of_its_message(desk: Desk) -> None:
    root = POSTED[0].model_copy(update={"link": "https://acme.slack.com/archives/C0HERO/p100000100"})
    await desk.store.save_posted(root)
    await desk.receive(said("approve R7", actor=slack("U0BOB")), "Ev1")
    await desk.receive(said("approve R7"), "Ev2")
    await desk.dispatcher.handle_pending()
    place = Place(conversation="C0HERO", thread="100.000100")
    await desk.receive(Commanded(actor=slack(), place=place, text="audit", said_at=AT), "Ev3")
    await desk.dispatcher.handle_pending()

    refused, approved = await desk.store.audit(RUN, kinds=ATTEMPTS)
    assert (refused.who, refused.what, refused.why) == ("slack:U0BOB", "decision_refused", "not_the_dri")
    assert (approved.who, approved.what, approved.why) == ("slack:U0ADA", "approved", "")
    assert {refused.digest, approved.digest} == {request().digest}
    assert (
        refused.link
        == approved.link
        == ("https://acme.slack.com/archives/C0HERO/p200000201?thread_ts=100.000100&cid=C0HERO")
    )
    shown = (await desk.told())[-1].evidence
    assert [line.split("  ")[2] for line in shown] == ["slack:U0BOB", "slack:U0ADA"]


# What Hero itself notices


def checked(**fields: Any) -> RunChecked:
    return RunChecked(run_id=RUN, snapshot=snapshot(later(6), **fields), judgements=())


async def test_a_snapshot_of_the_launch_before_is_not_judged(desk: Desk) -> None:
    """Its sources were read while the executor launched the next one."""
    launched = instance(1, submitted_at=later(5), launched_at=later(5))
    await desk.put(record(request(), instances=(instance(), launched)))

    await desk.dispatcher.run_checked(contract(), checked(launch=instance(), jobs=job()))

    assert desk.soon == [RUN]
    assert await desk.told() == []
    assert (await desk.record()).instances[-1] == launched


async def test_a_bounded_diagnostic_reaches_github_only_once_it_is_promoted(desk: Desk) -> None:
    """Nothing of it may be sent there before: the channel opens an issue for whatever it is given."""
    probe = contract(run_id=OTHER, kind="diagnostic")
    seen = snapshot(later(6), is_first=True).model_copy(update={"run_id": OTHER})
    first = RunChecked(run_id=OTHER, snapshot=seen, judgements=())
    known = seen.model_copy(update={"instance": instance(job_id=JOB).model_copy(update={"run_id": OTHER})})
    desk.contracts[OTHER] = probe

    await desk.dispatcher.run_checked(probe, first)
    before = [update for update in await desk.told(GITHUB) if update.run_id == OTHER]
    watched = [update.kind for update in await desk.told(SLACK) if update.run_id == OTHER]
    again = RunChecked(run_id=OTHER, snapshot=known, judgements=(), lineage="heir starts from its checkpoint")
    await desk.dispatcher.run_checked(probe, again)
    after = [update.headline for update in await desk.told(GITHUB) if update.run_id == OTHER]

    assert before == []
    assert UpdateKind.WATCHING in watched
    assert "this diagnostic goes on record: heir starts from its checkpoint" in after
    assert (await desk.record(OTHER)).run.promoted == "heir starts from its checkpoint"
    kinds = [entry.kind for entry in await desk.store.chronicle(OTHER)]
    assert kinds == ["launched", "promoted"]


async def test_nothing_is_asked_without_the_launch_checklist(desk: Desk) -> None:
    """Somebody asked for a launch while the sources were read, so that nobody had thought of reading it."""
    known = record(request(state=RequestState.DENIED))
    await desk.put(known.model_copy(update={"run": known.run.model_copy(update={"relaunch_wanted_by": "ada"})}))
    event = checked(launch=instance(), jobs=failed_job(137), checkpoints=(checkpoint(200),))
    clear = PreflightReport(values=(), findings=())

    first = await desk.dispatcher.run_checked(contract(), event)
    after_first = (await desk.record()).requests
    second = await desk.dispatcher.run_checked(contract(), event.model_copy(update={"preparation": clear}))

    assert first is True
    assert [r.state for r in after_first] == [RequestState.DENIED]
    assert second is False
    assert [r.state for r in (await desk.record()).requests] == [RequestState.DENIED, RequestState.OPEN]


async def test_a_wanted_relaunch_is_checked_at_once(desk: Desk) -> None:
    await desk.put(record(request(state=RequestState.DENIED)))
    place = Place(conversation="C0HERO", thread="100.000100", message="300.0")
    await desk.receive(Commanded(actor=slack(), place=place, text="relaunch", said_at=AT))

    await desk.dispatcher.handle_pending()

    assert desk.soon == [RUN]
    assert (await desk.record()).run.relaunch_wanted_by == "ada"


async def test_an_approval_taken_back_has_its_run_checked_at_once(desk: Desk) -> None:
    yes = said("approve R7")
    await desk.receive(yes, "1")
    await desk.dispatcher.handle_pending()

    await desk.receive(Unsaid(actor=slack(), place=yes.place, said_at=AT), "2")
    await desk.dispatcher.handle_pending()

    known = await desk.record()
    assert [a.state for a in known.actions] == [ActionState.VOID]
    assert [r.state for r in known.requests] == [RequestState.WITHDRAWN]
    assert desk.soon == [RUN]


async def test_time_passes_for_a_run_that_never_was_checked_and_stands_still_for_a_broken_one(desk: Desk) -> None:
    desk.contracts[OTHER] = contract(run_id=OTHER)
    desk.contracts[RUN] = BAD
    desk.clock.advance(timedelta(hours=30))

    await desk.dispatcher.time_passed()

    assert [i.check for i in (await desk.record(OTHER)).incidents] == ["monitor.unchecked"]
    assert (await desk.record()).requests[0].state is RequestState.OPEN


# What cannot be delivered

GONE = Never(reason="channel_not_found", fix="invite Hero to the channel")


def undelivered(kind: UpdateKind, key: str = "k/slack", private_to: str = "") -> Delivery:
    update = Update(kind=kind, run_id=RUN, at=AT, headline="the job failed", next="ada decides")
    return Delivery(
        number=1,
        key=key,
        channel=SLACK,
        run_id=RUN,
        target=Target(private_to=private_to),
        update=update,
        created_at=AT,
    )


async def test_what_one_channel_cannot_take_goes_to_the_others_and_says_so(desk: Desk) -> None:
    await desk.dispatcher.delivery_failed(undelivered(UpdateKind.FAILED), GONE)
    await desk.dispatcher.delivery_failed(undelivered(UpdateKind.FAILED), GONE)

    (update,) = await desk.told(GITHUB)
    assert update.headline == "the job failed"
    expected = "ada decides (not delivered to slack: channel_not_found; invite Hero to the channel)"
    assert update.next == expected
    assert await desk.told() == []


@pytest.mark.parametrize("kind", [UpdateKind.ANSWER, UpdateKind.LIVE_STATUS])
async def test_a_private_answer_and_a_picture_of_now_go_nowhere_else(desk: Desk, kind: UpdateKind) -> None:
    await desk.dispatcher.delivery_failed(undelivered(kind, private_to="U0ADA"), GONE)

    assert await desk.told(GITHUB) == []


async def test_what_no_channel_takes_does_not_go_round_for_ever(desk: Desk) -> None:
    await desk.dispatcher.delivery_failed(undelivered(UpdateKind.FAILED, "undelivered/k/github"), GONE)

    assert await desk.told(GITHUB) == []
    assert [e.what for e in await desk.store.audit(RUN)] == ["delivery_given_up"]


async def test_what_is_about_hero_itself_is_told_once(desk: Desk) -> None:
    for _ in range(3):
        await desk.dispatcher.notice("iris-client/2026-11-29", "the client is old", (), "upgrade it")

    assert [u.headline for u in await desk.told()] == ["the client is old"]
    assert await desk.told(GITHUB) == [], "an issue belongs to a run"


# The launch checklist


@pytest.mark.parametrize(
    ("weight", "accepts"),
    [(Weight.NOTE, ()), (Weight.ASKS, ("launch.identity: not clear",)), (Weight.BLOCKS, None), (Weight.UNKNOWN, None)],
)
async def test_what_the_checklist_says_decides_what_is_asked(
    desk: Desk, weight: Weight, accepts: tuple[str, ...] | None
) -> None:
    wanted = record(instances=(instance(),))
    await desk.put(wanted.model_copy(update={"run": wanted.run.model_copy(update={"relaunch_wanted_by": "ada"})}))
    finding = PreflightFinding(check=CheckId("launch.identity"), weight=weight, message="not clear", fix="mend it")
    event = checked(launch=instance(), jobs=job()).model_copy(
        update={"preparation": PreflightReport(values=(), findings=(finding,))}
    )

    await desk.dispatcher.run_checked(contract(), event)

    asked = (await desk.record()).open_relaunch
    said = " ".join(f"{each.headline} {each.next}" for each in await desk.told())
    if accepts is None:
        assert asked is None
        assert "not clear" in said
        assert "mend it" in said
    else:
        assert asked is not None
        assert isinstance(asked.plan, RelaunchPlan)
        assert asked.plan.accepts == accepts
