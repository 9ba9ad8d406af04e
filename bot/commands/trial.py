"""``hero trial compare``: a changed run held against the run that it was forked off, at the same steps."""

import re
from importlib.util import find_spec
from pathlib import Path

from bot.commands.exits import Exit
from bot.commands.printing import say, say_json, say_table
from bot.commands.replay import parse_columns
from bot.contracts import BadContract, Contracts
from bot.errors import ConfigurationError
from bot.model.contract import Contract
from bot.model.gate import Gate, parse_gate
from bot.model.series import History
from bot.model.trial import ALPHA, WINDOW_STEPS, Comparison, Happened, Judged, Moved, Outcome, Quiet, Window
from bot.render.text import clean
from bot.render.trial import OUTCOME_WORDS, comparison_row, error_line, in_unit, verdict_line
from bot.replay.columns import read_history
from bot.replay.reading import BadFileError, word_of
from bot.sources.metric_rows import FIGURES
from checks.trial.compare import compare

_LINE = 1000
_WINDOW = re.compile(r"(\d{1,15})(?::(\d{1,15}))?")
_COUNTS = {"crash": "crashes", "retry": "retries", "watchdog": "watchdogs", "alert": "alerts"}
_EXITS = {Outcome.PASS: Exit.DONE, Outcome.FAIL: Exit.BLOCKED, Outcome.CANNOT_TELL: Exit.UNKNOWN}


def compare_files(
    control: str,
    child: str,
    *,
    contract: Path | None,
    gates: list[str],
    window: str | None,
    counts: list[str],
    metrics: list[str],
    plot: Path | None,
    as_json: bool,
) -> Exit:
    """Compare two files of figures.

    Args:
        control: the file of the old run.
        child: the file of the new run.
        contract: whose ``[trial]`` says what was agreed.
        gates: in its place, or beside it; one of the same figure and kind counts instead of the contract's.
        window: first step, and how many: ``12000:200``.
        counts: what went wrong beside the figures, as ``crash=0``.
        metrics: columns, as ``loss=train/loss``.
        plot: where a picture goes.
        as_json: whether JSON is printed instead of text.

    Raises:
        ConfigurationError: something is wrong with what was asked, or a file cannot be read.
    """
    agreed = _contract(contract) if contract else None
    asked = _gates(gates, agreed)
    if not asked:
        problem = 'no gate: say what must hold with --gate "loss mean <= +0.002", or in [trial] gates of --contract'
        raise ConfigurationError((problem,))
    if control == child == "-":
        raise ConfigurationError(("--control and --child are both standard input; give one of them as a file",))
    if plot is not None and find_spec("matplotlib") is None:
        raise ConfigurationError(("--plot needs matplotlib; install it beside Hero",))
    happened = _happened(counts, agreed)
    columns, also = _columns(metrics, agreed, asked)
    old, new = (_read(name, columns, also) for name in (control, child))
    found = compare(
        old, new, asked, _window(window, agreed, new), alpha=agreed.trial.alpha if agreed else ALPHA, happened=happened
    )
    if plot is not None:
        from bot.replay.overlay import draw_comparison  # noqa: PLC0415 - only a picture needs it

        draw_comparison(old, new, found, plot)
    if as_json:
        say_json(comparison_row(control, child, found))
    else:
        _say(control, child, found, agreed)
    return _EXITS[found.outcome]


def _contract(path: Path) -> Contract:
    found = Contracts(path.parent, None).read(path)
    if isinstance(found, BadContract):
        raise ConfigurationError(found.problems)
    return found


def _gates(lines: list[str], agreed: Contract | None) -> tuple[Gate, ...]:
    """Return what is judged; a gate that was given replaces the contract's of the same figure and kind."""
    gates = list(agreed.trial.gates) if agreed else []
    for line in lines:
        try:
            gate = parse_gate(line)
        except ValueError as error:
            raise ConfigurationError((f"--gate {_first(error)}",)) from error
        gates = [each for each in gates if _kind(each) != _kind(gate)] + [gate]
    return tuple(gate.model_copy(update={"metric": word_of(gate.metric)}) for gate in gates)


def _first(error: ValueError) -> str:
    """Return what is wrong, without what pydantic puts around it."""
    found = getattr(error, "errors", None)
    return str(found(include_input=False, include_url=False)[0]["msg"]) if found else str(error)


def _kind(gate: Gate) -> tuple[object, ...]:
    return (word_of(gate.metric), gate.reduce, gate.q, gate.direction)


def _window(text: str | None, agreed: Contract | None, child: History) -> Window:
    steps = agreed.trial.window_steps if agreed else WINDOW_STEPS
    first = agreed.trial.handoff_step if agreed else None
    if text is not None:
        found = _WINDOW.fullmatch(text.strip())
        if found is None or (found[2] is not None and int(found[2]) == 0):
            raise ConfigurationError((f"--window {text}: write it as FIRST_STEP:STEPS, as in --window 12000:200",))
        first, steps = int(found[1]), int(found[2]) if found[2] else steps
    if first is None:
        first = min((int(figure.steps.min()) for figure in child.figures.values()), default=0)
    return Window(first_step=first, steps=steps)


def _happened(counts: list[str], agreed: Contract | None) -> Happened | None:
    """Return what was counted; None where nobody counted anything and no contract asks for it."""
    given: dict[str, int] = {}
    for each in counts:
        name, _, number = (part.strip() for part in each.partition("="))
        if name not in _COUNTS or not number.isascii() or not number.isdigit():
            known = ", ".join(f"{name}=0" for name in _COUNTS)
            raise ConfigurationError((f"--count {each}: write {known}, each with its number",))
        given[_COUNTS[name]] = int(number)
    return Happened(**given) if given or (agreed and agreed.trial.quiet) else None


def _columns(
    metrics: list[str], agreed: Contract | None, gates: tuple[Gate, ...]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns that must be there, and those that are taken where they are."""
    columns = parse_columns(metrics)
    also: dict[str, str] = {}
    if agreed is not None:
        names = agreed.metrics
        columns.setdefault("step", names.step)
        also = {figure: getattr(names, figure) for figure in FIGURES} | names.others
    also |= {gate.metric: gate.metric for gate in gates if gate.metric not in also}
    return columns, {word: name for word, name in also.items() if word not in columns}


def _read(name: str, columns: dict[str, str], also: dict[str, str]) -> History:
    try:
        return read_history(name, columns, also)
    except BadFileError as error:
        raise ConfigurationError((f"{name}: {error}",)) from error


def _say(control: str, child: str, found: Comparison, agreed: Contract | None) -> None:
    window = found.window
    say(clean(f"{child} against {control}, steps {window.first_step} to {window.last_step}", _LINE))
    say()
    rows = [_cells(each) for each in found.gates]
    say_table(("gate", "verdict", "difference", "true difference between", "room", "steps", "why"), rows)
    if found.quiet is not None:
        say(f"no crash, retry, watchdog, alert: {_say_quiet(found.quiet)}")
    else:
        say("no crash, retry, watchdog, alert: not judged; count them with --count crash=0 …")
    if found.others:
        say()
        say_table(("without a gate", "mean difference", "share", "largest", "at step"), map(_moved, found.others))
    for each in (*found.notes, error_line(found)):
        if each:
            say(clean(f"· {each}", _LINE))
    for gap in agreed.trial.coverage_gaps if agreed else ():
        say(clean(f"· not covered, by agreement: {gap}", _LINE))
    say()
    say(verdict_line(found))


def _say_quiet(quiet: Quiet) -> str:
    return f"{OUTCOME_WORDS[quiet.outcome]} ({', '.join(quiet.reasons)})"


def _cells(judged: Judged) -> tuple[str, ...]:
    gate = judged.gate
    between = f"{in_unit(judged.low, gate)} … {in_unit(judged.high, gate)}"
    if judged.low is None and judged.high is None:
        between = "not known"
    steps = f"{judged.covered}/{judged.expected}" + (
        f", one in {judged.stride}" if judged.stride is not None and judged.stride > 1 else ""
    )
    return (
        str(gate),
        OUTCOME_WORDS[judged.outcome],
        in_unit(judged.delta, gate),
        between,
        in_unit(judged.margin, gate),
        steps,
        "; ".join(judged.reasons),
    )


def _moved(moved: Moved) -> tuple[str, ...]:
    share = "?" if moved.share is None else f"{moved.share:+.2%}"
    return (moved.metric, f"{moved.mean_delta:+.4g}", share, f"{moved.max_delta:+.4g}", str(moved.max_step))
