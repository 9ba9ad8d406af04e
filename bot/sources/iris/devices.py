"""Which accelerators a job's tasks ask for, from Iris' ``ResourceSpecProto``; pure.

``resources.device`` holds one of ``tpu``, ``gpu`` and ``cpu``; without any it is empty, and the job asks for none
(marin-iris 0.2.227, run; equal in 0.2.20, source). ``--reserve`` is a constraint on the zone and appears nowhere here:
a job that only reserves has no device.
"""

import json
from typing import NamedTuple

from bot.sources.iris.shape import Fields, ShapeError

ANY_GPU = "gpu"
"""What ``--gpu 8`` asks for: eight of any variant."""


class Device(NamedTuple):
    """What each task asks for."""

    accelerator: str | None
    accelerators: int | None


NOT_TOLD = Device(None, None)
_NONE = Device("", 0)


def device_of(resources: object) -> Device:
    """Return what a job's ``resources`` ask for. What is not as known is not told; the job is no less known for it."""
    if resources is None:
        return NOT_TOLD
    try:
        device = Fields(resources, "resources").get("device")
        return _NONE if device is None else _device(Fields(device, "resources.device"))
    except ShapeError:
        return NOT_TOLD


def device_of_json(text: str) -> Device:
    """As ``device_of``, from the controller's column ``res_device_json``; an empty one stands for no device."""
    try:
        return device_of({"device": json.loads(text)}) if text else _NONE
    except (ValueError, RecursionError):
        return NOT_TOLD


def _device(device: Fields) -> Device:
    for kind in ("tpu", "gpu"):
        asked = device.get(kind)
        if asked is not None:
            fields = Fields(asked, device.name(kind))
            return Device(fields.text("variant") or (ANY_GPU if kind == "gpu" else None), fields.number("count"))
    return _NONE
