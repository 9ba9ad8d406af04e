"""``/hero trial …`` and ``/hero rollback``: the trial of a change. None of them changes the world. Pure."""

from collections.abc import Callable

from bot.model.conduct import STAGE_WORDS, Ending, Review, Stage, Trial
from bot.model.errand import ErrandKind
from bot.model.person import Person
from bot.model.plan import RequestState
from bot.model.record import Decision, Record
from bot.model.run import Run
from bot.model.trial import read_comparison
from bot.model.value import RunId, Value
from bot.render.trial import comparison_lines
from bot.render.words import say_time
from handlers import tellings
from handlers.commands.question import Answered, Question, audit_entry, find_run, known_person, refuse_words, say
from handlers.commands.wishing import send_on
from handlers.plans import deed_of
from handlers.trial.standing import why_not_standing

_USAGE = (
    "trial [RUN] — how far the trial is, and what its gates say",
    "trial plan [RUN] — put the plan of the contract's [trial] to the DRI",
    "trial rehearse [RUN] — run every guard dry, and say what each finds",
    "trial reviewed [RUN] — you have looked at plan and rehearsal, independently of who planned and who submits",
    "trial cutover [RUN] — put the cut-over to the DRI once more, after a no",
    "trial go [RUN] — put go or no-go to the DRI once more",
    "trial abandon [RUN] — end it before the old run is stopped, or when a no-go is not to be rolled back",
    "rollback [RUN] — end it after that: the old run is launched again",
)
CHANGING = frozenset({"plan", "rehearse", "reviewed", "cutover", "go", "abandon"})
"""The words behind ``trial`` that do more than show."""

_SHOWN = 20


def trial(question: Question, words: tuple[str, ...]) -> Answered:  # noqa: PLR0911 - one return a word
    """Show a trial, or do what the first word says."""
    verb, rest = (words[0].lower(), words[1:]) if words else ("", ())
    match verb:
        case "plan":
            return send_on(question, rest, ErrandKind.TRIAL, "puts the plan of its trial to its DRI")
        case "rehearse":
            return send_on(question, rest, ErrandKind.REHEARSAL, "runs every guard of its trial dry")
        case "reviewed":
            return _change(question, rest, _reviewed)
        case "cutover" | "go":
            return _change(question, rest, _asked_again)
        case "abandon":
            return _change(question, rest, _abandoned)
        case "show":
            return _show(question, rest)
        case "help":
            return say(question, "The trial of a change:", _USAGE)
        case _:
            return _show(question, words)


def rollback(question: Question, words: tuple[str, ...]) -> Answered:
    """Make the trial a no-go: the old run is launched again, on the DRI's yes, or on that given with the plan."""
    return _change(question, words, _rolled_back)


class _After(Value):
    """What a command changes of a trial."""

    trial: Trial
    what: str
    """For the audit log."""
    answer: str
    next: str = ""
    beside: Decision = Decision()
    """What else is decided with it."""


class _Refused(Value):
    """Why a command changes nothing."""

    why: str


type _Change = Callable[[Question, Record, Trial, Person], _After | _Refused]


def _change(question: Question, words: tuple[str, ...], change: _Change) -> Answered:
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    record = find_run(question, words)
    if isinstance(record, Answered):
        return record
    if refused := refuse_words(question, words[1:], "trial and rollback take a run's name and nothing else"):
        return refused
    found = _parent_of(question, record)
    current = found.run.trial
    if current is None or current.is_over:
        return say(question, f"No trial of {found.run_id} is under way; nothing was done.", _USAGE[1:2])
    after = change(question, found, current, person)
    if isinstance(after, _Refused):
        return say(question, f"{after.why}; nothing was done.")
    run = found.run.model_copy(update={"trial": after.trial, "last_told_at": question.at})
    audit = audit_entry(question, found.run_id, after.what, f"{person.name}: trial of {after.trial.plan.child_run_id}")
    decision = after.beside.model_copy(update={"run": run, "audit": (*after.beside.audit, audit)})
    answered = say(question, after.answer, next_=after.next)
    return answered.model_copy(update={"run_id": found.run_id, "decision": decision, "check_now": found.run_id})


def _parent_of(question: Question, record: Record) -> Record:
    """Return the run whose trial it is, also when its child was named."""
    if record.trial_of is None or record.run.trial is not None:
        return record
    return next((each for each in question.records if each.run_id == record.trial_of), record)


def _reviewed(question: Question, record: Record, trial: Trial, person: Person) -> _After | _Refused:
    """Note the independent review ("Rehearse preflight and rollback")."""
    contract = question.contexts[record.run_id].contract
    if not trial.stage.is_before_the_stop:
        return _Refused(why=f"the trial is past that: {STAGE_WORDS[trial.stage]}")
    if person.name in {trial.plan.submitter, trial.agreed_by, contract.dri}:
        why = f"an independent review cannot come from {person.name}, who agreed to the plan or submits it"
        return _Refused(why=f"{why}; somebody else of [people] says `/hero trial reviewed {record.run_id}`")
    child = question.contexts.get(trial.plan.child_run_id)
    if child is None:
        return _Refused(why=f"the contract of {trial.plan.child_run_id} cannot be read, so there is nothing to review")
    covers = child.contract.config_digest
    after = trial.model_copy(update={"review": Review(by=person.name, at=question.at, covers=covers)})
    answer = f"Noted: {person.name} has reviewed the trial of {trial.plan.child_run_id}."
    return _After(trial=after, what="trial_reviewed", answer=answer, next="Hero looks at its guards again now")


def _asked_again(question: Question, record: Record, trial: Trial, person: Person) -> _After | _Refused:  # noqa: ARG001 - the signature is shared
    """Have a question put once more that was answered with no, or has expired."""
    if trial.stage not in {Stage.CONTROL_COMPLETE, Stage.FORKED, Stage.RUNNING}:
        return _Refused(why=f"there is nothing to ask now, the trial is at: {STAGE_WORDS[trial.stage]}")
    after = trial.model_copy(update={"question_wanted_by": person.name, "told": {}})
    is_compared = trial.stage is Stage.RUNNING
    when = "once every gate passes, or ten minutes after the end of the window" if is_compared else "if it holds"
    answer = f"Hero looks at the trial of {trial.plan.child_run_id} now and puts the question once more {when}."
    return _After(trial=after, what="trial_question_wanted", answer=answer)


def _abandoned(question: Question, record: Record, trial: Trial, person: Person) -> _After | _Refused:
    """End a trial that has touched nothing yet."""
    context = question.contexts[record.run_id]
    if person.name not in context.contract.approvers | {trial.plan.submitter}:
        return _Refused(why=f"only {context.contract.dri} or {trial.plan.submitter} ends the trial")
    if record.active_action is not None:
        return _Refused(why=f"a {deed_of(record.active_action.plan, record, record.active_action)} is under way")
    if not trial.stage.is_before_the_stop and trial.stage not in {Stage.NO_GO, Stage.ROLLED_BACK}:
        return _Refused(why=f"it is too late for that; `/hero rollback {record.run_id}` launches the old run again")
    if not trial.stage.is_before_the_stop and person.name not in context.contract.approvers:
        return _Refused(why=f"only {context.contract.dri} ends it now")
    why = f"abandoned by {person.name}"
    after = trial.reached(Stage.CLOSED, question.at, why=why, ending=Ending.ABANDONED)
    kinds = {"cutover", "go", "rollback"}
    open_ = tuple(r for r in record.requests if r.state is RequestState.OPEN and r.plan.kind in kinds)
    gone = tuple(
        each.model_copy(update={"state": RequestState.WITHDRAWN, "decided_at": question.at, "note": why})
        for each in open_
    )
    told = tuple(tellings.request_closed(context, record, each, question.at) for each in gone)
    return _After(
        trial=after,
        what="trial_abandoned",
        answer=f"The trial of {trial.plan.child_run_id} is closed; "
        + ("the old run was not touched." if trial.stage.is_before_the_stop else "nothing more is done by it."),
        next="its handoff checkpoint is protected no longer"
        + ("" if trial.stage.is_before_the_stop else f"; see what trains: `/hero stop {trial.plan.child_run_id}`"),
        beside=Decision(requests=gone, tell=told),
    )


def _rolled_back(question: Question, record: Record, trial: Trial, person: Person) -> _After | _Refused:
    active = record.active_action
    if trial.stage.is_before_the_stop and (active is None or active.plan.kind != "cutover"):
        return _Refused(why=f"the old run trains; `/hero trial abandon {record.run_id}` ends the trial")
    if trial.stage in {Stage.GO, Stage.ROLLED_BACK}:
        return _Refused(why=f"the trial is past that: {STAGE_WORDS[trial.stage]}")
    contract = question.contexts[record.run_id].contract
    update: dict[str, object] = {"rollback_wanted_by": person.name, "question_wanted_by": person.name, "told": {}}
    after = trial.model_copy(update=update)
    how = f"it is put to {contract.dri}; nothing is changed before their yes"
    if active is not None:
        how = f"it is planned as soon as the {deed_of(active.plan, record, active)} under way has ended"
    elif trial.standing is not None and not why_not_standing(trial, contract):
        how = f"{trial.standing.by} has allowed it with the plan, so Hero begins at once unless it meets something else"
    return _After(
        trial=after,
        what="rollback_wanted",
        answer=f"Hero looks at {record.run_id} and {trial.plan.child_run_id} now and plans the rollback.",
        next=how,
    )


def _show(question: Question, words: tuple[str, ...]) -> Answered:
    record = find_run(question, words)
    if isinstance(record, Answered):
        return record
    if refused := refuse_words(question, words[1:], "; ".join(_USAGE)):
        return refused
    record = _parent_of(question, record)
    trial = record.run.trial
    if trial is None:
        return say(question, f"{record.run_id} has had no trial.", _USAGE[1:2])
    return say(question, _headline(record.run, trial), _lines(question, trial), _next(record.run_id, trial))


def _next(run_id: RunId, trial: Trial) -> str:
    """Say how the trial is ended."""
    if trial.is_over:
        return ""
    if trial.stage.is_before_the_stop:
        return f"`/hero trial abandon {run_id}` ends it; nothing was touched yet"
    return f"`/hero rollback {run_id}` ends it: the old run is launched again" if trial.stage.is_cut_over else ""


def _headline(run: Run, trial: Trial) -> str:
    ending = f", {trial.ending.replace('_', ' ')}" if trial.ending else ""
    return f"{run.run_id}: the trial of {trial.plan.child_run_id} is at: {STAGE_WORDS[trial.stage]}{ending}"


def _lines(question: Question, trial: Trial) -> tuple[str, ...]:
    found = read_comparison(trial.compared)
    return (
        *((f"why: {trial.why}",) if trial.why else ()),
        *(comparison_lines(found, limit=_SHOWN) if found else ()),
        *(f"report: {url}" for url in (trial.report_url, trial.tracker_report_url) if url),
        *(f"{STAGE_WORDS[step.stage]}: {say_time(step.at, question.timezone)}" for step in trial.steps),
        f"agreed by {trial.agreed_by}, R{trial.request}, plan {trial.plan.digest[:12]}",
        f"reviewed by {trial.review.by}" if trial.review else "not reviewed yet",
        f"rollback: {'allowed by ' + trial.standing.by if trial.standing else 'is put to the DRI'}",
    )
