"""When the owner's own run-history command is due; worked out from the run's record alone, so it survives a restart."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from bot.model.chronicle import Entry, HistoryWritten, Launched, StateImported, TrackerSeen
from bot.model.value import JobId, Value

PAUSES = (timedelta(minutes=1), timedelta(minutes=15))
"""After the first and the second failure; after the third it is left to people."""


class HistoryJob(Value):
    """One command to be run for one entry of the record."""

    command: Literal["new", "add"]
    about: int
    job_id: JobId
    instance: int
    tracker_url: str = ""
    tracker_name: str = ""
    is_last_try: bool = False


def next_history_job(entries: Sequence[Entry], at: datetime, *, makes_new: bool, adds: bool) -> HistoryJob | None:
    """Return what is to be run now, the oldest first; nothing while an earlier one waits for its next try.

    The file is made at the first address of the tracker that was seen, with the launch of that time, and each other
    launch is added afterwards. A run that was handed over with its history file has one already.

    Args:
        entries: the run's record.
        at: now.
        makes_new: whether there is a command that makes the file.
        adds: whether there is one that adds a launch.
    """
    wanted = _wanted(entries, makes_new=makes_new, adds=adds)
    for job in wanted:
        tries = [
            (entry, each)
            for entry in entries
            if isinstance(each := entry.happening, HistoryWritten)
            and (each.command, each.about) == (job.command, job.about)
        ]
        if any(each.is_done for _, each in tries):
            continue
        if len(tries) > len(PAUSES):
            if job.command == "new":
                return None  # nothing can be added to a file that could not be made
            continue
        if tries and at < datetime.fromisoformat(tries[-1][0].at) + PAUSES[len(tries) - 1]:
            return None
        return job.model_copy(update={"is_last_try": len(tries) == len(PAUSES)})
    return None


def _wanted(entries: Sequence[Entry], *, makes_new: bool, adds: bool) -> list[HistoryJob]:
    launch: tuple[int, Launched] | None = None
    begun: Entry | None = None
    tracker: TrackerSeen | None = None
    wanted: list[HistoryJob] = []
    waiting: list[tuple[int, Launched]] = []
    for entry in entries:
        match entry.happening:
            case Launched() as launched:
                waiting.append((entry.seq, launched))
                launch = entry.seq, launched
            case TrackerSeen(url=url, name=name) as seen if begun is None and launch is not None:
                begun, tracker = entry, seen
                waiting.remove(launch)
                if makes_new:
                    wanted.append(_job("new", entry.seq, launch[1], url=url, name=name))
            case StateImported(history_file=file) if file and begun is None:
                begun = entry
                waiting.clear()
            case _:
                pass
    if begun is None or not adds:
        return wanted
    name, url = (tracker.name, tracker.url) if tracker else ("", "")
    return [*wanted, *(_job("add", seq, launched, url=url, name=name) for seq, launched in waiting)]


def _job(command: Literal["new", "add"], about: int, launched: Launched, *, url: str, name: str) -> HistoryJob:
    return HistoryJob(
        command=command,
        about=about,
        job_id=launched.job_id,
        instance=launched.instance,
        tracker_url=url,
        tracker_name=name,
    )
