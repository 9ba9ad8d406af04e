"""Which job names say that a job is another coordinator of a run: an older launch, or a relaunch by hand. Pure.

Production coordinators are called ``/<user>/<run-id>-coord`` or ``…-coord-<retry>``, Hero's own relaunches
``<run-id>-r<number>`` where the command names none. A job of the same user is the run's when its name is exactly

- the run id;
- BASE``-coord`` or BASE``-coord-``RETRY;
- BASE``-retry``, BASE``-retry``N or BASE``-retry-``N;
- the run id with ``-r``N.

BASE is the run id, or the current job's name without its ``-coord`` or ``-coord-``RETRY. RETRY is a number of up to
four digits, also written ``r``N or ``retry``N. That a name merely begins alike says nothing: ``hero-12`` is no retry
of ``hero-1``, and a bare number at the end is as likely another run's, so ``hero-2`` is none of ``hero``.
"""

import re

from bot.model.value import JobId, RunId, Value

_COORD = re.compile(r"-coord(-(?:r|retry-?)?[0-9]{1,4})?")
_RETRY = re.compile(r"-coord(?:-(?:r|retry-?)?[0-9]{1,4})?|-retry-?[0-9]{0,4}(?<!-)")
_OWN = re.compile(r"-r[0-9]{1,4}")


class Sought(Value):
    """Whose other coordinators are looked for."""

    run_id: RunId
    current: JobId
    """``/user/name``: the job that is believed to be the run; never its own neighbour."""
    past: tuple[JobId, ...] = ()
    """Jobs of the run's recorded launches."""

    @property
    def bases(self) -> tuple[str, ...]:
        """What the names that count begin with: the run id, and the current job's name without its coordinator's."""
        name = self.current.rsplit("/", 1)[-1]
        end = next((found.start() for found in _COORD.finditer(name) if found.end() == len(name)), len(name))
        return tuple(dict.fromkeys((self.run_id, name[:end] or name)))

    @property
    def prefixes(self) -> tuple[JobId, ...]:
        """The beginnings to ask an orchestrator for, so that each name that counts begins with one of them."""
        bases = [base for base in self.bases if not any(base != o and base.startswith(o) for o in self.bases)]
        return tuple(JobId(f"{self._user}/{base}") for base in bases)

    @property
    def others(self) -> tuple[JobId, ...]:
        """The past jobs that no prefix finds, each once."""
        past = dict.fromkeys(job_id for job_id in self.past if job_id != self.current)
        return tuple(job_id for job_id in past if not job_id.startswith(self.prefixes))

    def has(self, job_id: str) -> bool:
        """Whether that job, by its id, is another of the run."""
        if job_id == self.current:
            return False
        if job_id in self.past:
            return True
        user, _, name = job_id.rpartition("/")
        return user == self._user and self._is_of_run(name)

    @property
    def _user(self) -> str:
        return self.current.rsplit("/", 1)[0]

    def _is_of_run(self, name: str) -> bool:
        if name == self.run_id or (name.startswith(self.run_id) and _OWN.fullmatch(name, len(self.run_id))):
            return True
        return any(name.startswith(base) and _RETRY.fullmatch(name, len(base)) for base in self.bases)
