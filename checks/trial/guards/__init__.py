"""The guards of a trial, in the order in which they are shown. A new one is one function and its name here."""

from checks.trial.guards.guard import Guard

GUARDS: tuple[Guard, ...] = ()
