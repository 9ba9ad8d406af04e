"""At Hero's own terminal all runs share one conversation: a line is taken for the request it is about, or answered."""

from datetime import timedelta

import pytest

from bot.model.delivery import ChannelName
from bot.model.person import Platform
from bot.model.plan import RequestState
from bot.model.value import RunId
from handlers.gate import Allowed, Attempt, Turned, judge_attempt
from handlers.reply import awaits_its_request
from handlers.terminal import Meant, NotMeant, named_request, remind_at_start, which_run
from tests.fakes.snapshots import AT, RUN
from tests.unit.handlers.scene import MEMBER, console, context, place, record, request, said

TWO = RunId("two")


@pytest.mark.parametrize("line", ["approve R8", "Deny r8 because of the data", "APPROVE R8."])
def test_a_named_request_is_found_whatever_run_was_told_of_last(line: str) -> None:
    waiting = (request(7), request(8, run_id=TWO))

    assert named_request(line) == 8
    assert which_run(line, waiting[1], waiting, RUN) == Meant(run_id=TWO)


def test_a_plain_yes_is_for_the_one_request_that_waits() -> None:
    waiting = (request(8, run_id=TWO),)

    assert named_request("approve") is None
    assert which_run("approve", None, waiting, RUN) == Meant(run_id=TWO)


def test_a_plain_yes_while_two_wait_is_for_neither() -> None:
    waiting = (request(7), request(8, run_id=TWO))

    answer = which_run("approve", None, waiting, RUN)

    assert isinstance(answer, NotMeant)
    assert f"R7 ({RUN}), R8 ({TWO})" in answer.answer


@pytest.mark.parametrize("line", ["garbage", "hello hero?", "approve R99"])
def test_what_decides_nothing_is_answered_with_what_would(line: str) -> None:
    answer = which_run(line, None, (request(7),), RUN)

    assert isinstance(answer, NotMeant)
    assert "`approve R7`" in answer.answer


def test_a_waiting_request_is_shown_at_the_terminal_after_a_start_and_nowhere_else() -> None:
    around = context().model_copy(update={"channels": (ChannelName.SLACK, ChannelName.CONSOLE)})

    reminder = remind_at_start(around, record(request(7)), AT)

    assert reminder is not None
    assert reminder.channels == (ChannelName.CONSOLE,)
    assert "R7" in reminder.update.headline
    assert remind_at_start(around, record(), AT) is None


def test_a_plain_yes_just_after_one_question_replaced_another_has_to_name_it() -> None:
    """The line may have been typed for the question before, which was another plan."""
    before = request(6, state=RequestState.VOID, decided_at=AT - timedelta(seconds=5))
    known = record(before, request(7))

    def judge(name: str | None, at: timedelta) -> Allowed | Turned:
        attempt = Attempt(
            actor=console(),
            standing=MEMBER,
            place=place(Platform.CONSOLE, "9999"),
            request=name,
            is_approval=True,
            said_at=AT + at,
        )
        return judge_attempt(known, attempt, context())

    assert reason(judge(None, timedelta(seconds=1))) == "replaced"
    assert reason(judge("R7", timedelta(seconds=1))) != "replaced"
    assert reason(judge(None, timedelta(minutes=2))) != "replaced"


def reason(found: Allowed | Turned) -> str:
    return found.why if isinstance(found, Turned) else ""


def test_a_reply_to_a_request_that_is_sent_but_not_noted_yet_waits() -> None:
    """Hero died between posting R7 and noting where; the DRI has read it and answers (field report R01)."""
    unnoted = record(request(7), posted=())

    assert awaits_its_request(unnoted, said("approve R7"))
    assert not awaits_its_request(record(request(7)), said("approve R7"))
    assert not awaits_its_request(unnoted, said("good morning"))
    assert not awaits_its_request(unnoted, said("approve R9"))


@pytest.mark.parametrize("line", ["approve", "aprove R1", "hello?"])
def test_a_line_before_anything_is_asked_is_told_that_nothing_waits(line: str) -> None:
    answer = which_run(line, None, (), None)

    assert answer == NotMeant(answer="Nothing waits for an answer yet; `/hero help` lists the commands.")
