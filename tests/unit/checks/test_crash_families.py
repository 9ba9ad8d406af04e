"""Every family of crash texts is recognised, with and without what launchers and loggers put around a message."""

from collections.abc import Callable

import pytest

from bot.model.crash import CrashClass, RelaunchAdvice
from checks.crash.classify import classify
from checks.crash.rules.tables import RULES
from tests.unit.checks.crash_texts import infrastructure, program
from tests.unit.checks.crash_texts.cascades import CASCADES
from tests.unit.checks.crash_texts.messages import MESSAGES

FAMILIES: tuple[tuple[CrashClass, tuple[str, ...]], ...] = (
    (CrashClass.INFRA_PREEMPTION, infrastructure.PREEMPTION),
    (CrashClass.INFRA_HARDWARE, infrastructure.HARDWARE),
    (CrashClass.OOM_HOST, infrastructure.OOM_HOST),
    (CrashClass.OOM_DEVICE, infrastructure.OOM_DEVICE),
    (CrashClass.CAPACITY, infrastructure.CAPACITY),
    (CrashClass.CODE_BUG_SMALL, program.SMALL),
    (CrashClass.CODE_BUG_COMPLEX, program.COMPLEX),
    (CrashClass.CONFIG, program.CONFIG),
    (CrashClass.DATA, program.DATA),
    (CrashClass.NUMERICAL, program.NUMERICAL),
    (CrashClass.BENIGN, program.BENIGN),
    (CrashClass.UNKNOWN, program.UNKNOWN),
)
TEXTS = (*((want, text) for want, texts in FAMILIES for text in texts), *MESSAGES)
NEVER_BLIND = {
    CrashClass.CODE_BUG_SMALL,
    CrashClass.CODE_BUG_COMPLEX,
    CrashClass.CONFIG,
    CrashClass.DATA,
    CrashClass.NUMERICAL,
    CrashClass.UNKNOWN,
    CrashClass.OOM_HOST,
    CrashClass.OOM_DEVICE,
}
TALK = "".join(f"INFO main: loaded module {name}\n" for name in ("alpha", "beta", "gamma", "delta"))


def before_each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "\n".join(prefix + line for line in text.split("\n"))


DRESSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("windows line ends", lambda text: text.replace("\n", "\r\n")),
    ("harmless talk before", lambda text: TALK + text),
    ("rank", before_each_line("[rank5]: ")),
    ("timestamp", before_each_line("2025-01-02T03:04:05.678Z ")),
    ("orchestrator, new", before_each_line("[15:15:06] task=/me/x/0 attempt=0 | ")),
    ("orchestrator, old", before_each_line("[15:15:06] task=/me/x/0 | ")),
    ("ray", before_each_line("(TrainWorker pid=12, ip=10.0.0.1) ")),
    ("mpirun", before_each_line("[1,3]<stderr>:")),
    ("srun", before_each_line("3: ")),
    ("pod", before_each_line("trainer-worker-3 | ")),
    ("syslog", before_each_line("Dec  7 16:03:58 node-0 train[33]: ")),
    ("glog", before_each_line("I0313 23:27:22.667769 139910566417600 log.py:81] ")),
    ("colours", before_each_line("\x1b[31m")),
    ("stopped siblings after", lambda text: f"{text}\nW1 api.py:908] Sending process 5 closing signal SIGTERM\n"),
)


@pytest.mark.parametrize(("want", "text"), TEXTS)
def test_a_text_of_a_family_has_its_class(want: CrashClass, text: str) -> None:
    answer = classify(text)

    assert answer.crash_class is want


@pytest.mark.parametrize(("want", "text"), TEXTS)
def test_same_id_is_advised_for_infrastructure_alone(want: CrashClass, text: str) -> None:
    if want in NEVER_BLIND:
        assert classify(text).relaunch is not RelaunchAdvice.SAME_ID


@pytest.mark.parametrize(("name", "dress"), DRESSES)
def test_what_stands_around_a_message_does_not_change_its_class(name: str, dress: Callable[[str], str]) -> None:
    changed = [text for want, text in TEXTS if classify(dress(text)).crash_class is not want]

    assert changed == []


@pytest.mark.parametrize(("name", "text", "want", "relaunch"), CASCADES)
def test_the_earliest_cause_is_found(name: str, text: str, want: CrashClass, relaunch: RelaunchAdvice) -> None:
    answer = classify(text)

    assert (answer.crash_class, answer.relaunch) == (want, relaunch)


def test_every_rule_has_its_own_id_and_can_be_reached() -> None:
    """A needle in capitals, or an id used twice, would be a rule that silently never answers."""
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert [needle for rule in RULES for needle in rule.needles if needle != needle.lower() or len(needle) < 3] == []
