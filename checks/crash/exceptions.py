# ruff: noqa: E501 - a pattern broken over lines can no longer be searched for
"""What a Python exception tells by its type, its message and the place that raised it.

Message rules come first (``rules/``): they name a cause. What is left is judged by type; where the type says little,
the answer is a guess, and where not even that holds, unknown.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from bot.model.crash import CrashClass
from checks.crash.paths import is_library, user_frames
from checks.crash.rule import Rule, Weight
from checks.crash.rules.tables import RULES
from checks.crash.tracebacks import Frame, Trace


class Opinion(NamedTuple):
    """A class with its weight, and the id under which repeats are counted."""

    id: str
    crash_class: CrashClass
    weight: Weight
    rule: Rule | None = None


_OBVIOUS = frozenset(
    {
        "NameError",
        "UnboundLocalError",
        "SyntaxError",
        "IndentationError",
        "TabError",
        "ZeroDivisionError",
        "UnicodeEncodeError",
        "AttributeError",
        "KeyError",
        "IndexError",
    }
)
_LAUNCHER = frozenset({"ChildFailedError", "SignalException", "ExceptionGroup", "BaseExceptionGroup"})
_CONSEQUENCE = frozenset(
    {
        "BrokenPipeError",
        "ConnectionResetError",
        "ConnectionAbortedError",
        "ConnectionRefusedError",
        "EOFError",
        "CancelledError",
        "GeneratorExit",
        "BrokenBarrierError",
        "RayActorError",
        "ActorDiedError",
        "WorkerCrashedError",
        "DistNetworkError",
        "DistStoreError",
        "DistBackendError",
        "ProcessExitedException",
        "ProcessRaisedException",
        "RayTaskError",
        "CalledProcessError",
        "JobFailedError",
        "Empty",
        "StopIteration",
        "BrokenProcessPool",
        "TerminatedWorkerError",
        "SystemExit",
    }
)
_STOPPED = frozenset({"KeyboardInterrupt"})
_SERVICE = re.compile(
    r"(?:HTTP|Http|Connect(?:ion)?|Connect|Read|Proxy|SSL|Timeout|MaxRetry|ServiceUnavailable|TooManyRequests|InternalServer|BadGateway|GatewayTimeout|RemoteDisconnected|Transport|Comm|LocalEntryNotFound|ClientConnector)\w{0,20}Error$|^(?:ServiceUnavailable|TooManyRequests|InternalServerError|GatewayTimeout|ReadTimeout|ConnectTimeout|RetryError|TimeoutException|HttpError|URLError)$"
)
_CONFIG_TYPE = re.compile(r"Config(?:uration)?(?:Error|Exception)$|^MisconfigurationException$")
_SHUTDOWN_FUNCTIONS = frozenset(
    {
        "_run_finalizers",
        "_exit_function",
        "_run_exitfuncs",
        "__del__",
        "_shutdown",
        "_python_exit",
        "_cleanup_on_exit",
        "_sigterm_cleanup",
        "_atexit_teardown",
    }
)
_COMPILER = re.compile(
    r"torch[/\\]_(?:dynamo|inductor|functorch|higher_order_ops|subclasses)|[/\\]triton[/\\]|jax[/\\]_src|jaxlib|[/\\]sympy[/\\]|fx[/\\](?:experimental|passes)|mosaic|pallas"
)
_THIRD_PARTY = re.compile(
    r"module '(?:torch|jax|jaxlib|numpy|np|flax|optax|transformers|tensorflow|triton|ray|wandb|datasets|haliax|equinox|apex|deepspeed|megatron|pandas|scipy|accelerate|flash_attn|xformers|transformer_engine|orbax|chex|sentencepiece|tokenizers|peft|google|pyarrow|importlib|collections|asyncio)\b"
)
_LIBRARY_CALL = re.compile(
    r"\b(?:torch|F|nn|jax|jnp|np|lax|optax|flax|tf|wandb|ray|datasets|transformers|dist)\.[\w.]+\("
)
_LIBRARY_NAMES = re.compile(
    r"(?:TrainingArguments|Seq2SeqTrainingArguments|Trainer|SFT\w+|DPO\w+|LoraConfig|PeftModel|AutoModel\w*|AutoTokenizer|Accelerator|AdamW?|DataLoader|scaled_dot_product_attention|flash_attn\w*|flex_attention|rms_norm|init_process_group|shard_map|pjit|jit|make_mesh|load_dataset|from_pretrained|Ddp\w*|DistributedDataParallel|FullyShardedDataParallel|fully_shard|GradScaler|autocast)(?:\.__init__|\.\w+)?\("
)
_PLAIN_TYPE_ERROR = re.compile(
    r"'NoneType'|not subscriptable|not iterable|not callable|unsupported operand|has no len|indices must be|can't multiply|[Jj][Ss][Oo][Nn] serializable|cannot unpack|unhashable|not supported between|positional argument|keyword argument|"
    r"must be (?:str|int|real number|a string)|can only concatenate|expected str|object is not|takes no arguments|abstract (?:class|method)"
)
_SETTINGS_SOURCE = re.compile(
    r"\b(?:config|cfg|args|conf|hparams|params_cfg|settings|flags|yaml_\w+|opts)(?:\[|\.get|\.)", re.IGNORECASE
)
_SAMPLE_SOURCE = re.compile(
    r"\b(?:batch|sample|example|examples|row|record|item|ex|features|element|ckpt|checkpoint|state|metadata|meta|header|shard|index)\[['\"]",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:must|should|invalid|unsupported|unknown|unrecogni[sz]ed|expected|not supported|cannot be|can't be|required|not allowed|please|missing|not set|no such|incompatible|requires?|needs? to|at least|at most|specify|not found|set [A-Z_]{3,})\b",
    re.IGNORECASE,
)


def judge(trace: Trace) -> Opinion:
    """Return what one exception says; a guess where its type says little."""
    if trace.ignored or _is_shutdown(trace):
        return Opinion("noise.shutdown", CrashClass.BENIGN, Weight.NOISE)
    if trace.kind in _LAUNCHER:
        return Opinion("cascade.launcher", CrashClass.UNKNOWN, Weight.CASCADE)
    if trace.kind == "ModuleNotFoundError":
        return _missing_module(trace)
    rule = _strongest_rule(f"{trace.type}: {trace.message}".lower())
    if rule is not None and rule.weight is not Weight.GUESS:
        return Opinion(rule.id, rule.crash_class, rule.weight, rule)
    if trace.user_code and trace.kind not in _OBVIOUS - {"KeyError", "AttributeError", "IndexError"}:
        return Opinion("code.tracing", CrashClass.CODE_BUG_COMPLEX, Weight.DECISIVE)
    return _by_type(trace)


@lru_cache(maxsize=1024)
def _strongest_rule(text: str) -> Rule | None:
    held = [rule for rule in RULES if rule.weight is not Weight.SUCCESS and rule.holds(text)]
    return max(held, key=lambda rule: rule.weight, default=None)


def _is_shutdown(trace: Trace) -> bool:
    return any(frame.function in _SHUTDOWN_FUNCTIONS and is_library(frame) for frame in trace.frames) or any(
        frame.function == "__del__" or frame.function.endswith(".__del__") for frame in trace.frames
    )


def _by_type(trace: Trace) -> Opinion:
    kind = trace.kind
    if special := _SPECIAL.get(kind):
        return special(trace)
    if kind in _OBVIOUS:
        return _in_own_code(trace)
    if kind in _STOPPED:
        return Opinion("killed.cancelled", CrashClass.UNKNOWN, Weight.WEAK)
    if kind in _CONSEQUENCE:
        return Opinion("cascade.exception", CrashClass.UNKNOWN, Weight.CASCADE)
    if _SERVICE.search(kind):
        return Opinion("unknown.remote_service", CrashClass.UNKNOWN, Weight.DECISIVE)
    return _config("config.refused") if _CONFIG_TYPE.search(kind) else _general(trace)


def _config(id_: str) -> Opinion:
    return Opinion(id_, CrashClass.CONFIG, Weight.DECISIVE)


def _small(trace: Trace) -> Opinion:
    return Opinion(f"code.{trace.kind}", CrashClass.CODE_BUG_SMALL, Weight.DECISIVE)


def _complex(trace: Trace, weight: Weight = Weight.GUESS) -> Opinion:
    return Opinion(f"code.{trace.kind}", CrashClass.CODE_BUG_COMPLEX, weight)


def _innermost(trace: Trace) -> Frame | None:
    return trace.frames[-1] if trace.frames else None


def _in_own_code(trace: Trace) -> Opinion:
    """Judge a typical slip: small, unless a compiler's inside raised it."""
    last = _innermost(trace)
    return _complex(trace, Weight.DECISIVE) if last is not None and _COMPILER.search(last.file) else _small(trace)


def _missing_module(trace: Trace) -> Opinion:
    name = re.search(r"No module named '([\w.]{1,200})'", trace.message)
    root, _, rest = name.group(1).partition(".") if name else ("", "", "")
    own = (
        any(re.search(rf"(?:^|[/\\]){re.escape(root)}[/\\]", frame.file) for frame in user_frames(trace.frames))
        if rest
        else False
    )
    return _small(trace) if own else _config("config.missing_package")


def _import_error(trace: Trace) -> Opinion:
    origin = re.search(r"\(([^()]{1,300})\)\s*$", trace.message)
    if "partially initialized module" in trace.message or "circular import" in trace.message:
        return _small(trace)
    if "cannot import name" in trace.message:
        place = origin.group(1) if origin else ""
        package = re.search(r"from '(\w+)", trace.message)
        known = package is not None and _THIRD_PARTY.search(f"module '{package.group(1)}'") is not None
        return _config("config.versions") if known or is_library(Frame(place, 0, "", "")) else _small(trace)
    return _config("config.missing_package")


def _key_error(trace: Trace) -> Opinion:
    last = _innermost(trace)
    source = next((frame.source for frame in reversed(trace.frames) if frame.source), "")
    if last is not None and re.search(r"\bos(?:\.py|>)$", last.file):
        return _config("config.environment")
    if "environ[" in source or _SETTINGS_SOURCE.search(source):
        return _config("config.keys")
    if _SAMPLE_SOURCE.search(source) or (
        last is not None and re.search(r"pandas|pyarrow|h5py|datasets[/\\]", last.file)
    ):
        return Opinion("data.missing_field", CrashClass.DATA, Weight.DECISIVE)
    return _in_own_code(trace)


def _type_error(trace: Trace) -> Opinion:
    last = _innermost(trace)
    called_library = last is not None and (is_library(last) or _LIBRARY_CALL.search(last.source) is not None)
    if "unexpected keyword argument" in trace.message and (called_library or _LIBRARY_NAMES.match(trace.message)):
        return _config("config.versions")
    if last is not None and _COMPILER.search(last.file):
        return _complex(trace, Weight.DECISIVE)
    return _small(trace) if _PLAIN_TYPE_ERROR.search(trace.message) else _complex(trace)


def _assertion(trace: Trace) -> Opinion:
    last = _innermost(trace)
    if last is None:
        return Opinion("code.AssertionError", CrashClass.UNKNOWN, Weight.GUESS)
    if _COMPILER.search(last.file) or is_library(last):
        return _complex(trace, Weight.DECISIVE)
    if (
        "vocab" in last.source
        or "divisible" in last.source
        or "%" in last.source
        or _SETTINGS_SOURCE.search(last.source)
    ):
        return _config("config.assertion")
    return _small(trace)


def _value_error(trace: Trace) -> Opinion:
    last = _innermost(trace)
    if re.search(
        r"values to unpack|invalid literal for int|could not convert string|is not in list|substring not found|truth value of an? array|I/O operation on closed file|too many values",
        trace.message,
    ):
        return _in_own_code(trace)
    if last is not None and _COMPILER.search(last.file):
        return _complex(trace)
    if _REFUSED.search(trace.message):
        return Opinion("config.refused", CrashClass.CONFIG, Weight.GUESS)
    return Opinion(f"unknown.{trace.kind}", CrashClass.UNKNOWN, Weight.GUESS)


def _general(trace: Trace) -> Opinion:
    last = _innermost(trace)
    if last is None:
        return Opinion(f"unknown.{trace.kind}", CrashClass.UNKNOWN, Weight.GUESS)
    if re.match(r"raise\b", last.source) and not is_library(last):
        return Opinion(f"unknown.{trace.kind}", CrashClass.UNKNOWN, Weight.GUESS)
    return _complex(trace)


def _missing_path(_trace: Trace) -> Opinion:
    return _config("config.missing_path")


def _attribute_error(trace: Trace) -> Opinion:
    return _config("config.versions") if _THIRD_PARTY.search(trace.message) else _in_own_code(trace)


def _host_memory(_trace: Trace) -> Opinion:
    return Opinion("oom_host.allocation", CrashClass.OOM_HOST, Weight.DECISIVE)


def _far_reaching(trace: Trace) -> Opinion:
    return _complex(trace, Weight.DECISIVE)


_SPECIAL: Mapping[str, Callable[[Trace], Opinion]] = {
    "AssertionError": _assertion,
    "AttributeError": _attribute_error,
    "FileNotFoundError": _missing_path,
    "ImportError": _import_error,
    "IsADirectoryError": _missing_path,
    "KeyError": _key_error,
    "MemoryError": _host_memory,
    "NotADirectoryError": _missing_path,
    "NotImplementedError": _in_own_code,
    "OverflowError": _far_reaching,
    "PermissionError": _missing_path,
    "RecursionError": _far_reaching,
    "TypeError": _type_error,
    "ValueError": _value_error,
}
