"""What GitHub says beside a comment of its author is shown in the audit log, and decides nothing."""

from datetime import UTC, datetime

from bot.channels.github.seen import Account, Comment
from bot.channels.github.speech import actor_of
from handlers.attempts import say_who
from handlers.reply import decide_said
from tests.fakes.snapshots import AT
from tests.unit.handlers.scene import GUEST, context, grants, record, request, said

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def a_comment(association: str) -> Comment:
    return Comment(
        id=3,
        author=Account(id=11, login="ada", is_bot=False),
        body="approve R7",
        created_at=NOON,
        updated_at=NOON,
        is_by_app=False,
        association=association,
        link="",
    )


def test_it_stands_behind_the_account_that_cannot_change() -> None:
    assert say_who(actor_of(a_comment("COLLABORATOR"))) == "github:11 (ada, collaborator)"
    assert say_who(actor_of(a_comment(""))) == "github:11 (ada)"


def test_an_owner_by_that_word_alone_decides_nothing() -> None:
    event = said("approve R7", actor_of(a_comment("OWNER")))

    decision = decide_said(record(request()), event, GUEST, context(), AT)

    assert grants(decision) == ()
    assert [entry.who for entry in decision.audit] == ["github:11 (ada, owner)"]
