"""The record of a run: what happened to it, in entries that are only ever added, each sealing all those before it.

Source: manage-hero-run, "Run Record". An entry's hash covers the hash of the entry before it, so an entry that is
changed, dropped, moved or slipped in is found by whoever computes the hashes anew. A record that was cut off at its end
is found only by who has kept its head: that is why the head also stands where people keep it, in the run's issue.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from bot.model.contract import Basis
from bot.model.value import JobId, PersonName, RunId, Value


class Fact(Value):
    """One value of a launch, and how it came to be known."""

    label: str
    """In the procedure's words, e.g. ``output root``."""
    value: str | None
    """None when it is not known, or was not given."""
    basis: Basis | None = None
    """None exactly when there is no value."""


class Change(Value):
    """One field that has become another."""

    field: str
    before: str
    after: str


class Launched(Value):
    """An instance of the run was launched: by Hero, or seen by it."""

    kind: Literal["launched"] = "launched"
    instance: int
    job_id: JobId
    is_by_hero: bool
    facts: tuple[Fact, ...]


class Failed(Value):
    """Something critical was found, or the job ended."""

    kind: Literal["failed"] = "failed"
    incident: int
    check: str
    severity: str
    summary: str
    step: int | None = None
    crash: str | None = None
    """The class of a classified crash."""


class Recovered(Value):
    """What was recorded as failed is over."""

    kind: Literal["recovered"] = "recovered"
    incident: int
    check: str


class Asked(Value):
    """A plan was put to the DRI."""

    kind: Literal["asked"] = "asked"
    request: int
    plan: str
    """The plan's kind, e.g. ``relaunch``."""
    digest: str
    dri: PersonName
    reason: str


class Decided(Value):
    """A request came to its end."""

    kind: Literal["decided"] = "decided"
    request: int
    outcome: str
    """``granted``, ``denied``, ``expired``, ``void`` or ``withdrawn``."""
    digest: str
    by: PersonName | None = None
    via: str = ""
    note: str = ""


class StepEnded(Value):
    """A step of an action changed the world, was refused, or saw the run train again."""

    kind: Literal["step_ended"] = "step_ended"
    action: int
    step: str
    outcome: str
    """``done`` or ``refused``."""
    detail: str


class ActionEnded(Value):
    """A granted plan was carried out, or was not."""

    kind: Literal["action_ended"] = "action_ended"
    action: int
    request: int
    plan: str
    outcome: str
    """``done``, ``failed`` or ``void``."""
    job_id: JobId | None = None
    from_step: int | None = None
    detail: str = ""


class MilestoneReached(Value):
    kind: Literal["milestone"] = "milestone"
    step: int
    checkpoint_step: int | None = None


class Completed(Value):
    """The job succeeded and the final step was seen."""

    kind: Literal["completed"] = "completed"
    step: int | None
    final_step: int | None


class RetentionChanged(Value):
    """How many saved states are kept has changed."""

    kind: Literal["retention_changed"] = "retention_changed"
    changes: tuple[Change, ...]


class HandedOver(Value):
    """The run has another DRI, other deputies, or another monitoring owner."""

    kind: Literal["handed_over"] = "handed_over"
    changes: tuple[Change, ...]
    by: str = ""
    """Who handed over, where that is known."""
    basis: Basis = Basis.STATED


class ContractChanged(Value):
    """Another field of the contract that shapes a launch has changed."""

    kind: Literal["contract_changed"] = "contract_changed"
    changes: tuple[Change, ...]


class TrackerSeen(Value):
    """The tracker showed the run under an address that was not on record."""

    kind: Literal["tracker_seen"] = "tracker_seen"
    url: str
    id: str
    name: str


class StateImported(Value):
    """A hand-over came in as a state file: a claim, not something that Hero saw."""

    kind: Literal["state_imported"] = "state_imported"
    job_id: JobId
    restart_count: int
    tracker_url: str = ""
    tracker_name: str = ""
    history_file: str = ""
    differences: tuple[str, ...] = ()
    """Where the claim differs from the contract and from what is on record."""
    is_taken: bool = False
    """Whether the job became the run's current instance."""


class HistoryWritten(Value):
    """The owner's own run-history command was run."""

    kind: Literal["history_written"] = "history_written"
    command: Literal["new", "add"]
    about: int
    """The entry for which it was run."""
    is_done: bool
    detail: str


class Promoted(Value):
    """A bounded diagnostic has outgrown the light path: from now on its record is kept where others find it."""

    kind: Literal["promoted"] = "promoted"
    reason: str


class Sealed(Value):
    """The run was sealed: everything that has to be there was seen there."""

    kind: Literal["sealed"] = "sealed"
    tag: str
    final_step: int
    checkpoint: str
    evidence: tuple[str, ...] = ()


class TrialMoved(Value):
    """The trial of a change of this run has reached a stage."""

    kind: Literal["trial_moved"] = "trial_moved"
    child_run_id: RunId
    stage: str
    """A word of ``bot.model.conduct.Stage``."""
    why: str = ""
    """Why it is a no-go, or how it was closed."""


type Happening = Annotated[
    Launched
    | Failed
    | Recovered
    | Asked
    | Decided
    | StepEnded
    | ActionEnded
    | MilestoneReached
    | Completed
    | RetentionChanged
    | HandedOver
    | ContractChanged
    | TrackerSeen
    | StateImported
    | HistoryWritten
    | Promoted
    | Sealed
    | TrialMoved,
    Field(discriminator="kind"),
]

_HAPPENING: TypeAdapter[Happening] = TypeAdapter(Happening)


class Entry(Value):
    """One entry of a record, as it is stored: texts, so that the hash covers exactly what is there."""

    run_id: RunId
    seq: int
    """1 for the first."""
    at: str
    """UTC, ISO 8601 with microseconds."""
    kind: str
    payload: str
    """Canonical JSON of the happening without its kind."""
    prev: str
    """The hash of the entry before; of the first entry ``start_of`` the run."""
    hash: str

    @property
    def computed_hash(self) -> str:
        """SHA-256 over the canonical JSON of all the other fields."""
        return _sha256(canonical(self.model_dump(exclude={"hash"})))

    @property
    def happening(self) -> Happening | None:
        """What it says; None for a kind or a shape that this Hero does not know."""
        try:
            return _HAPPENING.validate_python({**json.loads(self.payload), "kind": self.kind})
        except (ValueError, TypeError, ValidationError):
            return None

    def row(self) -> dict[str, object]:
        """Return the entry as its line of ``hero log --json``: the payload is an object there."""
        try:
            payload = json.loads(self.payload)
        except ValueError:
            payload = self.payload
        return self.model_dump() | {"payload": payload}


class Written(Value):
    """The record as it was last written into a place that people can edit."""

    count: int
    """So many entries were in it."""
    head: str
    sha256: str
    """Of the text."""
    room: int
    """Characters that the text might have."""
    times_put_back: int = 0
    """How often it was taken out by a human and written anew."""
    is_left_alone: bool = False
    """It was taken out once more, and is not written any more."""


def written_under(run_id: RunId, issue: int) -> str:
    """Return the name under which it is remembered what stands in an issue."""
    return f"github:record:{run_id}:{issue}"


class Fault(Value):
    """The first thing that is wrong with a record."""

    seq: int
    """The entry; one past the last when something is missing at the end."""
    what: str


def canonical(value: Any) -> str:
    """Return JSON that is equal for equal content: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def start_of(run_id: RunId) -> str:
    """Return what the first entry of a run's record has as ``prev``: no entry fits into another run's record."""
    return _sha256(f"hero record of {run_id}")


def next_entry(run_id: RunId, last: Entry | None, at: AwareDatetime, kind: str, payload: dict[str, Any]) -> Entry:
    """Return the entry that follows ``last``.

    Args:
        run_id: whose record.
        last: the newest entry; None when there is none.
        at: when it happened.
        kind: of the happening.
        payload: the happening's other fields, secrets scrubbed.
    """
    open_entry = Entry(
        run_id=run_id,
        seq=last.seq + 1 if last else 1,
        at=at.astimezone(UTC).isoformat(timespec="microseconds"),
        kind=kind,
        payload=canonical(payload),
        prev=last.hash if last else start_of(run_id),
        hash="",
    )
    return open_entry.model_copy(update={"hash": open_entry.computed_hash})


def head_of(run_id: RunId, entries: Sequence[Entry]) -> str:
    """Return the hash that stands for the whole record."""
    return entries[-1].hash if entries else start_of(run_id)


def find_fault(run_id: RunId, entries: Sequence[Entry], *, head: str | None = None) -> Fault | None:
    """Compute a record's hashes anew.

    Args:
        run_id: whose record it should be.
        entries: in the order in which they are stored.
        head: the head that somebody has kept, or its first characters: the record must hold it, so that a record cut
            off before it, or written anew as a whole, is found. A record that has grown since is fine.

    Returns:
        The first thing that is wrong; None for a record that is whole.
    """
    prev = start_of(run_id)
    for place, entry in enumerate(entries, start=1):
        if entry.run_id != run_id:
            return Fault(seq=place, what=f"it is an entry of another run, {entry.run_id}")
        if entry.seq != place:
            return Fault(seq=place, what=f"it is missing: entry {entry.seq} stands in its place")
        if entry.prev != prev:
            return Fault(seq=place, what="what it says of the entry before it (prev) is not that entry's hash")
        if entry.computed_hash != entry.hash:
            return Fault(seq=place, what="its content (at, kind or payload) does not have the hash that is stored")
        prev = entry.hash
    if head is not None and not any(_is_head(each, head) for each in (start_of(run_id), *(e.hash for e in entries))):
        what = f"the record holds no entry with the head {head[:64]}: it was cut off before it, or written anew"
        return Fault(seq=len(entries) + 1, what=what)
    return None


_LEAST_OF_A_HEAD = 12


def _is_head(full: str, given: str) -> bool:
    return len(given) >= _LEAST_OF_A_HEAD and full.startswith(given.strip().lower())


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
