"""The pager's side of the ladder: who is being called about a run, and the news that it is over. Pure."""

from datetime import datetime

from bot.model.delivery import ChannelName, Target
from bot.model.ladder import OpenPage, Page, PageStatus, Rung
from bot.model.plan import RequestState
from bot.model.record import Record, Telling
from bot.model.run import Run
from bot.model.update import UpdateKind
from bot.model.value import Value
from handlers import tellings
from handlers.context import Context
from handlers.rungs import link_of, say_waiting
from handlers.waiting import Matter, matters_of


class Paged(Value):
    """The run with its pages as they are now, and what the pager is told."""

    run: Run
    tell: tuple[Telling, ...] = ()


def page_about(
    record: Record, context: Context, pages: tuple[OpenPage, ...], about: tuple[Matter, ...], at: datetime
) -> tuple[tuple[OpenPage, ...], tuple[Telling, ...]]:
    """Call somebody; who is being called about this run already is not called a second time."""
    names = tuple(matter.name for matter in about)
    ringing = next((page for page in pages if not page.is_acknowledged), None)
    if ringing is not None:
        longer = ringing.model_copy(update={"about": tuple(dict.fromkeys((*ringing.about, *names)))})
        return tuple(longer if page is ringing else page for page in pages), ()
    page = OpenPage(name=names[0], about=names)
    said = say_waiting(record, context, Rung.PAGER, about, at, asked=(context.contract.dri,))
    return (*pages, page), (_paged(record, said, page, PageStatus.TRIGGER),)


def _paged(record: Record, telling: Telling, page: OpenPage, status: PageStatus) -> Telling:
    key = f"hero/{record.run_id}/{page.name}"
    update = telling.update.model_copy(update={"page": Page(key=key, status=status, link=link_of(record))})
    # One slot a page: a call that has not gone out yet is dropped when it is over.
    target = Target(slot=f"page:{page.name}")
    return telling.model_copy(update={"update": update, "channels": (ChannelName.PAGER,), "target": target})


def follow_pages(record: Record, context: Context, at: datetime) -> Paged:
    """Tell the pager what has ended, and what somebody has given a sign of."""
    if ChannelName.PAGER not in context.alerts:
        return Paged(run=record.run.model_copy(update={"pages": ()}) if record.run.pages else record.run)
    pages: list[OpenPage] = []
    told: list[Telling] = []
    unattended = {m.name for m in matters_of(record, at)}
    still = {
        *(f"I{i.number}" for i in record.incidents if i.is_open),
        *(r.name for r in record.requests if r.state is RequestState.OPEN),
    }
    for page in record.run.pages:
        if not still.intersection(page.about):
            told.append(_page_news(record, context, page, PageStatus.RESOLVE, at))
        elif not page.is_acknowledged and not unattended.intersection(page.about):
            told.append(_page_news(record, context, page, PageStatus.ACKNOWLEDGE, at))
            pages.append(page.model_copy(update={"is_acknowledged": True}))
        else:
            pages.append(page)
    run = record.run.model_copy(update={"pages": tuple(pages)}) if told else record.run
    return Paged(run=run, tell=tuple(told))


def _page_news(record: Record, context: Context, page: OpenPage, status: PageStatus, at: datetime) -> Telling:
    names = ", ".join(page.about)
    telling = tellings.tell(
        context,
        record,
        at,
        kind=UpdateKind.ESCALATION,
        key=f"page/{page.name}/{status}/{at.isoformat()}",
        headline=f"{names}: {'over' if status is PageStatus.RESOLVE else 'somebody looks after it'}",
    )
    return _paged(record, telling, page, status)
