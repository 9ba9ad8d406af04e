"""Sealing a run: everything is looked at once more, and a tag says so for good."""

import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from bot.actions.ports import Fence
from bot.clock import Clock
from bot.model.action import Action, Done, Refused, StepName, StepOutcome, Uncertain, Waiting
from bot.model.contract import Contract
from bot.model.errand import CannotYet, Errand, Found, Planned
from bot.model.planned import PlannedCheckpoint, SealPlan
from bot.model.reading import Reading, Unknown
from bot.model.record import Record
from bot.model.roles import with_roles
from bot.model.tag import Tag
from bot.redaction import Redactor
from bot.sources.snapshots import SnapshotReader
from bot.store.store import Store
from checks.seal import Lack, final_checkpoint, lacks_of

_SHA = re.compile("[0-9a-f]{40}")
_NO_TAG = re.compile(r"\.\.|\.lock$|\.$|^-")
"""What git refuses in a name although a run id may hold it (git check-ref-format)."""


class Tagger(Protocol):
    """A repository's tags."""

    @property
    def repository(self) -> str:
        """``owner/name``."""
        ...

    async def find_tag(self, name: str) -> Reading[Tag | None]:
        """Ask for a tag; Known(None) only when the repository answered that there is none."""
        ...

    async def create_tag(self, tag: Tag, message: str) -> StepOutcome:
        """Create an annotated tag once. Done, Refused when it was not created, Uncertain otherwise."""
        ...


type ExportedBytes = Callable[[Contract], Awaitable[Reading[int | None]]]
type RecordFault = Callable[[Contract], Awaitable[Reading[str]]]


class Seal:
    """Looks into a wish for a seal, and carries one out."""

    def __init__(
        self,
        *,
        reader: SnapshotReader,
        tagger: Tagger,
        exported: ExportedBytes,
        record_fault: RecordFault,
        store: Store,
        clock: Clock,
        redactor: Redactor,
    ) -> None:
        """Take the parts.

        Args:
            reader: reads the world anew.
            tagger: where the tag is created.
            exported: how much lies at the export root.
            record_fault: what is wrong with the run's record, or with what its issue shows of it.
            store: for what is on record.
            clock: for whether a grant still counts.
            redactor: a plan is made as it may be stored and shown.
        """
        self._reader = reader
        self._tagger = tagger
        self._exported = exported
        self._record_fault = record_fault
        self._store = store
        self._clock = clock
        self._redactor = redactor

    async def prepare(self, contract: Contract, record: Record, errand: Errand) -> Found:  # noqa: ARG002 - the port's
        """Return the plan when nothing is missing; else the list of what is."""
        made = await self._plan(contract, record)
        if isinstance(made, SealPlan):
            return Planned(plan=made, evidence=("everything that has to be there was seen there just now",))
        lines = tuple(f"{'NOT KNOWN' if each.is_unknown else 'MISSING'}: {each.what}" for each in made)
        is_unknown = all(each.is_unknown for each in made)
        count = f"{len(made)} thing{'' if len(made) == 1 else 's'}"
        return CannotYet(
            reason=f"{count} {'cannot be verified' if is_unknown else 'stand against it'}: {made[0].what}",
            fix=f"mend what is listed, then `/hero seal {contract.run_id}`; clean nothing up before that",
            evidence=lines,
            is_unknown=is_unknown,
        )

    async def take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Look at everything once more, or create the tag exactly once."""
        plan = action.plan
        if not isinstance(plan, SealPlan) or step not in {StepName.VERIFY, StepName.TAG}:
            msg = f"action {action.number} is no seal, or has no step {step}"
            raise AssertionError(msg)
        if step is StepName.VERIFY:
            return await self._verify(plan, action, contract)
        return await self._tag(plan, action, is_resumed=is_resumed, fence=fence)

    async def _verify(self, plan: SealPlan, action: Action, contract: Contract) -> StepOutcome:
        if not action.grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval is no longer valid: it has expired or is for another plan")
        record = await self._store.record(action.run_id)
        if record is None:
            return Waiting(detail="nothing is on record of the run")
        made = await self._plan(contract, record)
        if isinstance(made, SealPlan):
            if made.digest != plan.digest:
                return Refused(detail="what would be sealed has changed since it was asked")
            return Done(detail="everything is still there")
        if all(each.is_unknown for each in made):
            return Waiting(detail=made[0].what)
        return Refused(detail=next(each.what for each in made if not each.is_unknown))

    async def _tag(self, plan: SealPlan, action: Action, *, is_resumed: bool, fence: Fence) -> StepOutcome:
        found = await self._tagger.find_tag(plan.tag)
        if isinstance(found, Unknown):
            detail = f"whether {plan.tag} exists cannot be asked: {found.detail}"
            return Uncertain(detail=detail) if is_resumed else Waiting(detail=detail)
        if found.value is not None:
            if found.value.sha != plan.sha:
                return Refused(detail=f"{plan.tag} exists already and points to {found.value.sha}; it was not touched")
            return Done(detail=f"{plan.tag} points to {plan.sha}")
        if not action.grant.covers(plan, self._clock.now()):
            return Refused(detail="the approval has expired; no tag was created")
        await fence()
        return await self._tagger.create_tag(Tag(name=plan.tag, sha=plan.sha), plan.message)

    async def _plan(self, contract: Contract, record: Record) -> SealPlan | tuple[Lack, ...]:
        contract = with_roles(contract, record.run.roles)
        seen = await self._reader.read(contract, record.instance, record.run.metrics_cursor)
        lacks = [
            *lacks_of(
                seen,
                contract,
                record,
                exported=await self._exported(contract),
                record_fault=await self._record_fault(contract),
            )
        ]
        tag = f"seal/{contract.run_id}"
        sha = (record.instance.source_sha if record.instance else None) or contract.source_sha or ""
        if _NO_TAG.search(tag):
            lacks.append(Lack(what=f"git takes no tag of the name {tag}"))
        if sha and not _SHA.fullmatch(sha):
            lacks.append(Lack(what=f"{sha} is no full SHA of 40 digits; write it out in the contract"))
        if not lacks:
            existing = await self._tagger.find_tag(tag)
            if isinstance(existing, Unknown):
                lacks.append(Lack(what=f"whether {tag} exists cannot be asked: {existing.detail}", is_unknown=True))
            elif existing.value is not None:
                lacks.append(Lack(what=f"{tag} exists already, at {existing.value.sha}: the run is sealed"))
        checkpoint = final_checkpoint(seen, contract)
        if lacks or checkpoint is None or contract.final_step is None:
            return tuple(lacks)
        plan = SealPlan(
            run_id=contract.run_id,
            repository=self._tagger.repository,
            tag=tag,
            sha=sha,
            message=_message(contract, record, checkpoint.path),
            final_step=contract.final_step,
            checkpoint=PlannedCheckpoint(step=checkpoint.step, path=checkpoint.path),
        )
        return SealPlan.model_validate(self._redactor.value(plan.model_dump(mode="json")))


def _message(contract: Contract, record: Record, checkpoint: str) -> str:
    tracked = contract.tracker
    lines = [
        f"{contract.run_id} is finished and sealed",
        f"final step {contract.final_step}, checkpoint {checkpoint}",
        f"DRI {contract.dri}, launches {len(record.instances)}",
    ]
    if tracked.id:
        lines.append(f"tracked as {tracked.entity or '-'}/{tracked.project or '-'}/{tracked.id}")
    if contract.export_root:
        lines.append(f"export {contract.export_root}")
    return "\n".join(lines)
