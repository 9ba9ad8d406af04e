"""What the answer about a crash log holds: place, advice, trajectory, signature; and that no text can break it."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.model.crash import EVIDENCE_CHARS, Classification, CrashClass, RelaunchAdvice
from checks.crash.classify import classify
from checks.crash.paths import TrajectoryPaths
from checks.crash.rules.tables import RULES
from tests.unit.checks.crash_texts.program import LIB, traceback


def bug_in(path: str, function: str, *, called_from: str = "/app/src/entry.py") -> Classification:
    return classify(
        traceback("NameError: name 'x' is not defined", (called_from, 3, "<module>", "go()"), (path, 17, function, "x"))
    )


def test_the_place_is_the_innermost_frame_of_the_runs_own_code() -> None:
    answer = classify(
        traceback(
            "RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float",
            ("/app/src/train.py", 3, "<module>", "main()"),
            ("/app/src/gate.py", 55, "forward", "return self.gate(x)"),
            (LIB + "torch/nn/modules/linear.py", 134, "forward", "return F.linear(x)"),
        )
    )

    assert answer.location is not None
    assert (answer.location.file, answer.location.line, answer.location.function) == ("/app/src/gate.py", 55, "forward")


def test_the_compilers_user_code_is_the_place_of_a_tracing_failure() -> None:
    answer = classify(
        traceback("AssertionError: no parent", (LIB + "torch/_dynamo/output_graph.py", 9, "lift", "assert parent"))
        + '\nfrom user code:\n   File "/app/src/net.py", line 71, in forward\n    y = x.item()\n'
    )

    assert answer.crash_class is CrashClass.CODE_BUG_COMPLEX
    assert answer.location is not None
    assert (answer.location.file, answer.location.line) == ("/app/src/net.py", 71)


@pytest.mark.parametrize(
    ("path", "function", "affecting", "relaunch"),
    [
        ("/app/src/lab/tracker/wandb.py", "emit", False, RelaunchAdvice.AFTER_FIX),
        ("/app/src/lab/callbacks.py", "on_end", False, RelaunchAdvice.AFTER_FIX),
        ("/app/src/lab/train.py", "log_metrics", False, RelaunchAdvice.AFTER_FIX),
        ("/app/src/lab/plots/curves.py", "draw", False, RelaunchAdvice.AFTER_FIX),
        ("/app/src/lab/train.py", "train_step", True, RelaunchAdvice.ASK),
        ("/app/src/lab/models/llama.py", "log_softmax", True, RelaunchAdvice.ASK),
        ("/app/src/lab/optim/muon.py", "update", True, RelaunchAdvice.ASK),
        ("/app/src/lab/data/mixture.py", "shard", True, RelaunchAdvice.ASK),
        ("/app/src/lab/misc.py", "pad_to", None, RelaunchAdvice.ASK),
    ],
)
def test_only_a_bug_that_leaves_the_trajectory_alone_is_relaunched_after_a_fix(
    path: str, function: str, affecting: bool | None, relaunch: RelaunchAdvice
) -> None:
    answer = bug_in(path, function)

    assert (answer.trajectory_affecting, answer.relaunch) == (affecting, relaunch)


def test_a_nameless_helper_called_from_an_evaluation_is_not_taken_for_harmless() -> None:
    """The helper may be called from the training loop as well, so mending it may change what is learned."""
    assert bug_in("/app/src/lab/misc.py", "pad_to", called_from="/app/src/lab/eval.py").trajectory_affecting is None


def test_the_path_rules_can_be_replaced() -> None:
    ours = TrajectoryPaths(affecting_paths=(r"secret_sauce",), harmless_paths=())
    text = traceback("NameError: name 'x' is not defined", ("/app/secret_sauce/misc.py", 3, "pad", "x"))

    assert classify(text).trajectory_affecting is None
    assert classify(text, paths=ours).trajectory_affecting is True


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            (
                "[rank3]: Traceback (most recent call last):\n"
                '[rank3]:   File "/job/81/src/a.py", line 10, in f\n[rank3]: KeyError: 17'
            ),
            (
                "[rank6]: Traceback (most recent call last):\n"
                '[rank6]:   File "/job/99/src/a.py", line 12, in f\n[rank6]: KeyError: 23'
            ),
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 3",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.25 GiB. GPU 6",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid=4321, GPU has fallen off the bus.",
            "NVRM: Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.",
        ),
        ("RuntimeError: Non-finite loss (nan) at step 4711.", "RuntimeError: Non-finite loss (inf) at step 12."),
    ],
)
def test_the_same_cause_has_the_same_signature_whatever_the_numbers(first: str, second: str) -> None:
    assert classify(first).signature == classify(second).signature


def test_different_places_have_different_signatures() -> None:
    assert bug_in("/app/a.py", "f").signature != bug_in("/app/b.py", "f").signature


@pytest.mark.parametrize("code", [137, -9, 143, -15, 124, 1, None])
def test_an_exit_code_alone_proves_nothing(code: int | None) -> None:
    answer = classify("step 3 loss 2.2\n", exit_code=code)

    assert (answer.crash_class, answer.relaunch) == (CrashClass.UNKNOWN, RelaunchAdvice.ASK)


def test_exit_code_zero_without_trouble_is_benign_but_does_not_hide_a_limit() -> None:
    """The orchestrator reports exit code 0 for a task that it ended at its time limit."""
    assert classify("step 3 loss 2.2\n", exit_code=0).crash_class is CrashClass.BENIGN
    assert classify("Execution timeout exceeded\n", exit_code=0).crash_class is CrashClass.INFRA_PREEMPTION
    assert classify("Terminated by user\n", exit_code=0).crash_class is CrashClass.UNKNOWN


def test_a_failure_after_a_success_message_is_still_a_failure() -> None:
    text = "Training complete.\n" + traceback(
        "ZeroDivisionError: division by zero", ("/app/export.py", 3, "f", "1 / 0")
    )

    assert classify(text).crash_class is CrashClass.CODE_BUG_SMALL
    assert classify("Training complete.\n", exit_code=1).crash_class is CrashClass.UNKNOWN


def test_the_deciding_line_is_the_first_evidence_and_has_the_number_an_editor_shows() -> None:
    answer = classify("a\r\nb\r\n10%\r20%\r30%\r\nRuntimeError: CUDA error: uncorrectable ECC error encountered\r\n")

    assert answer.evidence[0].line == 4
    assert answer.evidence[0].text == "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def test_lines_and_text_are_the_same() -> None:
    lines = ["step 1 loss 2", "NameError: name 'q' is not defined"]

    assert classify(lines) == classify("\n".join(lines)) == classify(f"{line}\n" for line in lines)


def test_evidence_can_be_carried_by_any_channel() -> None:
    answer = classify("RuntimeError: Non-finite loss (nan) \x00\x1b[31m\ud800\u202e " + "x" * 9_000)

    assert len(answer.evidence[0].text) <= EVIDENCE_CHARS
    assert "\x00" not in answer.evidence[0].text
    answer.model_dump_json().encode()


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "(" * 1_000_000,
        "a." * 500_000 + ": x",
        "error: loss nan killed preempted " * 30_000,
        "step 1 loss 2\r" * 100_000,
        'File "' + "/" * 1_000_000 + '", line 3, in f',
        "I0313 23:27:22.6 1 log.py:81] step 1000 loss=2.3 error timeouts failed preempted quota\n" * 40_000,
        'Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    x()\nNameError: q\n' * 20_000,
    ],
    ids=["letters", "brackets", "dots", "words", "redrawn", "path", "loud", "tracebacks"],
)
def test_a_hostile_text_takes_no_long_time(text: str) -> None:
    """The bound is wide, since the machine is shared; a pattern that backtracks takes minutes."""
    started = time.perf_counter()

    classify(text)

    assert time.perf_counter() - started < 10


_WORDS = st.sampled_from(
    [needle for rule in RULES for needle in rule.needles]
    + [
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 3, in f',
        "    x()",
        "NameError: x",
        "from user code:",
    ]
    + [
        "The above exception was the direct cause",
        "[rank3]: ",
        "task=/a/b/0 | ",
        "(pid=3) ",
        "\r",
        "\x1b[31m",
        "\ud800",
        "nan",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(_WORDS, st.text(max_size=40)), max_size=40), st.sampled_from(["\n", " ", "\r\n", ""]))
def test_no_text_raises(parts: list[str], joint: str) -> None:
    answer = classify(joint.join(parts))

    answer.model_dump_json()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["INFO building mesh", "using 8 devices", "", "compiled in 3 s"]), max_size=60))
def test_harmless_lines_before_a_failure_do_not_change_the_answer(talk: list[str]) -> None:
    text = traceback("KeyError: 'z_loss'", ("/app/src/loggers/a.py", 3, "emit", "stats['z_loss']"))

    plain, dressed = classify(text), classify("\n".join([*talk, text]))

    assert (plain.crash_class, plain.relaunch, plain.signature) == (
        dressed.crash_class,
        dressed.relaunch,
        dressed.signature,
    )


ANEW = "Spot instance preempted; restarting attempt 2"


def test_what_ends_an_attempt_that_was_begun_anew_is_not_what_ended_the_one_before() -> None:
    bug = traceback("NameError: name 'x' is not defined", ("/app/src/train.py", 17, "main", "x"))

    assert classify(f"{ANEW}\n{bug}").crash_class is CrashClass.CODE_BUG_SMALL
    assert classify(f"{ANEW}\nstep 1: loss nan, stopping: loss is NaN").crash_class is CrashClass.NUMERICAL
    assert classify(f"{bug}\nSpot instance preempted").relaunch is not RelaunchAdvice.SAME_ID


def test_a_core_dump_is_excused_only_by_a_loss_of_its_own_attempt_before_it() -> None:
    dump, lost = "Segmentation fault (core dumped)", "Spot instance preempted"

    assert classify(f"{lost}\n{dump}").relaunch is RelaunchAdvice.SAME_ID
    assert classify(f"{dump}\n{lost}").relaunch is RelaunchAdvice.ASK
    assert classify(f"{ANEW}\n{dump}").relaunch is RelaunchAdvice.ASK
