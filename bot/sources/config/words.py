"""Where trainers keep what Hero has a word for. Levanter's names are known, and the contract's own come before them."""

from collections.abc import Iterable, Mapping

from bot.model.launched import WORDS
from bot.sources.config.flatten import quoted

_TRAINERS = ("trainer", "trainer.trainer")
"""A grug run holds Levanter's own TrainerConfig one level further down (marin, experiments/grug)."""

_OF_TRAINER: Mapping[str, tuple[str, ...]] = {
    "batch_size": ("train_batch_size",),
    "final_step": ("num_train_steps",),
    "seed": ("seed", "data_seed"),
    "mesh": ("mesh", "model_axis_size", "axis_resources", "parameter_axis_resources", "replica_dcn_axis_size"),
    "precision": ("mp", "quantization"),
    "checkpoint_interval": ("checkpointer.save_interval", "checkpointer.keep"),
    "initialize_from": ("initialize_from",),
    "checkpoint_root": ("checkpointer.base_path",),
    "temporary_checkpoint_root": ("checkpointer.temporary_base_path",),
    "startup_watchdog": ("progress_watchdog.startup_timeout",),
    "step_watchdog": ("progress_watchdog.step_timeout",),
    "tracker": ("tracker", "wandb", "id"),
}
"""Below ``trainer`` (levanter.trainer.TrainerConfig, .checkpoint.CheckpointerConfig, .ProgressWatchdogConfig, 2026)."""

_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    # A grug run stops there although num_train_steps sizes the schedule.
    "final_step": ("stop_after_steps",),
    "optimizer": ("optimizer",),
    "mesh": ("trainer.expert_axis_size", "trainer.replica_axis_size", "mesh"),
    "data": ("data", "data_seed", "train_seq_len"),
    "initialize_from": ("initialize_from", "initialize_from_hf", "initialize_from_checkpoint_path"),
    "output_root": ("output_root", "output_path", "output_dir", "trainer.output_dir"),
}
_PLAIN: Mapping[str, tuple[str, ...]] = {
    "batch_size": ("train_batch_size", "batch_size"),
    "final_step": ("num_train_steps", "train_iters", "max_steps"),
    "seed": ("seed",),
    "precision": ("precision", "mp"),
    "checkpoint_interval": ("save_interval",),
    "checkpoint_root": ("checkpointer.base_path",),
}
"""Names without a table around them, as simpler trainers have them."""


def words_of(values: Mapping[str, str], own: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return by Hero's word the keys, or beginnings of such, that the configuration has.

    A tracker may hold a whole dotted key as one name, so the quoted spelling counts too.

    Args:
        values: by dotted key.
        own: the contract's ``[config] keys``; one of them stands alone for its word.
    """
    present = _beginnings(values)
    found: dict[str, tuple[str, ...]] = {}
    for word in WORDS:
        candidates = (own[word],) if word in own else known_keys(word)
        spelt = (spelling for each in candidates for spelling in (each, quoted(each)))
        held = tuple(dict.fromkeys(each for each in spelt if each in present))
        if held:
            found[word] = held
    return found


def known_keys(word: str) -> tuple[str, ...]:
    """Return the usual keys of a word, the one that counts first in front."""
    below = (f"{trainer}.{name}" for trainer in _TRAINERS for name in _OF_TRAINER.get(word, ()))
    return (*_ELSEWHERE.get(word, ()), *below, *_PLAIN.get(word, ()))


def _beginnings(keys: Iterable[str]) -> frozenset[str]:
    """Return all keys and everything that one of them begins with, part by part."""
    found: set[str] = set()
    for key in keys:
        found.add(key)
        place = key.find(".")
        while place >= 0:
            found.add(key[:place])
            place = key.find(".", place + 1)
    return frozenset(found)
