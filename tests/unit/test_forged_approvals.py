"""Every forged, stale or malformed yes, from a platform's own words to the audit log: none grants, each is noted once.

What people do is given as the platform tells it, goes through the channel's own mapping, the real inbox, the intake and
the gate, and is counted in the store afterwards. Each legitimate form makes exactly one grant on the same way.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from github import Github
from github.IssueComment import IssueComment
from structlog.testing import capture_logs

from bot.channels.discord.mapping import Heard, Interaction, map_interaction, snowflake_at
from bot.channels.discord.mapping import map_edit as discord_edit
from bot.channels.discord.mapping import map_message as discord_message
from bot.channels.github.seen import Comment
from bot.channels.github.speech import event_of
from bot.channels.slack.api import Me
from bot.channels.slack.mapping import Click, Command, Message, map_click, map_command, map_edit, map_message
from bot.dispatcher import Dispatcher
from bot.model.action import Action, ActionState, StepName
from bot.model.allowance import Allowance, AllowedKind
from bot.model.audit import ATTEMPTS
from bot.model.conduct import Stage, Trial
from bot.model.delivery import ChannelName, Posted
from bot.model.event import Inbound, Place, Said, Unsaid
from bot.model.person import Actor, Person, Standing
from bot.model.plan import Grant, Request, RequestState
from bot.model.reading import Gap, Known, Reading, Unknown
from bot.model.record import Decision
from bot.model.run import Run, RunState
from bot.model.trialplan import RollbackPlan
from bot.model.value import RunId
from bot.model.verbs import VERBS
from bot.redaction import Redactor
from bot.render.slack import APPROVE_ACTION, DENY_ACTION
from bot.store.store import Store
from tests.fakes.clock import FakeClock
from tests.fakes.decisions import a_plan
from tests.fakes.snapshots import AT, RUN, contract, instance
from tests.unit.actions.trial_world import a_trial_plan
from tests.unit.handlers.scene import ADA, BOB, MEMBER, RULES, OneCommand, console, record, request

OTHER = RunId("other-run")
DAY = timedelta(hours=24)
ASKED_AT, LATER = AT + timedelta(minutes=1), AT + timedelta(minutes=5)
NOW = AT + timedelta(minutes=6)
PEOPLE = (
    Person(name=ADA, slack="U0ADA", github="ada", github_id=11, discord="111", console=True),
    Person(name=BOB, slack="U0BOB", github="bob", github_id=22, discord="222"),
)
ME = Me(user_id="U0HERO", bot_id="B0HERO", team_id="T0", enterprise_id=None, url="", scopes=frozenset())
DISCORD_ME = "999"
THREAD, HOME = "100000000000000000", "100000000000000001"


def ts(at: datetime, us: int = 100) -> str:
    """A Slack timestamp of that second."""
    return f"{int(at.timestamp())}.{us:06}"


def flake(at: datetime, number: int = 0) -> str:
    """A Discord id of that moment."""
    return str(snowflake_at(at) + number)


ROOT_TS, ASKED_TS = ts(AT), ts(ASKED_AT)
ASKED_ON = {
    ChannelName.SLACK: f"C0HERO:{ASKED_TS}",
    ChannelName.GITHUB: "2000",
    ChannelName.DISCORD: flake(ASKED_AT),
    ChannelName.CONSOLE: "console:2000",
}
THREADS = {
    ChannelName.SLACK: (f"C0HERO:{ROOT_TS}", "https://hero.slack.example/archives/C0HERO/p1"),
    ChannelName.GITHUB: ("4", "https://github.example/o/r/issues/4"),
    ChannelName.DISCORD: (THREAD, f"https://discord.example/channels/1/{THREAD}/{THREAD}"),
    ChannelName.CONSOLE: (f"console:{RUN}", ""),
}

# What people do, as each platform tells it


def on_slack(text: str = "approve R7", user: str | None = "U0ADA", at: datetime = LATER, **fields: Any) -> Inbound:
    """A message event; ``thread_ts`` is that of the run's thread."""
    raw = {"ts": ts(at), "user": user, "text": text, "thread_ts": ROOT_TS} | fields
    act = map_message("C0HERO", Message.model_validate(raw), ME, is_watched=True)
    assert act is not None
    return act.payload


def edited_on_slack(before: str = "hello", after: str = "approve R7") -> Inbound:
    raw = {"ts": ts(LATER), "user": "U0ADA", "thread_ts": ROOT_TS}
    now = Message.model_validate(raw | {"text": after, "edited": {"user": "U0ADA", "ts": ts(NOW)}})
    act = map_edit("C0HERO", now, Message.model_validate(raw | {"text": before}), ME, is_watched=True)
    assert act is not None
    return act.payload


def click(
    value: str = "R7",
    user: str = "U0ADA",
    at: datetime = LATER,
    *,
    message: str = ASKED_TS,
    thread: str = ROOT_TS,
    action: str = APPROVE_ACTION,
) -> Inbound:
    """A ``block_actions`` payload."""
    body = {
        "user": {"id": user, "name": "ada"},
        "container": {"channel_id": "C0HERO", "message_ts": message, "thread_ts": thread},
        "actions": [{"action_id": action, "action_ts": ts(at), "value": value}],
    }
    (act,) = map_click(Click.model_validate(body))
    return act.payload


def slash(text: str, user: str = "U0ADA") -> Inbound:
    body = {"user_id": user, "channel_id": "C0HERO", "trigger_id": "1.2", "user_name": "ada", "text": text}
    return map_command(Command.model_validate(body), LATER).payload


def on_github(
    body: str = "approve R7",
    login: str = "ada",
    number: int = 11,
    *,
    comment: int = 2001,
    issue: int = 4,
    edited_at: datetime | None = None,
    **fields: Any,
) -> Inbound:
    """A comment as PyGithub reads it."""
    raw = {
        "id": comment,
        "body": body,
        "user": {"id": number, "login": login, "type": "User"},
        "created_at": LATER.isoformat(),
        "updated_at": (edited_at or LATER).isoformat(),
        "author_association": "OWNER",
        "html_url": f"https://github.example/o/r/issues/{issue}#issuecomment-{comment}",
        "performed_via_github_app": None,
    }
    seen = Comment.of(IssueComment(Github(lazy=True).requester, {}, raw | fields))
    return event_of(issue, seen, None, "hero-bot")


def on_discord(
    text: str = "approve R7", author: str = "111", at: datetime = LATER, *, channel: str = THREAD, **fields: Any
) -> Inbound:
    given: dict[str, Any] = {"is_bots": False, "is_spoken": True, "author_name": "ada"} | fields
    heard = Heard(id=flake(at, 1), channel=channel, author=author, text=text, **given)
    edit = discord_edit(heard, DISCORD_ME, is_watched=True)
    act = edit or discord_message(heard, DISCORD_ME, VERBS.__contains__, is_watched=True)
    assert act is not None
    return act.payload


def on_discord_by(user: str = "111", *, channel: str = THREAD, **fields: Any) -> Inbound:
    """A slash command, or with ``button`` a press."""
    given: dict[str, Any] = {"message": ASKED_ON[ChannelName.DISCORD], "message_author": DISCORD_ME} | fields
    act = map_interaction(Interaction(id=flake(LATER, 2), channel=channel, user=user, **given), DISCORD_ME)
    assert act is not None
    return act.payload


def typed(text: str, message: str = "2001", user: Actor | None = None) -> Inbound:
    place = Place(conversation="console", thread=RUN, message=message)
    return Said(actor=user or console(), place=place, text=text, said_at=LATER)


# What may be known of those who speak

GUEST: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="a guest"), at=AT)
GONE: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="deactivated"), at=AT)
STRANGER: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="another workspace"), at=AT)
PENDING: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="not screened"), at=AT)
LEFT: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="no member of the server"), at=AT)
REUSED: Reading[Standing] = Known(value=Standing(is_member=False, is_bot=False, detail="was account 11"), at=AT)
ROBOT: Reading[Standing] = Known(value=Standing(is_member=True, is_bot=True), at=AT)
DARK: Reading[Standing] = Unknown(reason=Gap.TIMEOUT, detail="no answer", at=AT)


def over(state: RequestState, **fields: Any) -> Request:
    return request(state=state, decided_at=AT + timedelta(minutes=2), decided_by=ADA, **fields)


def action_of(asked: Request, begun: StepName | None = None) -> Action:
    grant = Grant(
        request=asked.number,
        run_id=asked.run_id,
        digest=asked.digest,
        by=ADA,
        at=AT,
        expires_at=AT + timedelta(hours=1),
    )
    action = Action(number=1, run_id=asked.run_id, plan=asked.plan, grant=grant)
    return action if begun is None else action.begun(begun, AT)


@dataclass
class Try:
    """One attempt at R7, an open request put to ada."""

    name: str
    event: Inbound
    why: str
    standing: Reading[Standing] = MEMBER
    requests: tuple[Request, ...] = (request(),)
    contract: dict[str, Any] = field(default_factory=dict)
    before: tuple[Inbound, ...] = ()
    """What was said before it, and counts."""
    actions: tuple[Action, ...] = ()
    run: Run | None = None


TWO = (request(), request(8))
DEPUTIES = {"deputies": ("bob",)}
QUORUM = {"deputies": ("bob",), "approval": {"deputies": True, "quorum": 2}}
ALLOWED = Allowance(
    number=1, kind=AllowedKind.INFRA, most=3, until=AT + timedelta(hours=8), by=ADA, at=AT, via="slack:C0HERO:1"
)
SHARED: dict[str, Any] = {"attachments": [{"is_share": True, "is_msg_unfurl": True, "text": "approve R7"}]}
BOT_MESSAGE: dict[str, Any] = {"subtype": "bot_message", "bot_id": "BOTHER", "user": None}

FORGED = [
    # Who: bots, webhooks, apps
    Try("Slack: a classic bot message", on_slack(**BOT_MESSAGE), "a_bot"),
    Try("Slack: an app in the DRI's name", on_slack(bot_id="BOTHER", app_id="A1"), "a_bot"),
    Try("Slack: a bot's profile on the DRI's message", on_slack(bot_profile={"id": "B1"}), "a_bot"),
    Try("Slack: users.info calls it a bot", on_slack(), "a_bot", ROBOT),
    Try("Slack: a bot that presses", click(), "a_bot", ROBOT),
    Try("GitHub: a comment through an app", on_github(performed_via_github_app={"id": 1, "slug": "x"}), "a_bot"),
    Try("GitHub: a bot account", on_github(user={"id": 11, "login": "ada", "type": "Bot"}), "a_bot"),
    Try("GitHub: a login that ends in [bot]", on_github(login="ada[bot]"), "a_bot"),
    Try("Discord: a bot", on_discord(is_bots=True), "a_bot"),
    Try("Discord: a webhook with the DRI's id", on_discord(is_bots=True, author="111"), "a_bot"),
    Try("Discord: the guild calls it a bot", on_discord_by(button="hero:approve:R7"), "a_bot", ROBOT),
    # Who: no full members
    Try("Slack: a guest", on_slack(), "no_full_member", GUEST),
    Try("Slack: a guest who presses", click(), "no_full_member", GUEST),
    Try("Slack: a deactivated account", on_slack(), "no_full_member", GONE),
    Try("Slack: a shared channel's other side", on_slack(), "no_full_member", STRANGER),
    Try("Slack: nobody could be asked", on_slack(), "membership_unknown", DARK),
    Try("GitHub: an owner by association without write permission", on_github(), "no_full_member", GUEST),
    Try("GitHub: the DRI's login, taken over", on_github(number=99), "nobody_on_record"),
    Try("GitHub: a login that was pinned to another id", on_github(), "no_full_member", REUSED),
    Try("GitHub: the account is gone", on_github(user=None), "nobody_on_record"),
    Try("GitHub: nobody could be asked", on_github(), "membership_unknown", DARK),
    Try("Discord: before the screening", on_discord(), "no_full_member", PENDING),
    Try("Discord: left the server", on_discord(), "no_full_member", LEFT),
    Try("Discord: a guest who presses", on_discord_by(button="hero:approve:R7"), "no_full_member", GUEST),
    Try("Discord: a guest's command", on_discord_by(text="approve R7"), "no_full_member", GUEST),
    # Who: somebody else
    Try("Slack: a stranger under the DRI's name", click(user="U0EVIL"), "nobody_on_record"),
    Try("Slack: a stranger named like the DRI's id", on_slack(user="U0EVIL", username="U0ADA"), "nobody_on_record"),
    Try("Slack: the DRI's id in small letters", on_slack(user="u0ada"), "nobody_on_record"),
    Try("Slack: a colleague", on_slack(user="U0BOB"), "not_the_dri"),
    Try("Slack: a colleague who presses", click(user="U0BOB"), "not_the_dri"),
    Try("Slack: a deputy where none decides", on_slack(user="U0BOB"), "not_the_dri", contract=DEPUTIES),
    Try("Slack: the monitoring owner", on_slack(user="U0BOB"), "not_the_dri", contract={"owner": "bob"}),
    Try("GitHub: a colleague", on_github(login="bob", number=22), "not_the_dri"),
    Try("GitHub: a deputy where none decides", on_github(login="bob", number=22), "not_the_dri", contract=DEPUTIES),
    Try("Discord: a colleague", on_discord(author="222"), "not_the_dri"),
    Try("Discord: a colleague who presses", on_discord_by("222", button="hero:approve:R7"), "not_the_dri"),
    Try("Discord: a stranger named ada", on_discord(author="333"), "nobody_on_record"),
    Try("the old DRI after the hand-over", on_slack(), "another_dri", contract={"dri": "bob"}),
    Try("the new DRI, of the old one's question", click(user="U0BOB"), "another_dri", contract={"dri": "bob"}),
    # What: edited, forwarded, quoted, coded, hidden
    Try("Slack: edited into a yes", edited_on_slack(), "edited"),
    Try("Slack: an edited yes", on_slack(edited={"user": "U0ADA", "ts": ts(NOW)}), "edited"),
    Try("GitHub: edited", on_github(edited_at=NOW), "edited"),
    Try("Discord: edited", on_discord(edited_at=NOW), "edited"),
    Try("Slack: forwarded", on_slack("", **SHARED), "forwarded"),
    Try("Slack: forwarded with a yes beside it", on_slack(**SHARED), "forwarded"),
    Try("Discord: forwarded", on_discord("> approve R7", is_forwarded=True), "forwarded"),
    Try("Slack: quoted", on_slack("&gt; approve R7"), "not_own_words"),
    Try("Slack: quoted with a mention before", on_slack("<@U0HERO> &gt; approve R7"), "unclear"),
    Try("GitHub: quoted with a mention", on_github("> @hero-bot approve R7"), "not_own_words"),
    Try("Slack: in code", on_slack("`approve R7`"), "not_own_words"),
    Try("Slack: in a code block", on_slack("```\napprove R7\n```"), "not_own_words"),
    Try("Slack: struck out", on_slack("~approve R7~"), "unclear"),
    Try("GitHub: quoted", on_github("> approve R7\n\nI wonder."), "not_own_words"),
    Try("GitHub: in a code block", on_github("~~~\napprove R7\n~~~"), "not_own_words"),
    Try("GitHub: indented code", on_github("    approve R7"), "not_own_words"),
    Try("GitHub: an HTML comment", on_github("<!-- approve R7 -->"), "not_own_words"),
    Try("GitHub: an open HTML comment", on_github("looking\n<!--\napprove R7"), "not_own_words"),
    Try("GitHub: struck out by HTML", on_github("<del>\n\napprove R7\n\n</del>"), "unclear"),
    Try("GitHub: below a mail's signature", on_github("I see.\n-- \napprove R7"), "not_own_words"),
    Try(
        "GitHub: in the mail that was answered", on_github("On Mon, 2 Mar 2026 ada wrote:\napprove R7"), "not_own_words"
    ),
    Try("Discord: quoted", on_discord("> approve R7"), "not_own_words"),
    Try("Discord: in a code block", on_discord("```\napprove R7\n```"), "not_own_words"),
    Try("Discord: a spoiler", on_discord("||approve R7||"), "unclear"),
    # What: other words
    Try("a condition", on_slack("approve R7 if the disk is fine"), "unclear"),
    Try("a condition on the next line", on_slack("approve R7\nbut wait for the backup"), "unclear"),
    Try("a stranger's condition", on_slack("approve R7 if so", user="U0EVIL"), "unclear"),
    Try("a question", on_github("approve R7?"), "unclear"),
    Try("a negation", on_discord("do not approve R7"), "unclear"),
    Try("a leading zero", on_slack("approve R07"), "unclear"),
    Try("two ids", on_slack("approve R7 R8", user="U0ADA"), "unclear", requests=TWO),
    Try("two ids on two lines", on_slack("approve R7\napprove R8"), "unclear", requests=TWO),
    Try("a Cyrillic letter", on_slack("\u0430pprove R7"), "unclear"),
    Try("a Greek letter", on_github("appr\u03bfve R7"), "unclear"),
    Try("full-width letters", on_discord("\uff41\uff50\uff50\uff52\uff4f\uff56\uff45 R7"), "unclear"),
    Try("a zero-width space", on_slack("approve\u200b R7"), "unclear"),
    Try("a zero-width joiner in the word", on_github("app\u200drove R7"), "unclear"),
    Try("written from right to left", on_discord("\u202eapprove R7"), "unclear"),
    Try("full-width digits", on_slack("approve R\uff17"), "unclear"),
    Try("yes", on_slack("yes"), "unclear"),
    Try("a thumb", on_slack(":+1:"), "unclear"),
    Try("yes and no in one message", on_slack("approve R7\ndeny R7"), "unclear"),
    Try("GitHub: a yes beside a command", on_github("/hero status\n\napprove R7"), "unclear"),
    Try("a yes beside a command", on_slack("approve R7\n/hero status"), "unclear"),
    # Where and when
    Try("Slack: another thread", on_slack(thread_ts=ts(AT, 777)), "another_place"),
    Try("Slack: outside of any thread", on_slack(thread_ts=None), "another_place"),
    Try("Slack: a button in another thread", click(thread=ts(AT, 777)), "another_place"),
    Try("Slack: a button on another message", click(message=ts(LATER, 5)), "another_message"),
    Try("Slack: a command, which has no thread", slash("approve R7"), "by_command"),
    Try("Slack: a stranger's command", slash("approve R7", user="U0EVIL"), "by_command"),
    Try("GitHub: another issue", on_github(issue=5), "another_place"),
    Try("GitHub: as a command", on_github("/hero approve R7"), "by_command"),
    Try("Discord: the channel, not the thread", on_discord(channel=HOME), "another_place"),
    Try("Discord: a command in the channel", on_discord_by(text="approve R7", channel=HOME), "another_place"),
    Try(
        "Discord: a button on another message",
        on_discord_by(button="hero:approve:R7", message=flake(LATER)),
        "another_message",
    ),
    Try("Slack: older than the request", on_slack(at=AT + timedelta(seconds=59)), "before_the_request"),
    Try("Slack: older by a microsecond", on_slack(ts=ts(ASKED_AT, 99)), "before_the_request"),
    Try("GitHub: older than the request", on_github(comment=1999), "before_the_request"),
    Try("Discord: older than the request", on_discord(at=AT), "before_the_request"),
    Try("console: older than the request", typed("approve R7", "1999"), "before_the_request"),
    Try("Slack: after its end", on_slack(at=AT + DAY), "expired"),
    Try("Slack: a button after its end", click(at=AT + DAY), "expired"),
    # Which
    Try("two wait and none is named", on_slack("approve"), "ambiguous", requests=TWO),
    Try("an expired request", on_slack(), "already_decided", requests=(over(RequestState.EXPIRED),)),
    Try("a void request", on_github(), "already_decided", requests=(over(RequestState.VOID),)),
    Try("a denied request", on_discord(), "already_decided", requests=(over(RequestState.DENIED),)),
    Try("a withdrawn request", click(), "already_decided", requests=(over(RequestState.WITHDRAWN),)),
    Try("the void plan's button", click(), "already_decided", requests=(over(RequestState.VOID), request(8))),
    Try("the void plan's yes", on_slack(), "already_decided", requests=(over(RequestState.VOID), request(8))),
    Try(
        "a yes without a number, typed for the plan before",
        on_slack("approve", at=AT + timedelta(minutes=2, seconds=30)),
        "replaced",
        requests=(over(RequestState.VOID), request(8)),
    ),
    Try("after the grant has expired", on_slack(), "already_decided", requests=(over(RequestState.GRANTED),)),
    Try("another run's request", on_slack("approve R6"), "other_request"),
    Try("another run's button", click("R6"), "other_request"),
    Try("a request that is none", on_github("approve R999999999"), "other_request"),
    Try("Slack: a button with a forged value", click("R7 please"), "other_request"),
    Try("Slack: a button with two values", click("R7,R8"), "other_request"),
    Try("nothing waits", on_slack("approve"), "no_request", requests=()),
    # Again
    Try("the button once more", click(), "already_decided", before=(click(),)),
    Try("said on GitHub after Slack", on_github(), "already_decided", before=(on_slack(),)),
    Try("said after a no", on_slack(at=LATER + timedelta(seconds=5)), "already_decided", before=(on_slack("deny R7"),)),
    Try("pressed after a no", click(), "already_decided", before=(click(action=DENY_ACTION),)),
    Try("one person's two accounts", on_github(), "said_already", contract=QUORUM, before=(on_slack(),)),
    Try("one person's message and button", click(), "said_already", contract=QUORUM, before=(on_slack(),)),
    Try(
        "while another is carried out",
        on_slack(),
        "busy",
        requests=(over(RequestState.GRANTED, number=5), request()),
        actions=(action_of(over(RequestState.GRANTED, number=5)),),
    ),
    # The terminal
    Try("console: no request of that number", typed("approve R99"), "no_request_meant"),
    Try("console: quoted", typed("> approve R7"), "no_request_meant"),
    # What was allowed in advance
    Try("a colleague allows", slash(f"allow {RUN} relaunch 3 until 8h for infra", user="U0BOB"), "not_the_dri"),
    Try("a stranger allows", slash(f"allow {RUN} relaunch 3 until 8h for infra", user="U0EVIL"), "nobody_on_record"),
    Try("a guest allows", slash(f"allow {RUN} relaunch 3 until 8h for infra"), "no_full_member", GUEST),
    Try("allowed for what never is", slash(f"allow {RUN} relaunch 3 until 8h for numerical"), "not_understood"),
    Try("a rollback allowed", slash(f"allow {RUN} rollback 3 until 8h for infra"), "not_understood"),
    Try("allowed without end", slash(f"allow {RUN} relaunch 3 until 900h for infra"), "end"),
    Try("allowed too often", slash(f"allow {RUN} relaunch 99 until 8h for infra"), "number"),
    Try("allowed by one of two", slash(f"allow {RUN} relaunch 3 until 8h for infra"), "quorum", contract=QUORUM),
]

REAL: dict[str, Inbound] = {
    "Slack: with the id": on_slack(),
    "Slack: without": on_slack("approve"),
    "Slack: by mention": on_slack("<@U0HERO> approve R7"),
    "Slack: shown in the channel too": on_slack(subtype="thread_broadcast"),
    "Slack: with a file": on_slack(subtype="file_share"),
    "Slack: with a link's preview": on_slack(attachments=[{"from_url": "https://example.com", "text": "approve R8"}]),
    "Slack: below a quote": on_slack("&gt; may I?\n\napprove R7"),
    "Slack: with thanks": on_slack("thanks!\nApprove r7."),
    "Slack: a button": click(),
    "GitHub: with the id": on_github(),
    "GitHub: without": on_github("APPROVE"),
    "GitHub: under a new login": on_github(login="ada-renamed"),
    "GitHub: by mention": on_github("@hero-bot approve R7"),
    "GitHub: an answer by mail": on_github("approve R7\n\nOn Mon, 2 Mar 2026 hero wrote:\n> R7: may I?"),
    "Discord: with the id": on_discord(),
    "Discord: without": on_discord("approve"),
    "Discord: by mention": on_discord(f"<@{DISCORD_ME}> approve R7"),
    "Discord: a button": on_discord_by(button="hero:approve:R7"),
    "Discord: a command": on_discord_by(text="approve R7"),
    "console: with the id": typed("approve R7"),
}


class Platform:
    """A channel of which only the question who somebody is gets answered."""

    standing: Reading[Standing] = MEMBER

    async def identify(self, _actor: Actor) -> Reading[Standing]:
        return self.standing


class Desk:
    """The way from the inbox to the audit log, over a real store."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.platform = Platform()
        self.contract = contract()
        channels: Any = dict.fromkeys(ASKED_ON, self.platform)
        launchers: Any = {"iris": OneCommand()}
        contracts: Any = self
        self.dispatcher = Dispatcher(
            store=store,
            contracts=contracts,
            launchers=launchers,
            channels=channels,
            people=PEOPLE,
            rules=RULES,
            redactor=Redactor(),
            clock=clock,
            check_soon=lambda _run: None,
            alarm=lambda _error: None,
            lease=lambda: None,
        )

    def load(self, _run_id: RunId) -> Any:
        return self.contract

    def run_ids(self) -> tuple[RunId, ...]:
        return (RUN,)

    async def put(
        self, requests: tuple[Request, ...], actions: tuple[Action, ...] = (), run: Run | None = None
    ) -> None:
        """Put the run on record with its conversations, and another run with a request of its own."""
        known = record(*requests)
        decision = Decision(run=run or known.run, instances=(instance(),), requests=requests, actions=actions)
        other = Decision(
            run=Run(run_id=OTHER, state=RunState.FAILED), requests=(request(6, run_id=OTHER, plan=a_plan(OTHER)),)
        )
        async with self.store.transaction() as tx:
            await tx.apply(decision, RUN, AT)
        async with self.store.transaction() as tx:
            await tx.apply(other, OTHER, AT)
        for channel, (root, link) in THREADS.items():
            for slot, place in (("thread", root), *((f"request:{r.number}", ASKED_ON[channel]) for r in requests)):
                posted = Posted(channel=channel, run_id=RUN, slot=slot, message_id=place, link=link)
                await self.store.save_posted(posted)

    async def happens(self, event: Inbound, event_id: str) -> bool:
        """Let it arrive and be handled; say whether it was new."""
        is_new = await self.store.receive(event.actor.platform.value, event_id, event)
        await self.dispatcher.handle_pending()
        return is_new

    async def grants(self) -> list[Action]:
        found = [await self.store.record(run_id) for run_id in (RUN, OTHER)]
        return [action for known in found if known is not None for action in known.actions]

    async def answers(self) -> list[str]:
        """Return what commands were answered with on GitHub."""
        due = await self.store.due_deliveries(ChannelName.GITHUB)
        told = [each.update for each in due if "command/" in each.key]
        return ["\n".join((each.headline, *each.evidence, each.next)) for each in told]

    async def attempts(self) -> list[Any]:
        return list(await self.store.audit(kinds=ATTEMPTS))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = FakeClock(NOW)
    store = await Store.open("sqlite://", clock, Redactor())
    yield Desk(store, clock)
    await store.close()


@pytest.mark.parametrize("attempt", FORGED, ids=lambda attempt: attempt.name)
async def test_a_forged_or_stale_yes_grants_nothing_and_is_noted_exactly_once(desk: Desk, attempt: Try) -> None:
    desk.contract = contract(**attempt.contract)
    await desk.put(attempt.requests, attempt.actions, attempt.run)
    for number, earlier in enumerate(attempt.before):
        await desk.happens(earlier, f"before-{number}")
    grants, noted = await desk.grants(), await desk.attempts()
    desk.platform.standing = attempt.standing

    assert await desk.happens(attempt.event, "forged")
    assert not await desk.happens(attempt.event, "forged"), "a copy of it is dropped"

    assert await desk.grants() == grants
    (entry,) = (await desk.attempts())[len(noted) :]
    assert entry.why == attempt.why
    assert f"{attempt.event.actor.platform}:{attempt.event.actor.user_id}" in entry.who
    assert attempt.event.place.message in entry.detail
    assert attempt.event.place.key in entry.detail or entry.what == "command_refused"


@pytest.mark.parametrize("text", ["/hero status", "/hero nonsense", "/hero allow relaunch 3 until 09:00 for infra"])
async def test_a_robots_command_is_not_answered(desk: Desk, text: str) -> None:
    await desk.put((request(),))
    user = {"id": 77, "login": "ci[bot]", "type": "Bot"}

    assert await desk.happens(on_github(text, user=user), "by a robot")

    assert await desk.answers() == []
    assert [entry.why for entry in await desk.attempts()] == (["a_bot"] if "allow" in text else [])


@pytest.mark.parametrize("verb", ["runs", "catchup", "incidents", "audit"])
async def test_a_stranger_hears_on_github_of_no_run_but_that_of_the_issue(desk: Desk, verb: str) -> None:
    await desk.put((request(),))

    await desk.happens(on_github(f"/hero {verb}", login="eve", number=666), "asked")

    (said,) = await desk.answers()
    assert OTHER not in said
    await desk.happens(on_github("/hero runs", comment=2003), "who is on record hears of all")
    assert OTHER in "".join(await desk.answers())


@pytest.mark.parametrize(
    "verb", ["status", "catchup", "incidents", "log", "audit", "explain", "plot", "milestone", "handoff", "watch"]
)
async def test_a_stranger_cannot_tell_on_github_whether_there_is_another_run(desk: Desk, verb: str) -> None:
    await desk.put((request(),))

    await desk.happens(on_github(f"/hero {verb} other-run", login="eve", number=666), "one that there is")
    await desk.happens(on_github(f"/hero {verb} other-nun", login="eve", number=666, comment=2002), "one that is not")

    one, none = await desk.answers()
    assert one == none.replace("other-nun", OTHER)


async def test_where_two_runs_share_an_issue_a_decision_counts_for_the_run_whose_request_it_names(desk: Desk) -> None:
    await desk.put((request(),))
    shared = THREADS[ChannelName.GITHUB][0]
    posted = Posted(channel=ChannelName.GITHUB, run_id=OTHER, slot="thread", message_id=shared)
    await desk.store.save_posted(posted)

    await desk.happens(on_github("approve", comment=2001), "names none")
    await desk.happens(on_github("approve R7", login="bob", number=22, comment=2002), "of another")
    await desk.happens(on_github("approve R7", comment=1999), "before it was asked")
    await desk.happens(on_github("approve R7", comment=2003, issue=9), "on an issue of neither")
    assert await desk.grants() == []

    await desk.happens(on_github("approve R7", comment=2004), "meant")
    (granted,) = await desk.grants()
    assert (granted.run_id, granted.grant.by) == (RUN, ADA)
    place = Place(conversation=shared, message="2004")
    taken_back = Unsaid(actor=on_github().actor, place=place, said_at=NOW)
    await desk.happens(taken_back, "taken back")
    assert [action.state for action in await desk.grants()] == [ActionState.VOID]
    whys = [entry.why for entry in await desk.attempts()]
    assert whys == ["another_place", "not_the_dri", "before_the_request", "another_place", "", ""]


def test_the_table_has_every_channel_and_no_gaps() -> None:
    assert len(FORGED) >= 100
    assert len({attempt.name for attempt in FORGED}) == len(FORGED)
    assert {attempt.event.actor.platform.value for attempt in FORGED} == {"slack", "github", "discord", "console"}


@pytest.mark.parametrize("name", REAL)
async def test_each_legitimate_form_is_exactly_one_grant_with_its_message_on_record(desk: Desk, name: str) -> None:
    await desk.put((request(),))

    for event_id in ("real", "real", "under another id"):
        await desk.happens(REAL[name], event_id)

    (action,) = await desk.grants()
    assert (action.grant.by, action.grant.request, action.grant.digest) == (ADA, 7, request().digest)
    approved, *repeats = await desk.attempts()
    assert approved.what == "approved"
    assert REAL[name].place.message in approved.detail
    assert [each.why for each in repeats] == ["already_decided"]


async def test_a_no_beats_the_yes_before_it_while_nothing_was_changed(desk: Desk) -> None:
    await desk.put((request(),))

    await desk.happens(on_slack(), "yes")
    await desk.happens(on_github("deny R7 because the data is wrong", comment=2002), "no")

    (action,) = await desk.grants()
    assert action.state == "void"
    known = await desk.store.record(RUN)
    assert known is not None
    assert [r.state for r in known.requests if r.number == 7] == [RequestState.WITHDRAWN]
    assert [each.what for each in await desk.attempts()] == ["approved", "denied"]


async def test_a_no_that_comes_when_the_world_was_changed_already_says_so(desk: Desk) -> None:
    granted = over(RequestState.GRANTED)
    await desk.put((granted,), (action_of(granted, StepName.SUBMIT),))

    await desk.happens(on_slack("deny R7"), "no")

    (action,) = await desk.grants()
    assert action.state == "granted"
    (entry,) = await desk.attempts()
    assert entry.why == "already_decided"


async def test_a_no_to_a_void_rollback_of_a_trial_under_way_is_a_no_and_a_yes_to_it_grants_nothing(desk: Desk) -> None:
    """The yes in advance would begin the next one by itself; who sees the first one fail can still say no."""
    plan = a_trial_plan(run_id=RUN)
    trial = Trial(plan=plan, request=3, agreed_by=ADA, agreed_at=AT, stage=Stage.NO_GO)
    back = RollbackPlan(run_id=RUN, trial=plan.digest, child_run_id=plan.child_run_id, stop=None, launch=None)
    void = over(RequestState.VOID, plan=back)
    known = Run(run_id=RUN, state=RunState.FAILED, last_checked_at=AT, trial=trial)
    await desk.put((void,), (action_of(void).model_copy(update={"state": ActionState.VOID}),), run=known)

    await desk.happens(on_slack("approve R7"), "yes")
    await desk.happens(on_slack("deny R7"), "no")

    assert [each.state for each in await desk.grants()] == ["void"]
    assert [each.what for each in await desk.attempts()] == ["decision_refused", "denied"]
    after = await desk.store.record(RUN)
    assert after is not None
    assert [each.state for each in after.requests if each.number == 7] == [RequestState.DENIED]


@pytest.mark.parametrize("first", ["approve R7", "deny R7"])
async def test_a_yes_and_a_no_that_wait_together_end_in_no_change_whichever_is_first(desk: Desk, first: str) -> None:
    await desk.put((request(),))
    second = "deny R7" if first == "approve R7" else "approve R7"
    await desk.store.receive("slack", "first", on_slack(first))
    await desk.store.receive("slack", "second", on_slack(second, at=LATER + timedelta(seconds=1)))

    await desk.dispatcher.handle_pending()

    assert [action for action in await desk.grants() if action.state == "granted"] == []
    assert len(await desk.attempts()) == 2


async def test_what_was_allowed_in_advance_is_ended_by_its_people_alone(desk: Desk) -> None:
    await desk.put((request(),), run=Run(run_id=RUN, state=RunState.FAILED, allowance=ALLOWED))

    await desk.happens(slash(f"revoke {RUN}", user="U0EVIL"), "stranger")
    await desk.happens(slash(f"revoke {RUN}", user="U0BOB"), "colleague")
    before = await desk.store.record(RUN)
    await desk.happens(slash(f"revoke {RUN}"), "dri")
    after = await desk.store.record(RUN)

    assert before is not None
    assert before.run.allowance == ALLOWED
    assert after is not None
    assert after.run.allowance is not None
    assert after.run.allowance.ended == "revoked by ada"
    assert [each.why for each in await desk.attempts()] == ["nobody_on_record", "not_theirs", ""]


def test_what_is_nobodys_words_never_reaches_the_inbox() -> None:
    """Hero's own echo, another bot's edit, a link's preview, a join, a pin, a foreign message's button."""
    own = Message(ts=ts(LATER), user="U0HERO", text="approve R7", thread_ts=ROOT_TS)
    bots = Message(ts=ts(LATER), user="U1", bot_id="B1", text="approve R7", thread_ts=ROOT_TS)
    edited = bots.model_copy(update={"edited": own.edited})
    joined = own.model_copy(update={"user": "U0ADA", "subtype": "channel_join"})
    pinned = Heard(id="1", channel=THREAD, author="111", is_bots=False, is_spoken=False, text="approve R7")
    foreign = Interaction(id="1", channel=THREAD, user="111", button="hero:approve:R7", message_author="5")

    assert map_message("C0HERO", own, ME, is_watched=True) is None
    assert map_message("C0HERO", joined, ME, is_watched=True) is None
    assert map_edit("C0HERO", edited, bots, ME, is_watched=True) is None
    assert discord_message(pinned, DISCORD_ME, VERBS.__contains__, is_watched=True) is None
    assert map_interaction(foreign, DISCORD_ME) is None
