# ruff: noqa: E501 - messages stand as they are printed
"""More messages of all families, mostly one or two lines, as condensed reports bring them."""

from bot.model.crash import CrashClass

MESSAGES: tuple[tuple[CrashClass, str], ...] = (
    (
        CrashClass.OOM_DEVICE,
        "RuntimeError: CUDA out of memory. Tried to allocate 2.44 GiB (GPU 0; 15.78 GiB total capacity; 12.00 GiB already allocated)\n  0%|          | 0/1000 [00:03<?, ?it/s]",
    ),
    (CrashClass.OOM_DEVICE, "ValueError: Ran out of memory in memory space hbm"),
    (CrashClass.OOM_DEVICE, "RuntimeError: XLA compile: Execution failed: memory space hbm: Used 18.2G of 15.48G hbm."),
    (
        CrashClass.OOM_DEVICE,
        "2024-05-05 E external/xla/xla/pjrt/pjrt_stream_executor_client.cc:2985] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Failed to allocate 3221225472 bytes for new constant",
    ),
    (
        CrashClass.OOM_DEVICE,
        "RuntimeError: NPU out of memory. Tried to allocate 64.00 MiB (NPU 0; 60.97 GiB total capacity",
    ),
    (
        CrashClass.OOM_DEVICE,
        "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to allocate 4294967296 bytes for device 0: CUDA_ERROR_OUT_OF_MEMORY",
    ),
    (CrashClass.OOM_HOST, "wandb: Network error\nbash: fork: Cannot allocate memory"),
    (CrashClass.OOM_HOST, "Traceback...\nOSError: [Errno 12] Cannot allocate memory"),
    (
        CrashClass.OOM_HOST,
        "Container killed on request. Exit code is 137. Container is running beyond physical memory limits. Current usage: 64 GB of 64 GB",
    ),
    (
        CrashClass.OOM_HOST,
        "RuntimeError: unable to mmap 1048576 bytes from file </path/model.bin>: Cannot allocate memory (12)",
    ),
    (
        CrashClass.OOM_HOST,
        "[Mon Jan 1] Memory cgroup out of memory: Kill process 31 (python) score 1000 or sacrifice child",
    ),
    (
        CrashClass.OOM_HOST,
        "RuntimeError: unable to write to file </torch_2233_1>: No space left on device (28) /dev/shm",
    ),
    (CrashClass.OOM_HOST, "The job's memory use (250 GB) exceeded memory limit (240 GB), being killed"),
    (
        CrashClass.INFRA_HARDWARE,
        "RuntimeError: CUDA error: unspecified launch failure\nNVRM: Xid (PCI:0000:4f:00): 119, Timeout waiting for RPC from GSP!",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "nvidia-smi: Unable to determine the device handle for GPU 0000:CA:00.0: Unknown Error",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "RuntimeError: CUDA error: device unavailable: CUDA-capable device(s) is/are busy or unavailable",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "[rank9]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nsocketProgress: Connection closed by remote peer gpu-3<54321>",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "node-4:1234:1444 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "[rank0]:[E402 ProcessGroupNCCL.cpp:1375] [PG 0 (default_pg) Rank 0] First PG on this rank that detected no heartbeat of its watchdog.\n[rank0]:[E402 ProcessGroupNCCL.cpp:1413] Heartbeat monitor timed out! Process will be terminated after dumping debug info.",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "RuntimeError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer",
    ),
    (CrashClass.INFRA_HARDWARE, "torch.distributed.DistStoreError: Socket Timeout"),
    (CrashClass.INFRA_HARDWARE, "E0101 tpu_driver: F0000 TPU hardware error: uncorrectable ECC in HBM on chip 2"),
    (
        CrashClass.INFRA_HARDWARE,
        "E1113 Coordination service agent is in ERROR: UNAVAILABLE: Task heartbeat timed out: /job:jax_worker/replica:0/task:5",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "ABORTED: The coordination service has shut down: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.2:8476: Failed to connect to remote host: Connection refused",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "ray.exceptions.NodeDiedError: Task failed due to the node (where this task was running) was dead or unavailable.",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffff",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "slurmstepd: error: *** STEP 4.0 ON n[1-8] CANCELLED AT 2025-01-02T00:00:00 DUE TO NODE n3 FAILURE ***",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "srun: error: n3: task 24: Exited with exit code 1\nslurmctld: error: Nodes n3 not responding, setting DOWN",
    ),
    (CrashClass.INFRA_HARDWARE, "OSError: [Errno 5] Input/output error: '/fsx/ckpt/shard_3.pt'"),
    (
        CrashClass.INFRA_HARDWARE,
        "RuntimeError: [enforce fail at inline_container.cc:424] . unexpected pos 6848 vs 6744\nOSError: [Errno 28] No space left on device",
    ),
    (CrashClass.INFRA_HARDWARE, 'rsync: write failed on "/local/x": No space left on device (28)'),
    (CrashClass.INFRA_HARDWARE, "Bus error: nvme0n1: I/O error, dev nvme0n1, sector 123"),
    (CrashClass.INFRA_HARDWARE, "RuntimeError: Failed to connect to TPU: chip 3 not responding"),
    (CrashClass.INFRA_HARDWARE, "Failed to get TPU metadata; /dev/vfio/1 Device or resource busy"),
    (CrashClass.INFRA_HARDWARE, "HIP error: uncorrectable ECC error\nMemory access fault by GPU node-1"),
    (
        CrashClass.INFRA_HARDWARE,
        "nccl: NET/OFI Request completed with error. RC: 5. Error: unreachable remote. Completed length: 0",
    ),
    (CrashClass.INFRA_HARDWARE, "Host gpu-3 became unreachable; marking allocation lost"),
    (CrashClass.INFRA_HARDWARE, "dcgmi diag: Fail — GPU 3 row remap pending: GPU requires reset"),
    (CrashClass.INFRA_PREEMPTION, "Vertex AI: The replica workerpool0-0 exited because VM was preempted."),
    (CrashClass.INFRA_PREEMPTION, "torchx: slurm job state: PREEMPTED"),
    (
        CrashClass.INFRA_PREEMPTION,
        "slurmstepd-n1: error: *** JOB 2 ON n1 CANCELLED AT 2024-01-01T01:01:01 DUE TO PREEMPTION ***",
    ),
    (CrashClass.INFRA_PREEMPTION, "sacct 1234|train|TIMEOUT|0:15\nState: TIMEOUT (exit code 0)"),
    (CrashClass.INFRA_PREEMPTION, "run.ai: Workload was preempted, over-quota reclaim"),
    (CrashClass.INFRA_PREEMPTION, "kubelet: Preempting pod ml/llm-3 to make room for critical pod"),
    (CrashClass.INFRA_PREEMPTION, "Job reached its wall-clock time limit and was terminated"),
    (
        CrashClass.INFRA_PREEMPTION,
        "google: VM shutting down: ACPI G2 Power Button; instance was preempted by Compute Engine",
    ),
    (
        CrashClass.INFRA_PREEMPTION,
        'level=warning msg="Received spot termination notice; instance will be terminated in 2 minutes"',
    ),
    (CrashClass.INFRA_PREEMPTION, "Determined: trial 3 preempted by the scheduler; checkpointing"),
    (
        CrashClass.INFRA_PREEMPTION,
        "orbax: preemption_checkpoint: reached preemption sync point at step 3000\njax: Preemption notice received from coordination service",
    ),
    (
        CrashClass.CAPACITY,
        "ERROR: (gcloud.compute.tpus.queued-resources.create) RESOURCE_EXHAUSTED: Quota limit 'TPUS_PER_TPU_FAMILY' has been exceeded. Limit: 32",
    ),
    (CrashClass.CAPACITY, "ERROR code 8: Insufficient capacity in zone for v5litepod-256 (stockout)"),
    (CrashClass.CAPACITY, "job pending (Resources): waiting for 16 nodes; 0 of 16 available"),
    (
        CrashClass.CAPACITY,
        "Unschedulable: 0/3 nodes are available: 3 Insufficient google.com/tpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",
    ),
    (CrashClass.CAPACITY, "RuntimeError: No GPUs available: requested 8, cluster has 0 free"),
    (CrashClass.CAPACITY, "You have exceeded your quota for resource A3"),
    (CrashClass.CONFIG, "FileNotFoundError: [Errno 2] No such file or directory: 'configs/llama.yaml'"),
    (CrashClass.CONFIG, "ValueError: Tokenizer class LlamaTokenizerX does not exist or is not currently imported."),
    (CrashClass.CONFIG, "ValueError: Unrecognized configuration class for this kind of AutoModel"),
    (
        CrashClass.CONFIG,
        "ImportError: Using `bitsandbytes` 8-bit quantization requires Accelerate: `pip install accelerate`",
    ),
    (
        CrashClass.CONFIG,
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used: the package flash_attn seems to be not installed",
    ),
    (
        CrashClass.CONFIG,
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by x.so)",
    ),
    (
        CrashClass.CONFIG,
        "RuntimeError: Failed to import transformers.models.llama because of the following error: cannot import name 'split_torch_state_dict' from 'huggingface_hub' (/usr/lib/python3/dist-packages/huggingface_hub/__init__.py)",
    ),
    (
        CrashClass.CONFIG,
        "Traceback (most recent call last):\n  File \"/w/run.py\", line 3, in <module>\n    parser.parse_args()\nSystemExit: 2\nrun.py: error: argument --steps: invalid int value: '10k'",
    ),
    (CrashClass.CONFIG, "absl.flags._exceptions.UnrecognizedFlagError: Unknown command line flag 'foo'"),
    (CrashClass.CONFIG, "ValueError: mutable default <class 'dict'> for field x is not allowed: use default_factory"),
    (CrashClass.CONFIG, "RuntimeError: The expanded size: num_heads 12 must be divisible by tensor parallel size 8"),
    (CrashClass.CONFIG, "AssertionError: world size (6) is not divisible by total_model_size (4)"),
    (
        CrashClass.CONFIG,
        "deepspeed.runtime.config.DeepSpeedConfigError: DeepSpeedConfig: Gradient accumulation steps: 0 has to be greater than 0",
    ),
    (CrashClass.CONFIG, "Error: YAML parse error in config/train.yaml: line 3"),
    (CrashClass.CONFIG, "wandb.errors.CommError: project not found (Error 404: Not Found)"),
    (CrashClass.CONFIG, "botocore.exceptions.NoCredentialsError: Unable to locate credentials"),
    (
        CrashClass.CONFIG,
        "gcsfs.retry.HttpError: ann@x does not have storage.objects.get access to the Google Cloud Storage object. Permission 'storage.objects.get' denied, 403",
    ),
    (
        CrashClass.CONFIG,
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
    ),
    (CrashClass.CONFIG, "/bin/sh: 1: accelerate: not found"),
    (
        CrashClass.CONFIG,
        "ninja: error: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
    ),
    (
        CrashClass.CONFIG,
        "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
    ),
    (
        CrashClass.CONFIG,
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found runtime version (8, 9, 2)",
    ),
    (
        CrashClass.CONFIG,
        "RuntimeError: jaxlib version 0.4.20 is newer than and incompatible with jax version 0.4.16. Please update your jax and/or jaxlib packages.",
    ),
    (
        CrashClass.CONFIG,
        "ValueError: Attempted to resume from step 4000 but checkpoint directory gs://b/run/checkpoints does not exist",
    ),
    (CrashClass.DATA, "RuntimeError: unexpected EOF, expected 123 more bytes. The file might be corrupted."),
    (
        CrashClass.DATA,
        "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)",
    ),
    (CrashClass.DATA, "OSError: Unable to synchronously open file (file signature not found)"),
    (
        CrashClass.DATA,
        "pyarrow.lib.ArrowInvalid: Could not open Parquet input source '<Buffer>': Parquet file size is 0 bytes",
    ),
    (CrashClass.DATA, "ValueError: bad magic number in shard header: 0"),
    (CrashClass.DATA, "RuntimeError: Error(s): checkpoint shard mp_rank_03_model_states.pt is corrupted"),
    (CrashClass.DATA, "webdataset: tarfile.ReadError: file could not be opened successfully"),
    (CrashClass.DATA, "lzma.LZMAError: Corrupt input data"),
    (CrashClass.DATA, "numpy: ValueError: Cannot load file containing pickled data when allow_pickle=False"),
    (CrashClass.DATA, "zarr.errors.PathNotFoundError: nothing found at path 'input_ids'"),
    (CrashClass.DATA, "TFRecord: DataLossError: truncated record at 88 failed with Read less bytes than requested"),
    (CrashClass.DATA, "datasets.table.CastError: Couldn't cast ... because column names don't match"),
    (
        CrashClass.DATA,
        'tensorstore: ValueError: NOT_FOUND: Error opening "zarr" driver: Metadata at gs://b/ckpt/step-3/params/.zarray does not exist',
    ),
    (CrashClass.NUMERICAL, "AssertionError: Loss is nan, stopping training"),
    (CrashClass.NUMERICAL, "Loss is nan, stopping training"),
    (CrashClass.NUMERICAL, "ValueError: NaN detected in loss at step 312"),
    (
        CrashClass.NUMERICAL,
        "lightning: MisconfigurationException? ValueError: The loss returned in `training_step` is nan.",
    ),
    (CrashClass.NUMERICAL, "Exception: grad_norm=nan, aborting"),
    (CrashClass.NUMERICAL, "jax FloatingPointError: nan generated by primitive: mul"),
    (CrashClass.NUMERICAL, "OverflowError: loss went to infinity; step 3"),
    (CrashClass.NUMERICAL, "[DeepSpeed] ZeRO: Gradient overflow 50 times in a row; loss scale reached minimum, exit"),
    (CrashClass.NUMERICAL, "RuntimeError: Detected NaN or Inf in the gradients of parameter blocks.3.mlp"),
    (
        CrashClass.CODE_BUG_SMALL,
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in main\n    x = cfg.modle\nAttributeError: 'Namespace' object has no attribute 'modle'",
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    print(f"{loss:.3f}")\nTypeError: unsupported format string passed to Tensor.__format__',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    f(3)\nTypeError: f() takes 0 positional arguments but 1 was given',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/opt.py", line 3, in step\n    p.add_(g)\nRuntimeError: a leaf Variable that requires grad is being used in an in-place operation.',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        "Traceback (most recent call last):\n  File \"/w/ckpt.py\", line 3, in save\n    os.rename(a, b)\nNameError: name 'os' is not defined",
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/log.py", line 3, in log_metrics\n    json.dumps(m)\n  File "/usr/lib/python3.10/json/__init__.py", line 231, in dumps\n    x\nTypeError: Object of type Tensor is not JSON serializable',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        "Traceback (most recent call last):\n  File \"/w/net.py\", line 3, in forward\n    self.lin(x)\n  File \"/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py\", line 1931, in __getattr__\n    raise AttributeError(\nAttributeError: 'GPT' object has no attribute 'lin'",
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    a[5]\nIndexError: tuple index out of range',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/eval.py", line 30, in score\n    return hits / total\nZeroDivisionError: division by zero',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    x.view(-1)\nRuntimeError: view size is not compatible with input tensor\'s size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    x.numpy()\nRuntimeError: Can\'t call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    x.numpy()\nTypeError: Got unsupported ScalarType BFloat16',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        "Traceback (most recent call last):\n  File \"/w/q.py\", line 3, in main\n    x\nKeyError: 'blocks.7.attn.c_q.weight'",
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in main\n    step()\n  File \"/opt/conda/lib/python3.10/site-packages/torch/_inductor/codegen/triton.py\", line 3, in gen\n    x\ntorch._inductor.exc.LoweringException: AttributeError: 'View' object has no attribute 'get_stride'",
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    step()\n  File "/opt/conda/lib/python3.10/site-packages/torch/distributed/fsdp/_flat_param.py", line 3, in gen\n    x\nRuntimeError: Cannot writeback when the parameter shape changes',
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        'Traceback (most recent call last):\n  File "/w/train.py", line 3, in main\n    step()\n  File "/opt/conda/lib/python3.10/site-packages/torch/_ops.py", line 3, in __call__\n    x\ntorch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1)',
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "jax: ValueError: Incompatible shapes for broadcasting: (8, 128) and requested shape (8, 64)",
    ),
    (CrashClass.CODE_BUG_COMPLEX, "thread '<unnamed>' panicked at src/lib.rs:3: index out of bounds"),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "RuntimeError: CUDA error: an illegal memory access was encountered\nterminate called after throwing an instance of 'c10::Error'",
    ),
    (CrashClass.CODE_BUG_COMPLEX, "*** SIGSEGV received at time=1700000000 on cpu 3 ***\nPC: @ 0x7f  xla::Foo()"),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 224, 224] to have 3 channels, but got 1 channels instead",
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "torch.distributed: RuntimeError: DDP expects same model across all ranks, but Rank 3 has 40 params, while rank 0 has inconsistent 39 params.",
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "jaxlib.xla_extension.XlaRuntimeError: UNIMPLEMENTED: PartitionId instruction is not supported for SPMD partitioning",
    ),
    (CrashClass.UNKNOWN, "task exited with code 1"),
    (CrashClass.UNKNOWN, "step 10 loss 3\nTerminated"),
    (CrashClass.UNKNOWN, "wandb: Waiting for W&B process to finish... (failed -9). Press Ctrl-C to abort syncing."),
    (CrashClass.UNKNOWN, "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url"),
    (
        CrashClass.BENIGN,
        "INFO - Training done, exiting.\nException in thread Thread-3 (_monitor):\nException ignored in: <_io.TextIOWrapper>\nBrokenPipeError: [Errno 32] Broken pipe",
    ),
    (
        CrashClass.BENIGN,
        'wandb: Synced 5 W&B file(s)\nTraining complete: final loss 2.1\nException ignored in: <function _ConnectionBase.__del__ at 0x7f>\nTraceback (most recent call last):\n  File "/usr/lib/python3.10/multiprocessing/connection.py", line 137, in __del__\n    self._close()\nOSError: [Errno 9] Bad file descriptor',
    ),
    (
        CrashClass.DATA,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/w/train_gpt.py", line 300, in load_data_shard\n    assert header[0] == 20240520, "magic number mismatch in the data .bin file"\nAssertionError: magic number mismatch in the data .bin file',
    ),
    (
        CrashClass.CONFIG,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\nFileNotFoundError: No files found for pattern: /data/fineweb_train_*.bin',
    ),
    (
        CrashClass.CONFIG,
        "Traceback (most recent call last):\n  File \"/w/train_gpt.py\", line 1500, in <module>\n    main()\nModuleNotFoundError: No module named 'flash_attn_interface'",
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/w/train_gpt.py", line 800, in serialize\n    blob = brotli.compress(raw)\nNameError: name \'brotli\' is not defined',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/w/train_gpt.py", line 800, in main\n    log0(f"{x:.4f}")\nValueError: Unknown format code \'f\' for object of type \'str\'',
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/w/train_gpt.py", line 800, in main\n    assert len(sd) == 48\nAssertionError',
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/usr/local/lib/python3.12/dist-packages/torch/_dynamo/eval_frame.py", line 3, in _fn\n    x\ntorch._dynamo.exc.BackendCompilerFailed: backend=\'inductor\' raised:\nRuntimeError: Failed to find C compiler. Please specify via CC environment variable.',
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/usr/local/lib/python3.12/dist-packages/torch/_dynamo/eval_frame.py", line 3, in _fn\n    x\ntorch._dynamo.exc.FailOnRecompileLimitHit: Hard failure due to fullgraph=True',
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/usr/local/lib/python3.12/dist-packages/torch/nn/functional.py", line 3, in scaled_dot\n    x\nRuntimeError: No available kernel. Aborting execution.',
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        "[rank0]: RuntimeError: a and b must have same reduction dim, but got [8192, 512] X [768, 512].",
    ),
    (
        CrashClass.CODE_BUG_SMALL,
        "RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal tensor",
    ),
    (CrashClass.CODE_BUG_SMALL, "ValueError: can't optimize a non-leaf Tensor"),
    (
        CrashClass.CONFIG,
        "torch.cuda.is_available() is False\nRuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
    ),
    (CrashClass.CONFIG, "ValueError: sentencepiece vocab size 1024 != args.vocab_size 2048"),
    (
        CrashClass.DATA,
        "OSError: Error reading file: /data/openwebtext_train_000132.arrow: Expected to be able to read 1048 bytes for message body, got 900",
    ),
    (CrashClass.DATA, "RuntimeError: Internal: could not parse ModelProto from /data/tok.model"),
    (
        CrashClass.DATA,
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Key: image/encoded.  Can't parse serialized Example.",
    ),
    (
        CrashClass.NUMERICAL,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\n  File "/w/opt/shampoo.py", line 3, in step\n    raise ValueError\nPreconditionerValueError: Encountered nan values in inv factor matrix',
    ),
    (
        CrashClass.NUMERICAL,
        "step:300 train_loss:nan\nstep:301 train_loss:nan\nRuntimeError: stopping: non-finite train loss",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "srun: error: Unable to confirm allocation for job 4: Socket timed out on send/recv operation\nsrun: error: n2: Node failure",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.\nNVRM: GPU 0000:1 has fallen off the bus",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "Exception: TPU initialization failed: Failed to open /dev/accel0: No such device or address",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "F0302 16:52:01 tpu_program: Detected slice failure, core dump: ICI link down on chip 5",
    ),
    (CrashClass.INFRA_HARDWARE, "absl: E megascale: Barrier timed out. Hosts missing: 4, 9"),
    (
        CrashClass.INFRA_HARDWARE,
        "orbax: tasks that have not reached the barrier: /job:jax_worker/task:3; Barrier timed out. Barrier_id: sync:3",
    ),
    (
        CrashClass.INFRA_HARDWARE,
        "dgx-7 kernel: mlx5_core 0000:3b:00.0: health: device's health compromised - reached miss count; mlx5 link down",
    ),
    (
        CrashClass.INFRA_PREEMPTION,
        "slurmstepd: error: *** STEP 81.0 ON h1 CANCELLED AT 2024-11-11T11:11:11 DUE TO TIME LIMIT ***\n[rank1]: torch.distributed.DistNetworkError: Connection reset by peer\nBrokenPipeError: [Errno 32] Broken pipe",
    ),
    (
        CrashClass.INFRA_PREEMPTION,
        "gcloud: TPU vm 'x' state: PREEMPTED. ssh: connect to host 10.1.1.1 port 22: Connection timed out",
    ),
    (CrashClass.INFRA_PREEMPTION, "worker_0 | Worker evicted: node reclaimed for on-demand (spot interruption)"),
    (CrashClass.OOM_HOST, "multiprocessing.pool: Killed process 12 (python) by the OOM killer"),
    (
        CrashClass.OOM_HOST,
        "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL\ndmesg: oom-kill:constraint=CONSTRAINT_NONE",
    ),
    (CrashClass.OOM_DEVICE, "RuntimeError: Triton Error [CUDA]: out of memory"),
    (
        CrashClass.OOM_DEVICE,
        "E0000 gpu: failed to alloc 17179869184 bytes on device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ),
    (
        CrashClass.UNKNOWN,
        "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL",
    ),
    (
        CrashClass.CAPACITY,
        "googleapiclient.errors.HttpError: 429 when requesting create node: There is no more capacity in the zone",
    ),
    (
        CrashClass.CAPACITY,
        "kueue: Workload is pending: couldn't assign flavors: insufficient unused quota for google.com/tpu, 128 more needed",
    ),
    (
        CrashClass.CODE_BUG_COMPLEX,
        'Fatal Python error: Aborted\nCurrent thread 0x1 (most recent call first):\n  File "/w/a.py", line 3 in f\n*** SIGSEGV',
    ),
    (
        CrashClass.CONFIG,
        'Traceback (most recent call last):\n  File "/w/train_gpt.py", line 1500, in <module>\n    main()\nomegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.path',
    ),
    (CrashClass.CONFIG, "error: unknown command 'trian'"),
    (CrashClass.CONFIG, "ValueError: Job name cannot contain '/'"),
    (CrashClass.CONFIG, "connectrpc.errors.ConnectError: client revision is too old: upgrade marin-iris"),
    (CrashClass.CONFIG, "ImportError: DLL load failed while importing _C: The specified module could not be found."),
    (
        CrashClass.CONFIG,
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method",
    ),
    (
        CrashClass.UNKNOWN,
        "dataset download: requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub.example', port=443): Max retries exceeded",
    ),
)
