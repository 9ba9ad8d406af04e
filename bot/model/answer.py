"""What a person's reply decides: yes, no, something to ask about, or nothing at all.

A reply approves only when one of its own lines is exactly ``approve`` or ``approve R7``. Everything a person did not
write as their own plain words here (quotes, code, e-mail trailers, HTML comments) is not looked at, and anything that
could be read as a condition makes the reply unclear: asking once more costs a minute, a wrong relaunch costs days.
Who may decide, and whether the reply is new and unedited, is not judged here.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from typing import Literal

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
_CODE_INDENT = 4

# Marks that stand where a comment or an inline code span stood. Input cannot hold them: they are replaced first.
_HIDDEN = "\x00"

_ID = r"(?P<request>R[1-9][0-9]{0,8})"
_GAP = r"[ \t\u00a0]+"
_APPROVE = re.compile(rf"approve(?:{_GAP}{_ID})?[.!]?", re.ASCII | re.IGNORECASE)
_DENY = re.compile(rf"deny(?:{_GAP}{_ID})?(?:{_GAP}because{_GAP}(?P<reason>\S.*)|[.!]?)", re.ASCII | re.IGNORECASE)
_MENTION = re.compile(r"(?:<@!?(?P<id>[A-Za-z0-9]+)(?:\|[^<>|]*)?>|@(?P<name>[\w.\-]+(?:\[bot\])?))[:,]?\s+")
_OWN_NAMES = frozenset({"hero", "hero-bot", "hero[bot]", "herobot"})

_DECIDING = re.compile(
    r"\b(?:dis)?approv(?:e|ed|es|ing)\b|\bden(?:y|ied|ies|ying)\b"
    r"|\b(?:yes|ok|okay|lgtm|go|no|reject|accept|confirm)\b.{0,40}\br[0-9]+\b"
)
_ASSENT = re.compile(
    r"(?:lgtm|y|yes|yep|yeah|yup|ok|okay|sure|fine|k|go|go ahead|go for it|do it|ship it|proceed|confirmed?"
    r"|accept(?:ed)?|n|no|nope|nah|reject(?:ed)?|stop|\+1|-1|r[0-9]+|(?::[a-z0-9_+\-]+:\s*)+)[\s.!]*"
)
_QUALIFIER = re.compile(
    r"\b(?:but|unless|if|except|not|never|wait|hold|until|till|only|instead|however|although|though|provided|assuming"
    r"|once|when|after|before|first|yet|later|cancel|abort|stop|chang(?:e|es|ed|ing)|us(?:e|es|ing)|with|without|maybe"
    r"|perhaps|dont|cannot|undo|revert|retract|withdraw|mistake|kidding|joking|nvm|nevermind)\b|n['\u2019]t\b"
)
# An HTML tag can hide or strike out the lines after it without a mark on them; links in angle brackets cannot.
_TAG = re.compile(r"<(?!https?:|mailto:)/?[a-z]", re.IGNORECASE)
_QUOTE = re.compile(r"\s*(?:>|&gt;)")
_QUOTE_OF_ALL_THAT_FOLLOWS = re.compile(r"\s*(?:>|&gt;){3}")
_FENCE = re.compile(r"[ ]{0,3}(?P<run>`{3,}|~{3,})(?P<rest>.*)")
_LONG_RUN = re.compile(r"`{3,}")
_RUN = re.compile(r"`+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SIGNATURE = re.compile(r"--[ \t]*|-{2,}[ ]?original message[ ]?-{2,}|_{10,}[ \t]*", re.IGNORECASE)
_WROTE = re.compile(r"on\b.{1,300}\bwrote:\s*", re.IGNORECASE | re.DOTALL)

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
        bot: the bot's own user ids and names, for the mention a reply may begin with. None accepts any user id
            (``<@U123>``) and Hero's usual names (``@hero``).

    Source: the approval rule of the chat surface; what it must refuse was seen in vercel/eve#2137 and
    palantir/policy-bot#1096.
    """
    lines = _own_lines(text)
    unmentioned = [_without_mention(line.strip(), bot) for line in lines]
    exact = {place: found for place, line in enumerate(unmentioned) if (found := _exact(line)) is not None}
    for place, line in enumerate(lines):
        if place not in exact and _DECIDING.search(_folded(line)):
            return _unclear(line)
    if exact:
        return _agreed(lines, exact, text)
    whole = " ".join(line for line in unmentioned if line)
    return _unclear(whole) if whole and _is_bare_assent(whole) else Chatter()


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


def _agreed(lines: list[str], exact: dict[int, Approve | Deny], text: str) -> Answer:
    """Join the exact lines of one reply; they must say the same, and an approval must stand unconditioned."""
    decisions = list(exact.values())
    requests = {decision.request for decision in decisions} - {None}
    first_line = lines[min(exact)]
    if len({decision.kind for decision in decisions}) > 1 or len(requests) > 1:
        return _unclear(first_line)
    request = next(iter(requests), None)
    first = decisions[0]
    if isinstance(first, Deny):
        reason = next((found.reason for found in decisions if isinstance(found, Deny) and found.reason), None)
        return Deny(request=request, reason=reason)
    others = [line for place, line in enumerate(lines) if place not in exact]
    if doubt := next((line for line in others if _QUALIFIER.search(_folded(line))), None):
        return _unclear(f"{first_line.strip()} … {doubt.strip()}")
    quoted = any(_QUOTE_OF_ALL_THAT_FOLLOWS.match(line) for line in text.splitlines())
    if quoted or any(_TAG.search(line) for line in others) or any(_struck_out(lines, place) for place in exact):
        return _unclear(first_line)
    return Approve(request=request)


def _struck_out(lines: list[str], place: int) -> bool:
    """Say whether tildes stand both before and after a line: together they may strike it out."""
    return any("~" in line for line in lines[:place]) and any("~" in line for line in lines[place + 1 :])


def _without_mention(line: str, bot: Collection[str] | None) -> str:
    found = _MENTION.match(line)
    if found is None:
        return line
    identity, name = found["id"], found["name"]
    if bot is None:
        mine = name is None or name.lower() in _OWN_NAMES
    else:
        mine = (identity or name).lower() in {known.lower().removeprefix("@") for known in bot}
    return line[found.end() :] if mine else line


def _is_bare_assent(whole: str) -> bool:
    if _ASSENT.fullmatch(_folded(whole)):
        return True
    kinds = {unicodedata.category(character) for character in whole if not character.isspace()}
    return "So" in kinds and kinds <= {"So", "Sk", "Mn", "Me", "Cf"}


def _unclear(line: str) -> Unclear:
    return Unclear(line=line.replace(_HIDDEN, "…").strip()[:_LINE_LIMIT])


def _folded(line: str) -> str:
    """Bring look-alikes, widths, case and invisible characters down to what the eye reads."""
    plain = unicodedata.normalize("NFKC", line).casefold()
    seen = "".join(character for character in plain if unicodedata.category(character) not in {"Cf", "Mn"})
    return seen.translate(_LOOKALIKES)


def _own_lines(text: str) -> list[str]:
    """Return the lines that the person wrote as plain words here, in order."""
    sound = text.encode("utf-8", "replace").decode("utf-8").replace(_HIDDEN, "\ufffd")
    sound = sound.replace("\r\n", "\n").replace("\r", "\n")
    uncommented = _COMMENT.sub(lambda match: re.sub(r"[^\n]", _HIDDEN, match[0]), sound)
    raw, shown = sound.split("\n"), uncommented.split("\n")
    # Platforms disagree on what wins where fences and comments overlap: a line counts only if every reading shows it.
    coded = _fenced(raw) | _fenced(shown) | _toggled(raw) | _toggled(shown)
    apart = coded | {place for place, line in enumerate(raw) if _quoted_or_indented(line)}
    kept = ["" if place in apart or _quoted_or_indented(line) else line for place, line in enumerate(shown)]
    kept = kept[: _trailer_start(kept)]
    return [line for line in _without_code_spans(kept) if line.strip(_HIDDEN + " \t")]


def _quoted_or_indented(line: str) -> bool:
    if _QUOTE.match(line):
        return True
    expanded = line.expandtabs(_CODE_INDENT)
    return len(expanded) - len(expanded.lstrip(" ")) >= _CODE_INDENT


def _fenced(lines: list[str]) -> set[int]:
    """Return the places of lines in fenced blocks as Markdown reads them; an unclosed one reaches to the end."""
    places: set[int] = set()
    fence: str | None = None
    for place, line in enumerate(lines):
        found = _FENCE.match(line)
        if fence is not None:
            places.add(place)
            closes = found is not None and found["run"].startswith(fence) and not found["rest"].strip()
            fence = None if closes else fence
        elif found is not None and not (found["run"][0] == "`" and "`" in found["rest"]):
            places.add(place)
            fence = found["run"]
    return places


def _toggled(lines: list[str]) -> set[int]:
    """Return the places of lines in code blocks as Slack reads them: every triple backtick opens or closes."""
    places: set[int] = set()
    inside = False
    for place, line in enumerate(lines):
        runs = len(_LONG_RUN.findall(line))
        if inside or runs:
            places.add(place)
        inside ^= bool(runs % 2)
    return places


def _trailer_start(lines: list[str]) -> int:
    """Return where an e-mail's signature or quoted predecessor begins; the number of lines when there is none."""
    for place, line in enumerate(lines):
        bare = line.strip()
        if _SIGNATURE.fullmatch(bare):
            return place
        # Mail programs wrap the line "On … wrote:", so it may end on one of the next two.
        if bare[:2].lower() == "on" and any(
            _WROTE.fullmatch("\n".join(lines[place : place + n]).strip()) for n in (1, 2, 3)
        ):
            return place
    return len(lines)


def _without_code_spans(lines: list[str]) -> Iterator[str]:
    """Hide inline code, which may reach over the line ends of its paragraph."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
            continue
        yield from _hide_spans("\n".join(paragraph)).split("\n")
        paragraph = []


def _hide_spans(paragraph: str) -> str:
    runs = list(_RUN.finditer(paragraph))
    closing: dict[int, int] = {}
    latest: dict[int, int] = {}
    for place in range(len(runs) - 1, -1, -1):
        length = len(runs[place][0])
        if length in latest:
            closing[place] = latest[length]
        latest[length] = place
    pieces: list[str] = []
    done = place = 0
    while place < len(runs):
        if place in closing:
            start, end = runs[place].start(), runs[closing[place]].end()
            pieces += paragraph[done:start], re.sub(r"[^\n]", _HIDDEN, paragraph[start:end])
            done, place = end, closing[place]
        place += 1
    return "".join(pieces) + paragraph[done:]
