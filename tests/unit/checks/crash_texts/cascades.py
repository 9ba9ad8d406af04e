# ruff: noqa: E501 - messages stand as they are printed
"""Logs in which the first, the last or the loudest line is not the cause."""

from bot.model.crash import CrashClass, RelaunchAdvice

WATCHDOG = "[rank{0}]:[E101 02:07:08.4 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=4, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
SIBLINGS = "W0321 08:11:44.785000 47 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 478 closing signal SIGTERM\n"
LAUNCHER = (
    "Traceback (most recent call last):\n"
    '  File "/usr/local/bin/torchrun", line 7, in <module>\n    sys.exit(main())\n'
    '  File "/usr/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 293, in launch_agent\n    raise ChildFailedError(\n'
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    "train.py FAILED\nRoot Cause (first observed failure):\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 12)\n"
)
NAME_ERROR = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "/app/src/loggers/emit.py", line 40, in log_grads\n[rank3]:     write(nrm)\n'
    "[rank3]: NameError: name 'nrm' is not defined\n"
)
STEPS = "".join(f"step {n} loss 2.{n} tokens/s 1000\n" for n in range(100, 120))
IMPORT_NOISE = (
    "ERROR:root:Unable to import tracker.\nTraceback (most recent call last):\n"
    '  File "/app/src/track.py", line 2, in <module>\n    import mlwhatever\n'
    "ModuleNotFoundError: No module named 'mlwhatever'\n"
)
XID = "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4321, GPU has fallen off the bus.\n"

CASCADES: tuple[tuple[str, str, CrashClass, RelaunchAdvice], ...] = (
    (
        "a bug stops one rank and the others time out",
        NAME_ERROR + WATCHDOG.format(0) + WATCHDOG.format(1) + SIBLINGS + LAUNCHER,
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "the time-outs are printed before the bug",
        WATCHDOG.format(0) + WATCHDOG.format(1) + SIBLINGS + NAME_ERROR + LAUNCHER,
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "memory of one device, then peers are lost",
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n[rank0]: RuntimeError: Connection closed by peer\n"
        + SIBLINGS,
        CrashClass.OOM_DEVICE,
        RelaunchAdvice.ASK,
    ),
    (
        "an import that failed long before the device died",
        IMPORT_NOISE + STEPS + XID,
        CrashClass.INFRA_HARDWARE,
        RelaunchAdvice.SAME_ID,
    ),
    (
        "an attempt was preempted, the next one has a bug",
        STEPS + "worker was preempted\n" + STEPS + NAME_ERROR,
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "the loss was gone before the node was",
        STEPS + "step 130 loss nan\nstep 131 loss nan\nstep 132 loss nan\nsrun: error: Node failure on gpu-3\n",
        CrashClass.NUMERICAL,
        RelaunchAdvice.NO,
    ),
    (
        "a bug, then the scheduler takes the idle node",
        NAME_ERROR + SIBLINGS + "instance was preempted\n",
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "preemption, then pipes break",
        STEPS
        + 'Received preemption notice\nTraceback (most recent call last):\n  File "/usr/lib/python3.12/multiprocessing/connection.py", line 4, in _send\n    w()\nBrokenPipeError: [Errno 32] Broken pipe\nKeyboardInterrupt\n',
        CrashClass.INFRA_PREEMPTION,
        RelaunchAdvice.SAME_ID,
    ),
    (
        "preemption, then a bug while saving: a person decides",
        STEPS + "Received preemption notice\n" + NAME_ERROR,
        CrashClass.INFRA_PREEMPTION,
        RelaunchAdvice.ASK,
    ),
    (
        "a faulty GPU, then the watchdog",
        "[rank2]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
        + WATCHDOG.format(0)
        + "RuntimeError: NCCL communicator was aborted on rank 0.\n",
        CrashClass.INFRA_HARDWARE,
        RelaunchAdvice.SAME_ID,
    ),
    (
        "a killed child explains lost peers, and nothing explains the kill",
        (
            "RuntimeError: Connection closed by peer\n"
            "failed (exitcode: -9) local_rank: 1 (pid: 478229) of binary: python\n"
        ),
        CrashClass.UNKNOWN,
        RelaunchAdvice.ASK,
    ),
    (
        "a kernel memory kill explains the kill",
        "failed (exitcode: -9) local_rank: 1 (pid: 47)\nslurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n",
        CrashClass.OOM_HOST,
        RelaunchAdvice.ASK,
    ),
    (
        "a node lost to preemption",
        "The actor died because its node has died.\nthe node was preempted\n",
        CrashClass.INFRA_PREEMPTION,
        RelaunchAdvice.SAME_ID,
    ),
    (
        "lost peers of a rank that dumped core",
        "RuntimeError: Connection reset by peer\nFatal Python error: Segmentation fault\n",
        CrashClass.CODE_BUG_COMPLEX,
        RelaunchAdvice.ASK,
    ),
    (
        "a missing file, wrapped twice",
        (
            'Traceback (most recent call last):\n  File "/app/src/data/open.py", line 3, in open_shard\n    f = open(p)\n'
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.bin'\n\nThe above exception was the direct cause of the following exception:\n\n"
            'Traceback (most recent call last):\n  File "/app/src/train.py", line 9, in main\n    raise RuntimeError("no data") from error\nRuntimeError: no data\n'
        ),
        CrashClass.CONFIG,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "a queue's time-out is not why the loader died",
        (
            'Traceback (most recent call last):\n  File "/usr/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line 3, in _try_get_data\n    q.get()\n'
            "_queue.Empty\n\nDuring handling of the above exception, another exception occurred:\n\n"
            'Traceback (most recent call last):\n  File "/app/src/train.py", line 9, in main\n    next(it)\nRuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.\n'
        ),
        CrashClass.OOM_HOST,
        RelaunchAdvice.ASK,
    ),
    (
        "a lookup that failed by design",
        (
            'Traceback (most recent call last):\n  File "/app/src/cache.py", line 3, in get\n    return memo[key]\nKeyError: 7\n\n'
            "During handling of the above exception, another exception occurred:\n\n"
            "Traceback (most recent call last):\n  File \"/app/src/cache.py\", line 5, in get\n    build(kye)\nNameError: name 'kye' is not defined\n"
        ),
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.ASK,
    ),
    (
        "an evaluation error that was logged and passed over, then a spot machine",
        STEPS
        + NAME_ERROR.replace("[rank3]: ", "")
        + STEPS.replace("step 1", "step 2")
        + "Spot instance interruption notice: terminate\n",
        CrashClass.INFRA_PREEMPTION,
        RelaunchAdvice.SAME_ID,
    ),
    (
        "ranks interleave without prefixes",
        "Traceback (most recent call last):\nTraceback (most recent call last):\n  File \"/app/src/train.py\", line 4, in main\n  File \"/app/src/train.py\", line 4, in main\n    lod()\n    lod()\nNameError: name 'lod' is not defined\nNameError: name 'lod' is not defined\n",
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.ASK,
    ),
    (
        "source lines are not messages",
        'Traceback (most recent call last):\n  File "/app/src/train.py", line 4, in main\n    except torch.cuda.OutOfMemoryError: preempted("node was preempted")\nNameError: name \'preempted\' is not defined\n',
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.ASK,
    ),
    (
        "announcements are not events",
        "Registering preemption handler for SIGTERM\npreemption_count=0 oom_kill 0\nUnable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: No such file or directory\nretrying in 5s: Connection reset by peer\n"
        + NAME_ERROR,
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "bad data before the peers leave",
        "[rank2]: ValueError: shard 3 is truncated: expected 4 bytes\n[rank0]: RuntimeError: Socket closed\n[rank1]: RuntimeError: Socket closed\n",
        CrashClass.DATA,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "a bug, much teardown talk, then the peers are missed",
        NAME_ERROR.replace("[rank3]: ", "")
        + "Killing subprocess 74367\n" * 64
        + WATCHDOG.format(0)
        + "RuntimeError: Connection closed by peer\n",
        CrashClass.CODE_BUG_SMALL,
        RelaunchAdvice.AFTER_FIX,
    ),
    (
        "buffered steps printed after a bug do not clear it",
        NAME_ERROR.replace("[rank3]: ", "") + STEPS + "[rank0]: RuntimeError: Connection closed by peer\n",
        CrashClass.INFRA_HARDWARE,
        RelaunchAdvice.ASK,
    ),
    (
        "talk after a bug does not clear it",
        NAME_ERROR.replace("[rank3]: ", "") + "closing the files\n" * 30 + XID,
        CrashClass.INFRA_HARDWARE,
        RelaunchAdvice.ASK,
    ),
    (
        "an exception nobody knows, then lost peers",
        'Traceback (most recent call last):\n  File "/app/src/x.py", line 3, in f\n    raise OddError()\nOddError: hm\n'
        + WATCHDOG.format(0),
        CrashClass.UNKNOWN,
        RelaunchAdvice.ASK,
    ),
)
