"""An update as the Markdown body of a GitHub comment.

The first line says it all, since it is what a mail's preview and a phone show; then who is asked and what comes next,
then the plan, then where the run is, and the evidence last, because evidence is what is cut when a body would be longer
than GitHub takes. Everything from outside is escaped or stands in a code block: no foreign text forges a mention, a
closing keyword or one of the hidden markers by which Hero finds its own comments again.
"""

import re
from itertools import zip_longest
from urllib.parse import quote

from bot.model.update import Choice, Standing, Update, UpdateKind
from bot.model.value import RunId
from bot.render.chart import spark_lines
from bot.render.text import clean, github_code_block, github_escape
from bot.render.words import SEVERITY_SIGNS, first_line, say_time, standing_facts

BODY_LIMIT = 65_536
"""Characters; above it GitHub answers 422 "Body is too long" (seen in telia-oss/github-pr-resource#259)."""

TITLE_LIMIT = 256

MARKER_START = "<!-- hero:"
"""What each body of ours contains somewhere; foreign text in it cannot."""

NEWS_MARKER = "<!-- hero:news -->"
"""Stands above the news that did not get a comment of its own."""

_SENTENCE_LIMIT = 4_000
_FACT_LIMIT = 400
_FACTS_MOST = 40
_NEWS_LIMIT = 400
_NEWS_MOST = 20
_ANSWER_LIMIT = 12_000
_SHORT_EVIDENCE_LINES = 6
_SHORT_EVIDENCE_LIMIT = 800
_SHOWN_LINES = 3
_SHOWN_LINE_LIMIT = 300
_LEAST_EVIDENCE = 200
_THE_ISSUE = "issue"
"""A link to where the comment stands already."""
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
_REQUEST = re.compile(r"R[0-9]{1,9}")


def github_body(
    update: Update,
    *,
    key: str,
    timezone: str,
    asked_login: str | None = None,
    also_logins: tuple[str | None, ...] = (),
    news: tuple[str, ...] = (),
) -> str:
    """Return the whole comment, at most ``BODY_LIMIT`` characters.

    Args:
        update: what to tell; ``evidence`` is cut when it does not fit, with a note that says how much.
        key: of the delivery; its hidden marker ends the body.
        timezone: in which people read times.
        asked_login: GitHub login of whom ``update.asked`` is. None: named in words.
        also_logins: those of ``update.also_asked``, in their order. There is no other mention.
        news: lines of ``news_line`` that go below, when the day's comments are used up.
    """
    tail = f"{_news(news)}\n\n{delivery_marker(key)}"
    parts = [_title(update), _asked(update, (asked_login, *also_logins)), _choice(update.choice)]
    parts += [_next(update), "", _standing(update.standing, timezone), _evidence_place(update)]
    parts += [_picture(update), f"<sub>{say_time(update.at, timezone)}</sub>"]
    room = BODY_LIMIT - sum(len(part) + 2 for part in parts) - len(tail)
    parts[4] = _plan(update.plan, room - _LEAST_EVIDENCE)
    heading = "Details" if update.kind is UpdateKind.ANSWER else "Evidence"
    parts[6] = _evidence(heading, update.evidence, room - len(parts[4]))
    return "\n\n".join(part for part in parts if part) + tail


def private_body(update: Update, *, key: str, login: str) -> str:
    """Return a reply to one account, which it names without mentioning: GitHub has no private messages."""
    named = f"`{login}`: " if _LOGIN.fullmatch(login) else ""
    said = _sentence(update.headline, 1_000)
    then = _sentence(update.next, 1_000)
    lines = "\n".join(clean(line, _SENTENCE_LIMIT) for line in update.evidence)
    whole = f"\n\n{github_code_block(lines, _ANSWER_LIMIT)}" if lines else ""
    return f"{named}{said}{' ' + then if then else ''}{whole}\n\n{delivery_marker(key)}"


def news_line(update: Update, *, key: str, timezone: str) -> str:
    """Return one line of the news that goes into the live status instead of a comment of its own."""
    said = _sentence(first_line(update), _NEWS_LIMIT)
    return f"- {say_time(update.at, timezone)} {SEVERITY_SIGNS[update.severity]} {said} {delivery_marker(key)}"


def with_news(body: str, news: tuple[str, ...]) -> str:
    """Return an earlier body of ours with these news instead of those that it had; the newest, as far as they fit."""
    whole, _, marker = body.replace("\r\n", "\n").rpartition("\n\n")
    above = whole.partition(f"\n\n{NEWS_MARKER}")[0]
    while len(longer := f"{above}{_news(news)}\n\n{marker}") > BODY_LIMIT and news:
        news = news[1:]
    return longer


def news_alone(run_id: RunId, news: tuple[str, ...], *, key: str) -> str:
    """Return the live status of a run of which there was none yet when its day's comments were used up."""
    return f"**{_sentence(run_id, 200)}: news**{_news(news)}\n\n{delivery_marker(key)}"


def delivery_marker(key: str) -> str:
    """Return the hidden comment by which a delivery is found again; one key's marker is no part of another's."""
    return f"{MARKER_START}delivery={coded(key)} -->"


def run_marker(run_id: RunId) -> str:
    """Return what an issue's own text ends with; the newest one with it is where the run is now."""
    return f"{MARKER_START}run={coded(run_id)} -->"


def is_same_text(body: str, other: str) -> bool:
    """Say whether two bodies differ in nothing but line ends and which delivery brought them."""
    return _unmarked(body) == _unmarked(other)


def _unmarked(body: str) -> str:
    text = body.replace("\r\n", "\n")
    return re.sub(r"\s*<!-- hero:delivery=[^ ]* -->\s*\Z", "", text).strip()


def coded(key: str) -> str:
    """Return a name as it may stand inside a hidden marker."""
    return quote(key, safe=":/.,+=").replace("--", "-%2D")


def _title(update: Update) -> str:
    return f"{SEVERITY_SIGNS[update.severity]} **{_sentence(first_line(update), _SENTENCE_LIMIT)}**"


def _asked(update: Update, logins: tuple[str | None, ...]) -> str:
    if update.asked is None:
        return ""
    named = zip_longest((update.asked, *update.also_asked), logins, fillvalue=None)
    asked = (
        f"@{login}" if login and _LOGIN.fullmatch(login) else _sentence(name, 200) for name, login in named if name
    )
    return f"**Asked:** {', '.join(asked)}"


def _choice(choice: Choice | None) -> str:
    if choice is None:
        return ""
    request = _code(choice.request)
    if not choice.is_open:
        return f"**Request {request}:** {_sentence(choice.outcome, _SENTENCE_LIMIT) or 'closed'}"
    named = choice.request if _REQUEST.fullmatch(choice.request) else ""
    approve, deny = f"approve {named}".strip(), f"deny {named}".strip()
    return (
        f"**Request {request}:** answer with a new comment on this issue; a line of it must be exactly `{approve}` or "
        f"`{deny} because …`. A quoted or edited answer does not count."
    )


def _next(update: Update) -> str:
    return f"**Next:** {_sentence(update.next, _SENTENCE_LIMIT)}" if update.next else ""


def _standing(standing: Standing | None, timezone: str) -> str:
    if standing is None:
        return ""
    facts = [fact for fact in standing_facts(standing, timezone) if fact[0] != _THE_ISSUE]
    lines = [f"- **{label}:** {_sentence(value, _FACT_LIMIT)}" for label, value in facts[:_FACTS_MOST]]
    if len(facts) > _FACTS_MOST:
        lines.append(f"- and {len(facts) - _FACTS_MOST} more that could not be read")
    return "\n".join(lines)


def _plan(plan: tuple[str, ...], room: int) -> str:
    """Show every line. A plan longer than a whole comment must not be approved here, and that is said instead."""
    if not plan:
        return ""
    head = "**Plan**\n\n"
    whole = head + github_code_block("\n".join(plan))
    if len(whole) <= room:
        return whole
    warning = (
        "**Plan: too long for a GitHub comment, so it is NOT shown whole. Do not approve what you cannot see; "
        "`hero plan` prints all of it.**\n\n"
    )
    return warning + github_code_block("\n".join(plan), max(0, room - len(warning)))


def _picture(update: Update) -> str:
    """A comment can have no file: the series as lines of text, and the command that draws them, where there is one."""
    if update.chart is None:
        return ""
    drawn = () if update.chart.beside else (f"draw it: hero plot {clean(update.chart.run_id, 200)} --out plot.png",)
    return github_code_block("\n".join((*spark_lines(update.chart), *drawn)))


def _evidence_place(update: Update) -> str:
    """What the heading and the notes around the evidence may take at most; it is replaced by the evidence itself."""
    return " " * 300 if update.evidence else ""


def _evidence(heading: str, evidence: tuple[str, ...], room: int) -> str:
    if not evidence:
        return ""
    lines = "\n".join(clean(line, BODY_LIMIT) for line in evidence)
    if len(evidence) <= _SHORT_EVIDENCE_LINES and len(lines) <= min(_SHORT_EVIDENCE_LIMIT, room // 2):
        return f"**{heading}**\n\n{github_code_block(lines)}"
    first = "\n".join(clean(line, _SHOWN_LINE_LIMIT) for line in evidence[:_SHOWN_LINES])
    shown = f"**{heading}**\n\n{github_code_block(first, min(1_200, max(0, room // 3)))}"
    room -= len(shown)
    whole = github_code_block(lines)
    if len(whole) <= room:
        return f"{shown}\n\n<details><summary>All {_count(evidence)}</summary>\n\n{whole}\n\n</details>"
    cut = github_code_block(lines, max(0, room))
    note = f"The beginning of {_count(evidence)}: cut to fit into a GitHub comment"
    return f"{shown}\n\n<details><summary>{note}</summary>\n\n{cut}\n\n</details>"


def _count(evidence: tuple[str, ...]) -> str:
    return f"{len(evidence)} lines" if len(evidence) != 1 else "the one line"


def _news(news: tuple[str, ...]) -> str:
    if not news:
        return ""
    left_out = f"- and {len(news) - _NEWS_MOST} older\n" if len(news) > _NEWS_MOST else ""
    lines = "\n".join(news[-_NEWS_MOST:])
    return (
        f"\n\n{NEWS_MARKER}\n**The day's comments on this issue are used up, so this news is told here alone:**\n\n"
        f"{left_out}{lines}"
    )


def _sentence(text: str, limit: int) -> str:
    """Bring foreign text into one line of a paragraph."""
    return github_escape(" ".join(clean(text, limit).split()), limit)


def _code(text: str) -> str:
    """Return a name of ours in code font, where neither mentions nor references work."""
    return f"`{re.sub(r'[^A-Za-z0-9._:/-]', '_', text)}`"
