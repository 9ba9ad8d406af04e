"""Keeps the record of a run in the body of its issue, between markers; what people write around it is theirs.

GitHub has no edit that fails when the text was changed meanwhile. So the body is read and written in one go, by the
same call of the same thread: what a person saves in the instant between the two is lost, and no more than that.
"""

import hashlib
from collections.abc import Sequence

import structlog

from bot.channels.github.client import GitHubClient
from bot.channels.github.records import Records
from bot.channels.github.trouble import Trouble
from bot.channels.ports import Ledger
from bot.model.chronicle import Entry, Written, head_of
from bot.model.delivery import Never, SendOutcome, Sent
from bot.model.value import RunId
from bot.render.github import BODY_LIMIT
from bot.render.issue_body import block_of, has_block, outside_of, with_block
from bot.render.record import record_markdown

log = structlog.get_logger()

RECORD = "record"
"""The slot of the deliveries that ask for it."""

_MARKERS_AND_NOTE = 1_000


class Bodies:
    """Writes the blocks; whoever calls holds the channel's turn."""

    def __init__(self, client: GitHubClient, ledger: Ledger, records: Records, trouble: Trouble) -> None:
        self._client = client
        self._ledger = ledger
        self._records = records
        self._trouble = trouble

    async def keep(self, run_id: RunId, issue: int) -> SendOutcome:
        """Bring the block up to date with the record as it is now.

        Raises:
            ServiceError: GitHub did not take it, or did not say so; writing once more does no harm.
        """
        entries = await self._ledger.chronicle(run_id)
        before = await self._records.written(run_id, issue)
        if not entries or (before is not None and before.is_left_alone):
            return Sent(message_id=str(issue))
        edit = _Edit(run_id, entries, before)
        seen = await self._client.edit_issue(issue, edit.change)
        if edit.written is None:
            reason = f"the text of issue #{issue} leaves no room for the run's record"
            fix = "shorten it, or name another issue as channels.github_issue in the run's contract"
            self._trouble.begin(_concern(issue), f"{reason}: {fix}")
            return Never(reason=reason, fix=fix)
        self._trouble.end(_concern(issue))
        await self._records.save_written(run_id, issue, edit.written)
        if edit.written.is_left_alone:
            log.warning(
                "github_record_left_alone", issue=issue, run_id=run_id, reason="its markers were taken out twice"
            )
        elif before is not None and edit.written.times_put_back > before.times_put_back:
            log.warning("github_record_put_back", issue=issue, run_id=run_id, reason="its markers were taken out")
        return Sent(message_id=str(issue), link=seen.link)


def _concern(issue: int) -> str:
    return f"record in issue {issue}"


class _Edit:
    """One change of one body, made from the body as it is in the instant before it is written."""

    def __init__(self, run_id: RunId, entries: Sequence[Entry], before: Written | None) -> None:
        self._run_id = run_id
        self._entries = entries
        self._before = before
        self.written: Written | None = None

    def change(self, body: str) -> str | None:
        """Return the new body; None to leave it alone."""
        times = self._before.times_put_back if self._before else 0
        if self._before is not None and not has_block(body, self._run_id):
            if times:
                self.written = self._before.model_copy(update={"is_left_alone": True})
                return None
            times += 1
        room = BODY_LIMIT - len(outside_of(body, self._run_id)) - _MARKERS_AND_NOTE
        text = record_markdown(self._run_id, self._entries, room=room)
        if text is None:
            self.written = None
            return None
        self.written = Written(
            count=len(self._entries),
            head=head_of(self._run_id, self._entries),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            room=room,
            times_put_back=times,
        )
        return with_block(body, self._run_id, block_of(self._run_id, text, is_put_back=times > 0))
