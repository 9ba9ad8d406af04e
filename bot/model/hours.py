"""When somebody works: wall-clock hours on some days of the week, in a zone of their own. Pure."""

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from bot.model.value import Value

HOURS_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$"


class Weekday(StrEnum):
    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


WORKING_WEEK = (Weekday.MON, Weekday.TUE, Weekday.WED, Weekday.THU, Weekday.FRI)
_DAYS = tuple(Weekday)
_DAY = timedelta(days=1)


class WorkingHours(Value):
    """Half open: the first minute counts, the last does not. An end before the start is on the next day."""

    hours: str = Field(pattern=HOURS_PATTERN)
    """``09:00-18:00``."""
    days: tuple[Weekday, ...] = Field(default=WORKING_WEEK, min_length=1)
    """On which of them the hours begin."""
    timezone: str

    @model_validator(mode="after")
    def _last(self) -> "WorkingHours":
        start, end = self.hours.split("-")
        if start == end:
            msg = f"working hours {self.hours} are empty; write them as 09:00-18:00"
            raise ValueError(msg)
        return self

    def next_open(self, at: datetime) -> datetime:
        """Return ``at`` when it is within the hours, else the moment at which they begin next."""
        today = at.astimezone(ZoneInfo(self.timezone)).date()
        for offset in range(-1, 9):
            day = today + offset * _DAY
            if _DAYS[day.weekday()] not in self.days:
                continue
            start, end = self._window(day)
            if at < end and start < end:
                return max(at, start)
        msg = f"no working hours within a week of {at}"  # pragma: no cover - days is never empty
        raise AssertionError(msg)  # pragma: no cover

    def last_open(self, since: datetime, until: datetime) -> datetime | None:
        """Return the end of the last of these hours that are between two moments, at most ``until``; None: none are."""
        zone = ZoneInfo(self.timezone)
        day, first = until.astimezone(zone).date(), since.astimezone(zone).date() - _DAY
        while day >= first:
            start, end = self._window(day)
            if _DAYS[day.weekday()] in self.days and max(start, since) < min(end, until):
                return min(end, until)
            day -= _DAY
        return None

    def _window(self, day: date) -> tuple[datetime, datetime]:
        """Return when the hours of that day begin and end, in UTC: a clock that is put forward makes them shorter."""
        first, last = (time.fromisoformat(each) for each in self.hours.split("-"))
        zone = ZoneInfo(self.timezone)
        until = day if first < last else day + _DAY
        begin, end = datetime.combine(day, first, zone), datetime.combine(until, last, zone)
        return begin.astimezone(UTC), end.astimezone(UTC)
