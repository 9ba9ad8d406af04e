"""What a comment is to Hero: a message, an edit, or a command. Pure."""

import hashlib
import re

from bot.channels.github.records import Heard
from bot.channels.github.seen import Comment
from bot.model.answer import Approve, Deny, parse_answer
from bot.model.event import Commanded, Place, Said, Unsaid
from bot.model.person import Actor, Platform

_COMMAND = re.compile(r"/hero(?:[ \t]+(?P<text>.*))?", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def heard(comment: Comment) -> Heard:
    """Return what is kept of a comment, so that its edit or deletion is noticed."""
    actor = actor_of(comment)
    return Heard(
        user_id=actor.user_id,
        login=actor.login,
        is_bot=actor.is_bot,
        digest=digest(comment.body),
        created_at=comment.created_at,
        updated_at=comment.updated_at,
    )


def event_of(
    issue: int, comment: Comment, before: Heard | None, own_login: str = "", *, is_edited: bool = False
) -> Said | Commanded:
    """Return what somebody did by writing or editing a comment; ``before`` is its earlier wording, if one was heard.

    ``own_login`` is Hero's, whose mention before a word says nothing; ``is_edited`` says that GitHub called it an edit.

    An edit runs no command and decides nothing (R45): it comes as an edited message whatever it says.
    """
    actor, place = actor_of(comment), Place(conversation=str(issue), message=str(comment.id))
    is_edited = is_edited or comment.updated_at > comment.created_at
    is_edited = is_edited or (before is not None and before.digest != digest(comment.body))
    # A decision beside a command must not be lost with it: it comes as a message, and is asked about.
    is_command = not is_edited and not _decides_beside_commands(comment.body)
    command = find_command(comment.body) if is_command else None
    if command is not None:
        return Commanded(actor=actor, place=place, text=command, said_at=comment.created_at)
    text = without_mention(comment.body, own_login)
    return Said(actor=actor, place=place, text=text, said_at=comment.created_at, is_edited=is_edited)


def deletion_of(issue: int, comment_id: str, before: Heard) -> Unsaid:
    actor = Actor(platform=Platform.GITHUB, user_id=before.user_id, login=before.login, is_bot=before.is_bot)
    place = Place(conversation=str(issue), message=comment_id)
    return Unsaid(actor=actor, place=place, said_at=before.created_at)


def actor_of(comment: Comment) -> Actor:
    """Return who wrote a comment; what an app posted in a person's name is a bot's as well."""
    author = comment.author
    if author is None:
        return Actor(platform=Platform.GITHUB, user_id="0", login="ghost", is_bot=comment.is_by_app)
    return Actor(
        platform=Platform.GITHUB,
        user_id=str(author.id),
        login=author.login,
        display_name=author.login,
        association=comment.association[:40],
        is_bot=author.is_bot or comment.is_by_app,
    )


def find_command(body: str) -> str | None:
    """Return what follows ``/hero`` on the first line that begins with it; quotes and code blocks command nothing."""
    fence = ""
    for line in _HIDDEN.sub("", body.replace("\r\n", "\n")).split("\n"):
        found = _FENCE.match(line)
        if found is not None and not fence:
            fence = found[1]
        elif found is not None and found[1].startswith(fence):
            fence = ""
        elif not fence and (command := _COMMAND.fullmatch(line.rstrip())):
            return (command["text"] or "").strip()
    return None


def _decides_beside_commands(body: str) -> bool:
    lines = body.replace("\r\n", "\n").split("\n")
    others = [line for line in lines if not _COMMAND.fullmatch(line.rstrip())]
    return len(others) < len(lines) and isinstance(parse_answer("\n".join(others)), Approve | Deny)


def without_mention(body: str, login: str) -> str:
    """Take the mention of an account, or of an app by its name, from the beginnings of lines.

    Only before a word: were a mark of a quote or of a mail's end bared, the rest would no longer count as own words.
    """
    if not login:
        return body
    name = re.escape(login.removesuffix("[bot]")) + (r"(?:\[bot\])?" if login.endswith("[bot]") else "")
    mention = rf"^([ \t]*)@{name}(?:[:,]?[ \t]+(?=[A-Za-z])|[:,]?[ \t]*(?=\r?$))"
    return re.sub(mention, r"\1", body, flags=re.MULTILINE | re.IGNORECASE)


def digest(body: str) -> str:
    """Tell two wordings of a comment apart; short, since it is part of an event's id."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:12]
