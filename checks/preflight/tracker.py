"""Which tracker run the metrics go to: a mode and a resume policy that exist, an id that no other run has."""

from collections.abc import Iterator

from bot.model.contract import RunKind, TrackerContract
from bot.model.preflight import PreflightFinding, Preparation, Weight
from bot.model.reading import Gap, Known, Unknown
from bot.model.tracker import TrackerRunState, TrackerState
from bot.model.value import CheckId
from checks.preflight.item import Item, Told, stated, unseen

MODES = frozenset({"online", "offline", "shared", "disabled"})
POLICIES = frozenset({"allow", "must", "never", "auto"})
"""What W&B knows as ``mode`` and ``resume``; anything else makes its client raise at the start."""
_OFF = "disabled"


def judge(prepared: Preparation) -> Told:
    """Print the tracker's identity and refuse one that would mix two runs' metrics, or that cannot work."""
    contract, tracker = prepared.contract, prepared.contract.tracker
    values = [stated("tracker.mode", tracker.mode, contract.basis_of("tracker.mode"))]
    if tracker.mode != _OFF:
        where = "/".join((tracker.entity or "(the key's own)", tracker.project or "(not stated)"))
        values += [
            stated("tracker.project", where, contract.basis_of("tracker.project")),
            stated("tracker.id", tracker.id, contract.basis_of("tracker.id")),
            stated("tracker.name", tracker.name, contract.basis_of("tracker.name")),
            stated("tracker.resume", tracker.resume, contract.basis_of("tracker.resume")),
        ]
    return Told(values=tuple(values), findings=tuple(_findings(prepared)))


def identity_of(tracker: TrackerContract) -> str:
    """Return ``entity/project/id``; empty when the contract pins no id or there is no tracker."""
    if tracker.mode == _OFF or not tracker.id:
        return ""
    return "/".join((tracker.entity or "", tracker.project or "", tracker.id))


def _findings(prepared: Preparation) -> Iterator[PreflightFinding]:
    contract, tracker = prepared.contract, prepared.contract.tracker
    unclear = _unclear(prepared)
    file = f"runs/{contract.run_id}.toml"
    if tracker.mode == _OFF:
        if contract.effective_kind is RunKind.PRODUCTION:
            fix = "name the tracker in [tracker], or have the DRI accept that logs and checkpoints are all there is"
            yield TRACKER.finding(unclear, "a production run without a tracker: [tracker] mode = disabled", fix)
        return
    if tracker.mode not in MODES:
        fix = f"write one of {', '.join(sorted(MODES))} into {file}"
        yield TRACKER.finding(Weight.BLOCKS, f"[tracker] mode = {tracker.mode} is no mode of the tracker", fix)
    if tracker.mode == "offline":
        fix = 'set mode = "online", or have the DRI accept that nothing is seen of it before it is uploaded'
        yield TRACKER.finding(unclear, "[tracker] mode = offline: nobody can watch the run in the tracker", fix)
    if not tracker.id:
        fix = f"write the id that the trainer passes into {file}, [tracker] id"
        yield TRACKER.finding(unclear, "[tracker] id is not stated: a relaunch may go on under another id", fix)
    yield from _policy(prepared, tracker)
    yield from _others(prepared, tracker)
    yield from _existing(prepared, tracker)


def _unclear(prepared: Preparation) -> Weight:
    """What was launched before and is watched is asked about no more."""
    return Weight.ASKS if prepared.is_first else Weight.NOTE


def _policy(prepared: Preparation, tracker: TrackerContract) -> Iterator[PreflightFinding]:
    file = f"runs/{prepared.contract.run_id}.toml"
    if tracker.resume is None:
        if tracker.id:
            message = "[tracker] resume is not stated: what a relaunch does to the same id is up to the trainer"
            fix = f'write what the trainer passes into {file}, e.g. resume = "allow"'
            yield TRACKER.finding(_unclear(prepared), message, fix)
    elif tracker.resume not in POLICIES:
        fix = f"write one of {', '.join(sorted(POLICIES))}"
        yield TRACKER.finding(Weight.BLOCKS, f"[tracker] resume = {tracker.resume} is no policy of the tracker", fix)
    elif tracker.resume == "never" and not prepared.is_first:
        message = "[tracker] resume = never: a relaunch under the same id is refused by the tracker"
        fix = f'set resume = "allow" in the trainer and in {file}'
        yield TRACKER.finding(Weight.BLOCKS, message, fix)


def _others(prepared: Preparation, tracker: TrackerContract) -> Iterator[PreflightFinding]:
    mine = identity_of(tracker)
    for other in prepared.others:
        if mine and other.tracker == mine:
            message = f"the tracker id {tracker.id} ({prepared.contract.basis_of('tracker.id')}) is {other.run_id}'s"
            fix = "give this run an id of its own: the tracker never gives one out twice"
            yield TRACKER.finding(Weight.BLOCKS, message, fix)
        elif tracker.name and other.tracker_name == tracker.name:
            message = f"the tracker name {tracker.name} is {other.run_id}'s too, and people will take one for the other"
            yield TRACKER.finding(_unclear(prepared), message, "give this run a name of its own")


def _existing(prepared: Preparation, tracker: TrackerContract) -> Iterator[PreflightFinding]:
    """At a first launch the id has to be free; at a relaunch the watch itself looks after the identity."""
    seen = prepared.seen.tracker
    if not tracker.id or not prepared.is_first:
        return
    if isinstance(seen, Unknown):
        if seen.reason is Gap.NOT_CONFIGURED:
            message = f"whether the tracker id {tracker.id} is free cannot be asked: Hero has no key for the tracker"
            fix = "set [wandb] api_key_file, or have the DRI accept it unseen"
            yield TRACKER.finding(Weight.ASKS, message, fix)
        else:
            yield unseen(TRACKER.id, seen, f"whether the tracker id {tracker.id} is free")
        return
    yield from _taken(prepared, tracker, seen)


def _taken(prepared: Preparation, tracker: TrackerContract, seen: Known[TrackerState]) -> Iterator[PreflightFinding]:
    state = seen.value
    is_there = state.state is not TrackerRunState.MISSING
    is_forked = prepared.trial_of is not None  # the trial makes that run itself, and its own guards look after it
    if is_there and state.id == tracker.id and not is_forked:
        refuses = ", and resume = never refuses it" if tracker.resume == "never" else ""
        message = f"the tracker has a run {tracker.id} already, which is {state.state} (measured){refuses}"
        fix = "give this run an id of its own; if it is this very run, let Hero watch its job first"
        yield TRACKER.finding(Weight.BLOCKS, message, fix)
    if not is_there and tracker.resume == "must" and not is_forked:
        message = f"[tracker] resume = must, and the tracker has no run {tracker.id} (measured): it would refuse"
        yield TRACKER.finding(Weight.BLOCKS, message, 'set resume = "allow" in the trainer and in the contract')
    if state.namesakes:
        message = f"the tracker name {tracker.name} is that of {', '.join(state.namesakes)} too"
        yield TRACKER.finding(_unclear(prepared), message, "give this run a name of its own")


TRACKER = Item(
    id=CheckId("launch.tracker"),
    title="The tracker's mode, id and resume policy; an id that is free",
    source='manage-hero-run, "Launch": tracker mode; "What Can Go Wrong": W&B identity drift',
    judge=judge,
)
