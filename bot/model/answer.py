"""What a person's reply decides: yes, no, something to ask about, or nothing at all.

A reply approves only when one of its own lines is exactly ``approve`` or ``approve R7`` and nothing but a greeting or
thanks stands beside it. Any other word there makes the reply unclear: asking once more costs a minute, a wrong relaunch
costs days. What a person did not write as their own plain words here (quotes, code, e-mail trailers) decides nothing.
Who may decide, and whether the reply is new and unedited, is not judged here.
"""

import re
import unicodedata
from collections.abc import Collection
from typing import Literal

from bot.model.ownwords import HIDDEN, OwnWords, own_words
from bot.model.value import Value


class Approve(Value):
    """Yes, to one plan; ``request`` is None when the reply names none."""

    kind: Literal["approve"] = "approve"
    request: str | None = None


class Deny(Value):
    """No; ``reason`` is what stood behind ``because``."""

    kind: Literal["deny"] = "deny"
    request: str | None = None
    reason: str | None = None


class Unclear(Value):
    """Somebody seems to decide, but not in words that may be acted on: ``line`` is what to ask about."""

    kind: Literal["unclear"] = "unclear"
    line: str


class Chatter(Value):
    """Nothing to do with deciding."""

    kind: Literal["chatter"] = "chatter"


type Answer = Approve | Deny | Unclear | Chatter

_LINE_LIMIT = 300

_ID = r"(?P<request>R[1-9][0-9]{0,8})"
_GAP = r"[ \t\u00a0]+"
_APPROVE = re.compile(rf"approve(?:{_GAP}{_ID})?[.!]?", re.ASCII | re.IGNORECASE)
_DENY = re.compile(rf"deny(?:{_GAP}{_ID})?(?:{_GAP}because{_GAP}(?P<reason>\S.*)|[.!]?)", re.ASCII | re.IGNORECASE)
_MENTION = re.compile(r"(?:<@!?(?P<id>[A-Za-z0-9]+)(?:\|[^<>|]*)?>|@(?P<name>[\w.\-]+(?:\[bot\])?))[:,]?\s+")
_OWN_NAME = "hero"

_DECIDING = re.compile(
    r"\b(?:dis)?approv(?:e|ed|es|ing)\b|\bden(?:y|ied|ies|ying)\b"
    r"|\b(?:yes|ok|okay|lgtm|go|no|reject|accept|confirm)\b.{0,40}\br[0-9]+\b"
)
_ASSENT = re.compile(
    r"(?:lgtm|y|yes|yep|yeah|yup|ok|okay|sure|fine|k|go|go ahead|go for it|do it|ship it|proceed|confirmed?"
    r"|accept(?:ed)?|n|no|nope|nah|reject(?:ed)?|stop|\+1|-1|r[0-9]+|(?::[a-z0-9_+\-]+:\s*)+)[\s.!]*"
)
# All that may stand beside an approval. A list of what may not would never be complete.
_HARMLESS = re.compile(
    r"(?:\b(?:thanks|thank[ ]you|ty|please|hi|hello|good[ ]morning|cheers)\b|@hero(?![\w-])"
    r"|(?:[\U0001f64f\U0001f44d]|:(?:pray|\+1|thumbsup):)(?:\ufe0f|[\U0001f3fb-\U0001f3ff]|:skin-tone-[2-6]:)?"
    r"|[\s.,!:;\u2013\u2014-])*",
    re.ASCII | re.IGNORECASE,
)
# What quotes, code, comments and lists put around a line.
_MARKS = " \t>`~*_|<!-\"'\u2022"
_DECISION = re.compile(r"(?:approve|deny)(?:\s+r[0-9]+)?(?:\s+because\b.*)?[.!]?")
_ANYONE = re.compile(r"<@!?\w+(?:\|[^<>]*)?>[:,]?|@[\w.\-]+(?:\[bot\])?[:,]?")
_APPROVING = re.compile(r"approv")
_NAMED = re.compile(r"\br([0-9]+)\b")

# Letters of other scripts that look like those of the two words; only ever used to ask, never to accept.
_LOOKALIKES = str.maketrans(
    {
        "\u0430": "a", "\u0440": "p", "\u0433": "r", "\u043e": "o", "\u0475": "v", "\u0435": "e", "\u0501": "d",
        "\u043f": "n", "\u0443": "y", "\u03b1": "a", "\u03c1": "p", "\u03bf": "o", "\u03bd": "v", "\u03b5": "e",
        "\u03b7": "n", "\u03b3": "y", "\u0251": "a", "\u0131": "i",
    }
)  # fmt: skip


def parse_answer(text: str, *, bot: Collection[str] | None = None) -> Answer:
    """Read what a reply decides; never raises.

    Args:
        text: the reply as the platform gave it; Slack text may be escaped or not.
        bot: the bot's own user ids and names, for the mention a line may begin with. None takes ``@hero`` alone, and
            no user id (``<@U123>``): the channels, which know Hero's own, have taken it away.

    Source: the approval rule of the chat surface; what it must refuse was seen in vercel/eve#2137 and
    palantir/policy-bot#1096.
    """
    said = own_words(text)
    unmentioned = [_without_mention(line.strip(), bot) for line in said.lines]
    exact = {place: found for place, line in enumerate(unmentioned) if (found := _exact(line)) is not None}
    if exact:
        return _agreed(said, exact, bot)
    for line in said.lines:
        if _DECIDING.search(_folded(line)):
            return _unclear(line)
    whole = " ".join(line for line in unmentioned if line)
    return _unclear(whole) if whole and _is_bare_assent(whole) else Chatter()


def speaks_of_deciding(text: str) -> bool:
    """Whether the words of a decision stand anywhere in a text, as own words or not."""
    return any(_DECIDING.search(_folded(line)) for line in text.splitlines())


def find_hidden_decision(text: str) -> str | None:
    """Return a line that would decide if it were its author's own plain words: a quoted, coded or hidden one.

    It never counts; it is only ever noted, and answered to whoever may have meant it.
    """
    sound = text.encode("utf-8", "replace").decode("utf-8")
    found = (line for line in sound.splitlines() if _DECISION.fullmatch(_folded(_ANYONE.sub(" ", line)).strip(_MARKS)))
    return next((line.strip()[:_LINE_LIMIT] for line in found), None)


def unescape_slack(text: str) -> str:
    """Undo Slack's three escapes, once: ``&amp;lt;`` becomes ``&lt;`` and stays so."""
    plain = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
    return re.sub("&(?:amp|lt|gt);", lambda match: plain[match[0]], text)


def _exact(line: str) -> Approve | Deny | None:
    if found := _APPROVE.fullmatch(line):
        return Approve(request=_request(found))
    if found := _DENY.fullmatch(line):
        reason = found["reason"]
        return Deny(request=_request(found), reason=reason.strip() if reason else None)
    return None


def _request(found: re.Match[str]) -> str | None:
    return found["request"].upper() if found["request"] else None


def _agreed(said: OwnWords, exact: dict[int, Approve | Deny], bot: Collection[str] | None) -> Answer:
    """Join the exact lines of one reply; they must say the same, and an approval must stand alone."""
    first_line = said.lines[min(exact)]
    requests = {decision.request for decision in exact.values()} - {None}
    request = next(iter(requests), None)
    denials = [decision for decision in exact.values() if isinstance(decision, Deny)]
    if len(requests) > 1 or len(denials) not in {0, len(exact)}:
        return _unclear(first_line)
    if denials:
        others = [line for place, line in enumerate(said.lines) if place not in exact]
        if doubt := next((line for line in others if _contradicts(line, request)), None):
            return _unclear(f"{first_line.strip()} … {doubt.strip()}")
        return Deny(request=request, reason=next((denial.reason for denial in denials if denial.reason), None))
    if doubt := next((line for line in said.beside(exact) if not _is_harmless(line, bot)), None):
        return _unclear(f"{first_line.strip()} … {doubt.strip()}")
    return _unclear(first_line) if said.may_be_hidden(exact) else Approve(request=request)


def _contradicts(line: str, request: str | None) -> bool:
    """Say whether a line beside a denial approves, or names another request; all else may be its reason."""
    folded = _folded(line)
    return bool(_APPROVING.search(folded)) or any(f"R{number}" != request for number in _NAMED.findall(folded))


def _is_harmless(line: str, bot: Collection[str] | None) -> bool:
    return _HARMLESS.fullmatch(_without_mention(f"{line.strip()} ", bot)) is not None


def _without_mention(line: str, bot: Collection[str] | None) -> str:
    found = _MENTION.match(line)
    if found is None:
        return line
    identity, name = found["id"], found["name"]
    if bot is None:
        mine = name is not None and name.lower() == _OWN_NAME
    else:
        mine = (identity or name).lower() in {known.lower().removeprefix("@") for known in bot}
    return line[found.end() :] if mine else line


def _is_bare_assent(whole: str) -> bool:
    if _ASSENT.fullmatch(_folded(whole)):
        return True
    kinds = {unicodedata.category(character) for character in whole if not character.isspace()}
    return "So" in kinds and kinds <= {"So", "Sk", "Mn", "Me", "Cf"}


def _unclear(line: str) -> Unclear:
    return Unclear(line=line.replace(HIDDEN, "…").strip()[:_LINE_LIMIT])


def _folded(line: str) -> str:
    """Bring look-alikes, widths, case and invisible characters down to what the eye reads."""
    plain = unicodedata.normalize("NFKC", line).casefold()
    seen = "".join(character for character in plain if unicodedata.category(character) not in {"Cf", "Mn"})
    return seen.translate(_LOOKALIKES)
