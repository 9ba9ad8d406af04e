# ruff: noqa: E501 - a pattern broken over lines can no longer be searched for
"""Preemption, time limits, faulty nodes, accelerators and storage: the run itself did nothing wrong.

Only texts that name the cause stand here as decisive. A lost peer or a collective time-out is as often a consequence
and stands, weak, in ``network.py``.
"""

from bot.model.crash import CrashClass, RelaunchAdvice
from checks.crash.rule import Rule

_PREEMPTED = CrashClass.INFRA_PREEMPTION
_BROKEN = CrashClass.INFRA_HARDWARE

PREEMPTION: tuple[Rule, ...] = (
    Rule(
        id="preemption.time_limit",
        crash_class=_PREEMPTED,
        needles=("due to time limit", "time limit exceeded", "time limit reached", "exceeded job time limit"),
        unless=r"within the time limit|before the time limit",
        why="Slurm and others end a job at its time limit",
    ),
    Rule(
        id="preemption.walltime",
        crash_class=_PREEMPTED,
        needles=("wall-clock time", "walltime", "wall time", "wallclock time"),
        pattern=r"wall.?clock time limit.{0,40}(?:terminated|killed|exceed)|time limit and was (?:terminated|killed)|job killed: wall|killed.{0,60}wall ?(?:clock ?)?time|wall ?(?:clock ?)?time.{0,60}exceeded limit",
        why="PBS, Torque, Flux",
    ),
    Rule(
        id="preemption.batch_state",
        crash_class=_PREEMPTED,
        needles=(
            "state: timeout",
            "term_runlimit",
            "term_preempt",
            "state=timeout",
            "state=preempted",
            "state: preempted",
            "state preempted",
            "status: preempted",
            "task_state_preempted",
            "job_state_preempted",
            "job was evicted",
        ),
        why="end states of LSF, Slurm, queued TPU resources, Iris and HTCondor",
    ),
    Rule(
        id="preemption.deadline",
        crash_class=_PREEMPTED,
        needles=(
            "longer than specified deadline",
            "longer than the specified deadline",
            "execution timeout exceeded",
            "maxruntimeexceeded",
            "maximum runtime exceeded",
            "exceeded max runtime",
        ),
        why="Kubernetes activeDeadlineSeconds, Iris --timeout, managed training services",
    ),
    Rule(
        id="preemption.said",
        crash_class=_PREEMPTED,
        needles=("preempt",),
        pattern=r"(?:\b(?:was|were|been|being|got|is|are|node|instance|instances|vm|pod|task|worker|job|step|slice|tpu|machine|workload|host|cluster|trial|replica)"
        r" (?:has been |was |were )?(?:spot )?preempted\b"
        r"|(?:worker|spot|instance|node|vm|pod|job|task|tpu) preemption\b(?! count)"
        r"|due to (?:a )?(?:spot )?preemption|preemption (?:notice|signal|event|detected|received|warning)"
        r"|received (?:a )?(?:preemption|preempt)|detected (?:a )?preemption|preempted (?:by|to accommodate|in order|for|at|due)\b"
        r"|evictedduetopreempt|preemptionbyscheduler|instances\.preempted|preempting (?:job|pod|task|workload|instance)"
        r"|preempted: (?!0|false|no\b)|eventtype\W{1,6}preempt|reason\W{1,4}preempt)",
        unless=r"(?:may|might|could|possibly|probably|unless|when|whether|in case|if) .{0,40}preempt"
        r"|failed, (?:got )?preempted|, (?:got )?preempted,? or|or (?:was |been |got )?preempted|preempted or\b|not (?:been )?preempted|0 (?:tasks?|workers?) preempted"
        r"|(?:register|install|enabl|listen|poll|watching|start)\w* .{0,40}preempt"
        r"|preempt\w* .{0,20}(?:handler|watcher|manager|hook) (?:registered|installed|enabled|started|ready)|simulat\w+ preempt",
        why="the scheduler or the cloud says that it took the machine back",
    ),
    Rule(
        id="preemption.spot",
        crash_class=_PREEMPTED,
        needles=("spot", "instance-action"),
        pattern=r"spot.{0,20}(?:instance )?(?:interruption|termination|reclaim|eviction)|spot.{0,40}(?:reclaimed|interrupted|terminated|evicted)"
        r"|instance-action.{0,60}(?:terminate|stop|hibernate)",
        unless=r"no spot|(?:register|install|enabl|listen|poll|watching|start|check)\w* .{0,40}(?:spot|instance-action)",
        why="AWS, Azure and others announce the end of a spot machine",
    ),
    Rule(
        id="preemption.termination_notice",
        crash_class=_PREEMPTED,
        needles=(
            "termination is imminent",
            "imminent node shutdown",
            "node is shutting down",
            "imminent shutdown",
            "terminated in response to imminent",
            "instance is being reclaimed",
            "instance will be terminated",
        ),
        why="GCP metadata service, kubelet's graceful node shutdown",
    ),
    Rule(
        id="preemption.maintenance",
        crash_class=_PREEMPTED,
        needles=("maintenance",),
        pattern=r"maintenance.event|terminate_on_(?:host_)?maintenance|host maintenance|unhealthy_maintenance|scheduled maintenance|drained? for maintenance",
        unless=r"(?:no|none|without|upcoming) .{0,20}maintenance|maintenance.event\W{1,5}(?:none|no)\b",
        why="host maintenance of a cloud",
    ),
    Rule(
        id="preemption.lame_workers",
        crash_class=_PREEMPTED,
        needles=("lame workers found",),
        why="TPUEstimator's shutdown hook finds workers that the cloud is taking away",
    ),
    Rule(
        id="preemption.sigterm_reason",
        crash_class=_PREEMPTED,
        needles=("sigterm", "signal 15"),
        pattern=r"(?:sigterm|signal 15).{0,60}(?:from|by) (?:the )?(?:scheduler|slurm|kubelet|cloud|spot)|(?:scheduler|slurm|kubelet) sent (?:sigterm|signal 15)",
        why="a SIGTERM that says who sent it",
    ),
    Rule(
        id="preemption.requeue",
        crash_class=_PREEMPTED,
        needles=("requeu",),
        pattern=r"requeu\w*.{0,60}(?:preempt|time.?out|time limit)|(?:preempt|timed.?out).{0,60}requeu",
        unless=r"if .{0,40}requeue|not requeu",
        why="submitit, Lightning and Slurm put the job back into the queue",
    ),
)

STORAGE: tuple[Rule, ...] = (
    Rule(
        id="hardware.disk_full",
        crash_class=_BROKEN,
        needles=(
            "no space left",
            "enospc",
            "disk quota exceeded",
            "outofdiskerror",
            "disk is full",
            "not enough disk space",
            "insufficient disk space",
            "low on resource: ephemeral-storage",
            "not enough free disk space",
            "ephemeral local storage usage exceeds",
            "diskpressure",
            "exceeds the local disk",
        ),
        unless=r"no space left.{0,80}/dev/shm|/dev/shm.{0,80}no space left",
        relaunch=RelaunchAdvice.ASK,
        why="storage needs space before a relaunch makes sense",
    ),
    Rule(
        id="hardware.write_failed",
        crash_class=_BROKEN,
        needles=("unexpected pos", "pytorchstreamwriter failed", "cannot be opened"),
        pattern=r"inline_container\.cc.{0,80}unexpected pos|pytorchstreamwriter failed (?:writing|closing)|runtimeerror: file \S{1,300} cannot be opened",
        relaunch=RelaunchAdvice.ASK,
        why="torch.save could not open or fill its file: full, forbidden or failing storage (a missing folder has another text)",
    ),
    Rule(
        id="hardware.input_output",
        crash_class=_BROKEN,
        needles=(
            "input/output error",
            "remote i/o error",
            "stale file handle",
            "stale nfs file handle",
            "transport endpoint is not connected",
            "read-only file system",
            "i/o error, dev",
            "lustre: error",
            "uncorrectable i/o",
        ),
        why="kernel error texts of a failing disk or of a lost network mount",
    ),
)

HARDWARE: tuple[Rule, ...] = (
    Rule(
        id="hardware.ecc",
        crash_class=_BROKEN,
        needles=("ecc", "double bit", "double-bit", "contained memory error"),
        pattern=r"(?:uncorrectable|uncorrected|double.bit|dbe|fatal)\W.{0,20}(?:ecc|error)|\becc error|contained (?:ecc|memory) error|ecc_uncorrectable|eccuncorrectable",
        unless=r"errors?[:= ]{1,3}0\b|\b0 uncorrect|(?<!un)correct(?:able|ed) ecc|ecc errors? enabled",
        why="uncorrectable memory error of an accelerator",
    ),
    Rule(
        id="hardware.xid",
        crash_class=_BROKEN,
        needles=("xid",),
        pattern=r"xid(?: \(pci:[^)]{0,40}\):|[ :=#]{1,3}(?:error |code )?) ?(?:48|61|62|63|64|74|79|92|93|94|95|109|110|119|120|121|136|140|143|149)\b",
        why="NVIDIA's Xid catalogue: codes of the device, not of the program",
    ),
    Rule(
        id="hardware.gpu_lost",
        crash_class=_BROKEN,
        needles=(
            "fallen off the bus",
            "gpu is lost",
            "gpu requires reset",
            "gpu reset required",
            "unable to determine the device handle",
            "row remapping failure",
            "row remapper",
            "hardware slowdown",
            "gsp rpc timeout",
            "gpu has been lost",
            "gpu_is_lost",
            "gpu hang",
            "hsa_status_error_exception",
            "failed to initialize nvml",
            "driver/library version mismatch",
            "gpu recovery action",
            "sxid",
            "link training failed",
            "pcie bus error",
            "gpu not healthy",
            "unhealthy gpu",
            "gpu unhealthy",
        ),
        unless=r"0 row|row remapper.{0,20}(?:ok|none|no)\b",
        why="the driver or the device plugin says that the device is gone",
    ),
    Rule(
        id="hardware.nvlink",
        crash_class=_BROKEN,
        needles=(
            "nvlink",
            "nvswitch",
            "fabric manager",
            "fabricmanager",
            "system not yet initialized",
            "system_not_ready",
            "systemnotready",
        ),
        pattern=r"(?:nvlink|nvswitch).{0,40}(?:error|fatal|failure|failed|inactive|down\b)|fabric ?manager.{0,60}(?:not running|failed|error|not started|not initialized)|system not yet initialized|system_?not_?ready",
        unless=r"nvlink.{0,40}(?:errors?[:= ]{1,3}0\b|no error)",
        why="links between GPUs, and the service that sets them up",
    ),
    Rule(
        id="hardware.machine_check",
        crash_class=_BROKEN,
        needles=("[hardware error]", "machine check", "kernel panic", "mce:", "edac"),
        pattern=r"\[hardware error\]|machine check (?:exception|event)|kernel panic|mce: .{0,40}error|edac .{0,60}\bue\b",
        why="the kernel reports the machine",
    ),
    Rule(
        id="hardware.device_held",
        crash_class=_BROKEN,
        needles=(
            "in use by",
            "device or resource busy",
            "busy or unavailable",
            "devicesunavailable",
            "devices_unavailable",
            "already in use",
            "multi-process lockfile",
            "libtpu_lockfile",
        ),
        pattern=r"(?:tpu|accelerator|libtpu|/dev/accel|/dev/vfio|/dev/nvidia|gpu|cuda device).{0,100}(?:already )?in use|device or resource busy|busy or unavailable|devices_?unavailable|multi-process lockfile|libtpu_lockfile",
        unless=r"address already in use|memory in use|port .{0,20}in use",
        why="another, often stale, process holds the accelerator",
    ),
    Rule(
        id="hardware.tpu_node",
        crash_class=_BROKEN,
        needles=(
            "no accelerator found",
            "compiler_base.cc",
            "failed_precondition",
            "failedprecondition",
            "unhealthy_tpu",
            "tpu",
            "/dev/accel",
            "/dev/vfio",
            "slice health",
            "ici ",
        ),
        pattern=r"tpu .{0,60}is not healthy|tpu.{0,60}health unknown|no accelerator found|compiler_base\.cc:2587|failed_?precondition.{0,240}(?:tpu|device|accelerator|chip|driver|slice)"
        r"|(?:tpu|device|accelerator|chip|slice).{0,120}failed_precondition|tpu.{0,60}(?:unhealthy|health check failed|bad node|is not healthy|hardware (?:fault|error|failure))"
        r"|unhealthy_tpu|slice health check failed|\bici .{0,40}(?:link|cable|network).{0,40}(?:down|fail|error|unhealthy)"
        r"|(?:could not|couldn't|failed to|cannot) open.{0,20}/dev/(?:accel|vfio)|tpu (?:driver|runtime|system) (?:crashed|died|failed to (?:start|initialize|come up))"
        r"|failed to (?:initialize|connect to) (?:the )?tpu|tpu initialization failed|backend 'tpu': (?:aborted|unknown|unavailable|failed_precondition|deadline_exceeded)",
        unless=r"gcs|storage\.googleapis|bucket",
        why="a TPU host that cannot start its chips: the node is bad",
    ),
    Rule(
        id="hardware.node_failure",
        crash_class=_BROKEN,
        needles=(
            "setting down",
            "became unreachable",
            "due to node",
            "due to node failure",
            "node failure",
            "node_fail",
            "nodelost",
            "node lost",
            "lost node",
            "deletionbytaintmanager",
            "taintmanagereviction",
            "deletionbypodgc",
            "unexpectedadmissionerror",
            "nodenotready",
            "node is not ready",
            "node not ready",
            "unexpectedly rebooted",
            "unexpected reboot",
            "prolog",
            "hardware failure",
            "node is unreachable",
            "node.kubernetes.io/unreachable",
            "marked as down",
            "vm was terminated due to a hardware",
        ),
        pattern=r"srun: error: \S{1,60}: node failure|due to node \S{0,60} ?failure|not responding, setting down|(?:host|node|machine|worker) \S{1,60} became unreachable|due to node failure|node failure on|\bnode_fail\b|job_?state[=: ]node_fail|nodelost|(?:node|host) (?:was |is )?lost\b|lost node|deletionbytaintmanager|taintmanagereviction|deletionbypodgc"
        r"|unexpectedadmissionerror|nodenotready|node (?:\S{1,60} )?(?:status )?is not ready|node not ready|unexpected(?:ly)? reboot|prolog.{0,40}(?:fail|error)|hardware failure|node is unreachable"
        r"|node\.kubernetes\.io/unreachable|node.{0,60}marked as down|terminated due to a hardware",
        unless=r"(?:may|might|could|possibly|probably|likely) .{0,30}(?:hardware|node) failure|tolerat|--no-requeue|e\.g\.",
        why="Slurm and Kubernetes name the node",
    ),
    Rule(
        id="hardware.port_error",
        crash_class=_BROKEN,
        needles=("port error", "link flap", "link down", "carrier lost", "link is down", "lost carrier"),
        pattern=r"async event.{0,20}port error|(?:mlx|ib|eth|efa|rdma|nic|bond|net).{0,60}(?:link flap|link (?:is )?down|carrier lost|lost carrier)",
        why="the network adapter reports its own link",
    ),
)
