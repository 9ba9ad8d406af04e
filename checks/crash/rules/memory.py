# ruff: noqa: E501 - a pattern broken over lines can no longer be searched for
"""Memory of the accelerator and of the host.

A kill without a reason (137, -9, a bare "Killed") is not here: it proves no memory kill.
"""

from bot.model.crash import CrashClass
from checks.crash.rule import Rule, Weight

_DEVICE = CrashClass.OOM_DEVICE
_HOST = CrashClass.OOM_HOST

MEMORY: tuple[Rule, ...] = (
    Rule(
        id="oom_host.kernel",
        crash_class=_HOST,
        needles=(
            "oom-kill",
            "oom_kill",
            "oom killer",
            "oomkilled",
            "oom killed",
            "out of memory: kill",
            "cgroup out of memory",
            "oom-killed",
            "killed by the oom",
            "killed due to out of memory",
            "oomkilling",
            "systemd-oomd",
            "earlyoom",
            "oom kill ",
            "out_of_memory+",
            "state=out_of_memory",
        ),
        unless=r"oom_kill[: =]+0\b|\b0 oom|oomkilled\W{1,4}false|oom_score|possibly oom",
        why="kernel, cgroup, Slurm, Kubernetes, Docker and Iris name the memory kill",
    ),
    Rule(
        id="oom_host.limit",
        crash_class=_HOST,
        needles=(
            "physical memory limit",
            "virtual memory limit",
            "memory limit",
            "term_memlimit",
            "low on resource: memory",
            "node running low on memory",
            "raylet killed",
            "outofmemoryerror",
            "out of memory",
            "memory usage exceed",
            "exceeded memory",
            "object store",
            "objectstorefull",
            "mem exceeded",
            "killed: mem",
            "killed: vmem",
            "killed: pmem",
        ),
        pattern=r"beyond (?:the )?\'?(?:physical|virtual)\'? memory limit|exceeded (?:job |step |its |the |container )?memory limit|memory limit.{0,30}exceeded|exceed\w*.{0,30}memory limit|term_memlimit|low on resource: memory"
        r"|running low on memory|ray\.exceptions\.outofmemoryerror|task \d+: out of memory|objectstorefullerror|object store.{0,40}(?:is full|out of memory)|job killed: \w{0,3}mem|worker.{0,60}out of memory.{0,40}killed",
        unless=r"cuda|hip out of|hbm|gpu memory|device memory",
        why="limits of schedulers, kubelet eviction, Ray's memory monitor",
    ),
    Rule(
        id="oom_host.allocation",
        crash_class=_HOST,
        needles=(
            "cannot allocate memory",
            "bad_alloc",
            "memoryerror",
            "unable to allocate",
            "defaultcpuallocator",
            "can't allocate memory",
            "[errno 12]",
            "allocator cpu",
            "allocator mklcpu",
            "failed to allocate host",
            "pinned_host",
            "cuda_host",
            "pinned host",
            "cudahostalloc",
            "hostalloc",
            "failed to alloc host",
            "out of host memory",
        ),
        pattern=r"cannot allocate memory|bad_alloc|(?:^|\W)\w{0,12}memoryerror\b|unable to allocate .{0,40}(?:array|bytes|[kmgt]ib)|defaultcpuallocator|can't allocate memory|\[errno 12\]|allocator (?:mkl)?cpu"
        r"|fail\w* to alloc\w*.{0,60}(?:host|pinned)|(?:pinned_host|cuda_host|pinned host|hostalloc).{0,80}(?:out of memory|fail|exhausted)|out of host memory|out of memory.{0,60}(?:pinned|host memory)",
        unless=r"outofmemoryerror|cuda out of|gpu_\d_bfc|tried to allocate .{0,60}gpu",
        why="an allocation on the host was refused",
    ),
    Rule(
        id="oom_host.worker_killed",
        crash_class=_HOST,
        needles=(
            "is killed by signal: killed",
            "out of shared memory",
            "insufficient shared memory",
            "killed by signal: bus error",
            "/dev/shm",  # noqa: S108 - a word of the message, not a file that is used
        ),
        pattern=r"worker.{0,40}is killed by signal: killed|out of shared memory(?!, required)|insufficient shared memory|worker.{0,40}killed by signal: bus error|no space left.{0,80}/dev/shm|/dev/shm.{0,80}no space left",
        unless=r"triton|out of resource: shared memory",
        why="a data-loader process of torch died for lack of memory or of /dev/shm",
    ),
    Rule(
        id="oom_device.cuda",
        crash_class=_DEVICE,
        needles=(
            "out of memory",
            "outofmemoryerror",
            "memoryallocation",
            "alloc_failed",
            "out_of_memory",
            "oom when allocating",
        ),
        pattern=r"(?:cuda|hip|mps|xpu|npu|gpu|device|nccl|metal|rocm)\b.{0,200}out of memory|out of memory.{0,200}(?:cuda|hip|gpu|device)|torch\.(?:cuda\.)?outofmemoryerror|cudaerrormemoryallocation|cu(?:blas|dnn|fft|solver|sparse)_status_alloc_failed"
        r"|cuda_error_out_of_memory|oom when allocating tensor|errormemoryallocation|status_alloc_failed|hip_?error_?out_?of_?memory",
        unless=r"expandable_segments|allocator cpu|host memory|kernel: ",
        why="the allocator of a GPU library refused",
    ),
    Rule(
        id="oom_device.xla",
        crash_class=_DEVICE,
        needles=(
            "resource_exhausted",
            "resource exhausted",
            "resourceexhausted",
            "out of memory while trying to allocate",
            "out of memory allocating",
        ),
        pattern=r"resource_?\s?exhausted:?.{0,300}(?:out of memory|allocat|attempting to reserve|hbm|memory space|oom)|out of memory while trying to allocate|out of memory allocating|resource exhausted: (?:failed to allocate|oom)",
        unless=r"quota|rate limit|disk|no space|message larger|host memory|pinned|allocator (?:mkl)?cpu|too many requests|requests per",
        why="XLA's RESOURCE_EXHAUSTED about memory of the accelerator",
    ),
    Rule(
        id="oom_device.hbm",
        crash_class=_DEVICE,
        needles=(
            "hbm",
            "memory space vmem",
            "memory space smem",
            "bufferassignment oom",
            "bottom of memory",
            "top of memory",
        ),
        pattern=r"memory space (?:hbm|vmem|smem)\b|used [\d.]+[gm] of [\d.]+[gm] hbm|program hbm requirement|largest program allocations in hbm|(?:ran )?out of memory in memory space|exceed\w* hbm capacity|hbm capacity .{0,60}program requirement|total hbm usage|not enough hbm|hbm.{0,40}(?:exhausted|out of memory|oom)"
        r"|insufficient hbm|bufferassignment oom|attempting to (?:reserve|allocate) .{0,60}(?:bottom|top) of memory|ran out of memory in",
        unless=r"hbm usage.{0,40}(?:mean|avg|%)",
        why="reports of the TPU compiler and runtime, also without the words 'out of memory'",
    ),
    Rule(
        id="oom_device.other",
        crash_class=_DEVICE,
        weight=Weight.WEAK,
        needles=("loadexecutable", "failed to allocate"),
        pattern=r"loadexecutable.{0,100}(?:memory|allocat)|failed to allocate .{0,60}(?:bytes|memory).{0,60}(?:device|gpu|hbm|bfc)",
        why="device memory refused while a program is loaded",
    ),
)
