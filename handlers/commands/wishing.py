"""Commands that ask for a change of the world. None makes one: the plan is put to the DRI first. Pure."""

from bot.model.errand import Errand, ErrandKind
from bot.model.record import Decision, Record
from bot.model.value import RunId
from handlers.commands.question import Answered, Question, audit_entry, find_only_run, find_run, known_person, say
from handlers.plans import deed_of


def launch(question: Question, words: tuple[str, ...]) -> Answered:
    """Ask the DRI for the run's first launch."""
    record = find_run(question, words)
    if isinstance(record, Record) and record.instance is not None:
        again = f"{record.run_id} was launched before, as {record.instance.job_id}; `/hero relaunch {record.run_id}`"
        return say(question, f"{again} asks for it once more.")
    return relaunch(question, words)


def relaunch(question: Question, words: tuple[str, ...]) -> Answered:  # noqa: PLR0911 - one return a reason
    """Ask the DRI for one more launch."""
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    record = find_only_run(question, words, "launch [RUN], relaunch [RUN]")
    if isinstance(record, Answered):
        return record
    if (active := record.active_action) is not None:
        return say(question, f"A {deed_of(active.plan, record)} of {record.run_id} is under way already.")
    if record.run.is_paused:
        return say(question, f"The watch over {record.run_id} is paused; `/hero resume {record.run_id}` comes first.")
    if held := record.held_by_trial:
        return say(question, f"No launch of {record.run_id} is put to anybody now: {held}; nothing was done.")
    if (asked := record.open_relaunch) is not None:
        return say(question, f"{asked.name} asks for that already and waits for {asked.dri}.")
    run = record.run.model_copy(update={"relaunch_wanted_by": person.name})
    said = say(
        question,
        f"Hero checks {record.run_id} now and puts the plan to its DRI in the run's thread; nothing is changed before "
        "the answer.",
    )
    decision = Decision(run=run, audit=(audit_entry(question, record.run_id, "relaunch_wanted", person.name),))
    return said.model_copy(update={"run_id": record.run_id, "decision": decision, "check_now": record.run_id})


def stop(question: Question, words: tuple[str, ...]) -> Answered:
    """Ask the DRI for the end of the run's job."""
    return send_on(question, words, ErrandKind.STOP, "puts the plan to its DRI")


def plan(question: Question, words: tuple[str, ...]) -> Answered:
    """Ask what a launch would do."""
    return send_on(question, words, ErrandKind.PLAN, "says what a launch would do and what speaks against it")


def cleanup(question: Question, words: tuple[str, ...]) -> Answered:
    """Ask for a list of what could be deleted."""
    return send_on(
        question, words, ErrandKind.CLEANUP, "lists what could be deleted, and asks its DRI for exactly that"
    )


def seal(question: Question, words: tuple[str, ...]) -> Answered:
    """Ask for the seal."""
    return send_on(question, words, ErrandKind.SEAL, "says what is missing, or puts the seal to its DRI")


def send_on(question: Question, words: tuple[str, ...], kind: ErrandKind, what: str) -> Answered:
    """Note an errand; it is looked into after the run's next check, which is now."""
    person = known_person(question)
    if isinstance(person, Answered):
        return person
    name, rest = _split(question, words, kind)
    record = find_run(question, name) if kind is ErrandKind.CLEANUP else find_only_run(question, words, f"{kind} [RUN]")
    if isinstance(record, Answered):
        return record
    if record.run.is_paused:
        return say(question, f"The watch over {record.run_id} is paused; `/hero resume {record.run_id}` comes first.")
    if any(each.kind is kind for each in record.run.errands):
        return say(question, f"Hero looks into that already: {kind} of {record.run_id}.")
    errand = Errand(kind=kind, by=person.name, at=question.at, argument=" ".join(rest))
    run = record.run.model_copy(update={"errands": (*record.run.errands, errand)})
    said = say(
        question,
        f"Hero looks at {record.run_id} now and {what}, in the run's thread; nothing is changed before the answer.",
    )
    decision = Decision(run=run, audit=(audit_entry(question, record.run_id, f"{kind}_wanted", person.name),))
    return said.model_copy(update={"run_id": record.run_id, "decision": decision, "check_now": record.run_id})


def _split(question: Question, words: tuple[str, ...], kind: ErrandKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the run's name and what follows it. A first word is a name, even of no run: only ``keep N`` is none."""
    is_keep = kind is ErrandKind.CLEANUP and words[:1] == ("keep",) and RunId("keep") not in question.contexts
    return ((), words) if is_keep else (words[:1], words[1:])
