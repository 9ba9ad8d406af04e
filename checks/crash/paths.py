# ruff: noqa: E501 - a pattern broken over lines can no longer be searched for
"""Whose code a frame is, and whether mending it changes what is learned.

Source of the rule: the run-management procedure, "What can go wrong", item "Code bug": logging and evaluation callbacks may be
mended and relaunched; model, training loop, optimizer and data pipeline may not without a person's word.
"""

import re
from collections.abc import Sequence
from functools import cache

from bot.model.value import Value
from checks.crash.tracebacks import Frame

_LIBRARY = re.compile(
    r"site-packages|dist-packages|[/\\]lib(?:64)?[/\\]python\d|[/\\]python\d\.\d+[/\\]|<frozen|<string>|<decorator|<attrs|<__array_function__"
    r"|torchinductor|[/\\](?:torch|jax|jaxlib|triton|sympy|numpy|h5py|ray|flax|optax|deepspeed|transformers|lightning|pytorch_lightning|accelerate|datasets|tensorflow|absl|hydra|fsspec|gcsfs|orbax|equinox|tensorstore|asyncio|multiprocessing|concurrent|importlib)[/\\](?!.*[/\\](?:src|workspace)[/\\])"
    r"|^(?:h5py|torch|jax|numpy)[/\\]|\.pyx$|[/\\]bin[/\\][\w.-]{1,40}$|[/\\]torchrun$|anaconda3?[/\\]lib|miniconda3?[/\\]lib|[\\]Lib[\\]",
)


class TrajectoryPaths(Value):
    """Regular expressions over a frame's path or function, lower case; settings may replace them."""

    affecting_paths: tuple[str, ...] = (
        r"(?:^|[/\\_.])(?:models?|modeling|modules?|layers?|blocks|attention|attn|transformer|mlp|moe|router|embeddings?|heads?|rope|norms?|kernels?|ops|losses|loss|architectures?)(?:[/\\_.]|$)",
        r"(?:^|[/\\_.])(?:optim|optims|optimi[sz]ers?|schedulers?|schedules?|lr|muon|adam\w*|shampoo|grad\w*)(?:[/\\_.]|$)",
        r"(?:^|[/\\_.])(?:data|datasets?|dataloaders?|loaders?|data_?pipeline|pipeline|tokeni[sz]\w*|preprocess\w*|sampler|samplers|mixture|collat\w*|packing|shuffle|grain)(?:[/\\_.]|$)",
    )
    """Model, optimizer and data pipeline."""
    loop_paths: tuple[str, ...] = (
        r"(?:^|[/\\_.])(?:train|trainers?|training|pretrain\w*|finetune\w*|train_\w+|\w+_train|train_step|loop|loops|step)(?:[/\\_.]|$)",
    )
    """The training loop's file, which also holds functions that change nothing."""
    harmless_paths: tuple[str, ...] = (
        r"(?:^|[/\\_.])(?:logging|logger|loggers|log_utils|trackers?|wandb|tensorboard|mlflow|comet|metrics_writer|telemetry|monitor\w*|profil\w*|callbacks?|eval|evals|evaluat\w+|eval_harness|lm_eval|plots?|plotting|visuali\w+|viz|docs?|tests?|benchmarks?|report\w*|dashboards?|notif\w+|slack)(?:[/\\_.]|$)",
    )
    """Logging, evaluation callbacks, plots, docs, tests."""
    affecting_functions: tuple[str, ...] = (
        r"^(?:forward|backward|__call__|loss_fn|compute_loss|loss|train_step|training_step|update|apply_gradients|optimizer_step|_?step|train|train_epoch|train_loop|fit|next_batch|get_batch|load_batch|__getitem__|__next__|collate\w*|tokenize\w*|init_weights|build_model|build_optimizer|make_optimizer|attention|attend)$",
    )
    harmless_functions: tuple[str, ...] = (
        r"^_*(?:log_(?!softmax|prob|sum|likelihood|normal|sigmoid|scale)\w+|log$|report\w*|plot\w*|visuali\w+|draw\w*|print\w*|write_(?:summary|log|metrics|report)\w*|eval(?:$|_)\w*|evaluate\w*|run_eval\w*|validat(?:e|ion)(?:$|_\w*)|on_(?:log|eval|validation)\w*|track\w*|upload_(?:artifact|logs?)\w*|send_(?:alert|notification)\w*|format_\w+|notify\w*|profil\w*|benchmark\w*)",
    )


DEFAULT_PATHS = TrajectoryPaths()


def is_library(frame: Frame) -> bool:
    """Return whether a frame belongs to an installed package, to the standard library or to generated code."""
    return _LIBRARY.search(frame.file[-400:]) is not None


def user_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of the run's own code, outermost first."""
    return tuple(frame for frame in frames if not is_library(frame))


def affects_trajectory(frames: Sequence[Frame], paths: TrajectoryPaths = DEFAULT_PATHS) -> bool | None:
    """Judge by the innermost frame; if no rule knows it, an outer one can only make it worse.

    A helper without a telling name that was called from an evaluation may be called from the training loop too, so an outer
    harmless frame proves nothing: the answer is None then.
    """
    own = user_frames(frames)[-12:]
    innermost = _judge(own[-1], paths) if own else None
    if innermost is not None:
        return innermost
    return True if any(_judge(frame, paths) for frame in own) else None


def path_affects_trajectory(path: str, paths: TrajectoryPaths = DEFAULT_PATHS) -> bool | None:
    """Judge a file that was changed by its path alone, relative to the project; None when no rule knows it."""
    return _judge(Frame(file=path, line=0, function="", source=""), paths)


def _judge(frame: Frame, paths: TrajectoryPaths) -> bool | None:
    # Only the last folders speak: what lies above the project says nothing about the file.
    path = "/".join(re.split(r"[/\\]", frame.file.lower())[-3:])
    function = frame.function.lower().rsplit(".", 1)[-1]
    if _any(paths.harmless_functions, function) and not _any(paths.affecting_paths, path):
        return False
    if _any(paths.harmless_paths, path) and not _any(paths.affecting_paths, path.rsplit("/", 1)[-1]):
        return False
    if _any((*paths.affecting_paths, *paths.loop_paths), path) or _any(paths.affecting_functions, function):
        return True
    return None


def _any(patterns: tuple[str, ...], text: str) -> bool:
    return any(_compiled(pattern).search(text) for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
