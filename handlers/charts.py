"""Which picture of a run belongs to a message: its kept series, and what is wrong now where it began. Pure."""

from bot.model.chart import Chart, Mark
from bot.model.curve import CURVE, read_curve
from bot.model.incident import Incident
from bot.model.record import Record


def chart_of(record: Record) -> Chart | None:
    """Return the run's picture; None while no figures of it are kept."""
    curve = read_curve(record.memories.get(CURVE))
    if not curve.points:
        return None
    last = curve.points[-1][0]
    marks = tuple(_mark(incident, last) for incident in record.incidents if incident.is_open)
    return Chart(run_id=record.run_id, points=curve.points, marks=marks)


def _mark(incident: Incident, last: int) -> Mark:
    """Mark an open incident from where it began; one that names no step stands where the run is now."""
    since = incident.finding.since_step
    since = last if since is None else since
    return Mark(
        label=f"I{incident.number} {incident.check}",
        severity=incident.finding.severity,
        step=since,
        from_step=since,
        to_step=max(since, last),
    )
