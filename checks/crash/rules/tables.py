"""All pattern tables in the order in which they are asked; of rules with the same weight the first one holds."""

from checks.crash.rule import Rule
from checks.crash.rules.capacity import CAPACITY
from checks.crash.rules.code import CODE
from checks.crash.rules.divergence import DIVERGENCE
from checks.crash.rules.endings import CASCADE, KILLS, NOISE, SUCCESS
from checks.crash.rules.infrastructure import HARDWARE, PREEMPTION, STORAGE
from checks.crash.rules.inputs import INPUTS
from checks.crash.rules.launch import LAUNCH
from checks.crash.rules.memory import MEMORY
from checks.crash.rules.network import NETWORK

RULES: tuple[Rule, ...] = (
    *NOISE,
    *STORAGE,
    *MEMORY,
    *DIVERGENCE,
    *HARDWARE,
    *PREEMPTION,
    *INPUTS,
    *LAUNCH,
    *CODE,
    *CAPACITY,
    *NETWORK,
    *KILLS,
    *CASCADE,
    *SUCCESS,
)
