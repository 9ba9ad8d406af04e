"""The launch checklist, in the order in which it is printed. A new item is one function and its name here."""

from checks.preflight.bundle import BUNDLE
from checks.preflight.code import CODE
from checks.preflight.command import COMMAND
from checks.preflight.credentials import CREDENTIALS
from checks.preflight.datasets import DATASETS
from checks.preflight.drift import DRIFT
from checks.preflight.finalstep import FINAL_STEP
from checks.preflight.hardware import HARDWARE
from checks.preflight.identity import IDENTITY
from checks.preflight.item import Item
from checks.preflight.kind import KIND
from checks.preflight.paired import PAIRED
from checks.preflight.people import PEOPLE
from checks.preflight.places import PLACES
from checks.preflight.reference import REFERENCE
from checks.preflight.regions import REGIONS
from checks.preflight.retention import BYTES, RETENTION
from checks.preflight.start import START
from checks.preflight.storage import OUTPUT
from checks.preflight.tracker import TRACKER
from checks.preflight.trajectory import TRAJECTORY

ITEMS: tuple[Item, ...] = (
    KIND,
    PEOPLE,
    COMMAND,
    CREDENTIALS,
    HARDWARE,
    CODE,
    BUNDLE,
    TRAJECTORY,
    IDENTITY,
    PAIRED,
    OUTPUT,
    PLACES,
    RETENTION,
    BYTES,
    START,
    FINAL_STEP,
    REFERENCE,
    DRIFT,
    DATASETS,
    REGIONS,
    TRACKER,
)
