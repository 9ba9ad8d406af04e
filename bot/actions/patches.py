"""What was launched and not committed is kept: its patch is written out before the launch that it is part of.

Source: manage-hero-run, "Launch": if dirty is approved, log the diff or patch identity.
"""

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from bot.actions.ports import Fence, StepTaker
from bot.errors import ServiceError
from bot.model.action import Action, Refused, StepName, StepOutcome, Waiting
from bot.model.code import Patch
from bot.model.contract import Contract
from bot.model.planned import RelaunchPlan
from bot.model.reading import Reading, Unknown
from bot.redaction import Redactor
from bot.threads import BoundedThreads

_WITH_PATCH = re.compile(r"SHA-256 ([0-9a-f]{64})$")
_WRITING = timedelta(seconds=20)


class PatchSource(Protocol):
    """Git, as it writes out a checkout's difference."""

    async def patch(self, contract: Contract, redactor: Redactor) -> Reading[Patch]:
        """Write out what counts of the difference; bounded and scrubbed."""
        ...


class KeepsPatch:
    """The steps of a launch, of which none is submitted from a changed checkout before the change is on disk."""

    def __init__(self, steps: StepTaker, source: PatchSource, directory: Path, redactor: Redactor) -> None:
        """Take the parts.

        Args:
            steps: do everything else.
            source: reads the difference.
            directory: where patches are kept, ``SHA256.patch`` each; made when it is first needed.
            redactor: a patch is kept as it may be shown.
        """
        self._steps = steps
        self._source = source
        self._directory = directory
        self._redactor = redactor
        self._threads = BoundedThreads("patches", 2)

    async def take(
        self, step: StepName, action: Action, contract: Contract, *, is_resumed: bool, fence: Fence
    ) -> StepOutcome:
        """Do one step; before a submission the patch that the plan names is kept."""
        if step is StepName.SUBMIT and not is_resumed:
            held_up = await self._keep(action, contract)
            if held_up is not None:
                return held_up
        return await self._steps.take(step, action, contract, is_resumed=is_resumed, fence=fence)

    async def _keep(self, action: Action, contract: Contract) -> StepOutcome | None:
        """Return why it could not be kept; None when it is, or when there is none."""
        plan = action.plan
        found = _WITH_PATCH.search(plan.code) if isinstance(plan, RelaunchPlan) else None
        if found is None:
            return None
        file = self._directory / f"{found[1]}.patch"
        reading = await self._source.patch(contract, self._redactor)
        if isinstance(reading, Unknown):
            return Waiting(detail=f"the patch that was approved cannot be read: {reading.detail}")
        patch = reading.value
        if patch.patch_sha256 != found[1]:
            return Refused(detail="the checkout has changed since the approval; nothing was submitted")
        try:
            await self._threads.call(_write, file, _text(patch), deadline=_WRITING)
        except (OSError, ServiceError) as error:
            return Waiting(detail=f"the patch that was approved cannot be kept in {self._directory}: {error}")
        return None


def _text(patch: Patch) -> str:
    cut = "\n# too long to be kept whole; the SHA-256 above is of all of it" if patch.is_cut else ""
    head = f"# what was launched beside commit {patch.head}, secrets taken out\n# SHA-256 {patch.patch_sha256}{cut}"
    return f"{head}\n{patch.text}"


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all; what is there already has the same name because it has the same content."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    with draft.open("w", encoding="utf-8", errors="surrogateescape") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
