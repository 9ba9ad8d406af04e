# ruff: noqa: E501 - messages stand as they are printed
"""Texts whose cause lies in the run: code, launch, data, numbers."""


def traceback(last: str, *frames: tuple[str, int, str, str]) -> str:
    """Return a traceback; a frame is file, line, function, source."""
    body = "".join(
        f'  File "{file}", line {line}, in {function}\n    {source}\n' for file, line, function, source in frames
    )
    return f"Traceback (most recent call last):\n{body}{last}\n"


MAIN = ("/app/src/train.py", 310, "<module>", "main()")
LIB = "/usr/lib/python3.12/site-packages/"

SMALL = (
    traceback("NameError: name 'stpe' is not defined", MAIN, ("/app/src/hooks.py", 12, "on_step", "return stpe + 1")),
    traceback("UnboundLocalError: cannot access local variable 'ppl' where it is not associated with a value", MAIN),
    '  File "/app/src/train.py", line 9\n    def run(:\n            ^\nSyntaxError: invalid syntax',
    '  File "/app/src/train.py", line 9\n    x = 1\nIndentationError: unexpected indent',
    traceback(
        "KeyError: 'router_z_loss'", MAIN, ("/app/src/metrics.py", 8, "summarise", "return stats['router_z_loss']")
    ),
    traceback("AttributeError: 'Trainer' object has no attribute 'tokens_sen'. Did you mean: 'tokens_seen'?", MAIN),
    traceback(
        "AttributeError: 'NoneType' object has no attribute 'log'", MAIN, ("/app/src/track.py", 3, "emit", "run.log(x)")
    ),
    traceback(
        "TypeError: __init__() got an unexpected keyword argument 'hidden'",
        MAIN,
        ("/app/src/net.py", 3, "build", "return Block(hidden=4)"),
    ),
    traceback("TypeError: train_step() missing 1 required positional argument: 'rng'", MAIN),
    traceback("TypeError: unsupported operand type(s) for /: 'str' and 'int'", MAIN),
    traceback("TypeError: 'NoneType' object is not subscriptable", MAIN),
    traceback(
        "TypeError: Object of type float32 is not JSON serializable",
        MAIN,
        ("/app/src/report.py", 4, "write", "json.dump(x, f)"),
        (LIB[:-14] + "json/encoder.py", 180, "default", "raise TypeError("),
    ),
    traceback("ImportError: cannot import name 'make_lr' from 'mylab.optim' (/app/src/mylab/optim.py)", MAIN),
    traceback(
        "ImportError: cannot import name 'A' from partially initialized module 'mylab.a' (most likely due to a circular import) (/app/src/mylab/a.py)",
        MAIN,
    ),
    traceback(
        "ModuleNotFoundError: No module named 'mylab.evals'",
        ("/app/src/mylab/main.py", 3, "<module>", "from mylab.evals import run"),
    ),
    traceback("IndexError: list index out of range", MAIN, ("/app/src/sched.py", 3, "lr_at", "return table[i]")),
    traceback(
        "ZeroDivisionError: float division by zero", MAIN, ("/app/src/evaluation.py", 30, "evaluate", "return s / n")
    ),
    traceback("ValueError: too many values to unpack (expected 2)", MAIN),
    traceback(
        "RuntimeError: expected scalar type Half but found Float",
        MAIN,
        (LIB + "torch/nn/functional.py", 3, "linear", "return x"),
    ),
    traceback(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        MAIN,
    ),
    traceback("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn", MAIN),
    traceback(
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        MAIN,
    ),
    "[15:15:06] task=/ann/x/0 attempt=1 | Traceback (most recent call last):\n[15:15:06] task=/ann/x/0 attempt=1 |   File \"/app/src/train.py\", line 4, in <module>\n[15:15:06] task=/ann/x/0 attempt=1 |     foo()\n[15:15:06] task=/ann/x/0 attempt=1 | NameError: name 'foo' is not defined",
    "Exit code: 1. stderr: NameError: name 'cfgg' is not defined",
    "(RayTrainWorker pid=88, ip=10.2.0.3) Traceback (most recent call last):\n(RayTrainWorker pid=88, ip=10.2.0.3)   File \"/app/src/train.py\", line 4, in loop\n(RayTrainWorker pid=88, ip=10.2.0.3)     x.y\n(RayTrainWorker pid=88, ip=10.2.0.3) AttributeError: 'Batch' object has no attribute 'y'",
    "2025-01-02T03:04:05.678Z Traceback (most recent call last):\n2025-01-02T03:04:05.678Z   File \"/app/src/train.py\", line 4, in loop\n2025-01-02T03:04:05.679Z     x.y\n2025-01-02T03:04:05.680Z NameError: name 'x' is not defined",
    "ray.exceptions.RayTaskError(NameError): ray::fit() (pid=3, ip=1.1.1.1)\n  File \"/app/src/train.py\", line 4, in fit\n    go()\nNameError: name 'go' is not defined",
    "E0101 01:02:03.456789 123 main.py:55] Traceback (most recent call last):\n  File \"/app/src/train.py\", line 4, in fit\n    go()\nUnboundLocalError: local variable 'go' referenced before assignment",
)

COMPLEX = (
    traceback(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (512x768 and 1024x4096)",
        MAIN,
        ("/app/src/model.py", 9, "forward", "return self.fc(x)"),
        (LIB + "torch/nn/modules/linear.py", 125, "forward", "return F.linear(x)"),
    ),
    traceback(
        "RuntimeError: The size of tensor a (2048) must match the size of tensor b (1024) at non-singleton dimension 1",
        MAIN,
    ),
    traceback(
        "TypeError: dot_general requires contracting dimensions to have the same shape, got (768,) and (1024,).",
        MAIN,
        (LIB + "jax/_src/lax/lax.py", 3, "dot_general", "raise TypeError(msg)"),
    ),
    traceback(
        "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].", MAIN
    ),
    traceback(
        "jax.errors.UnexpectedTracerError: Encountered an unexpected tracer. A function transformed by JAX had a side effect",
        MAIN,
    ),
    traceback(
        "TypeError: scan body function carry input and carry output must have equal types, but they differ: float32 vs bfloat16",
        MAIN,
    ),
    traceback("torch._dynamo.exc.Unsupported: call_function BuiltinVariable(print) [ConstantVariable()] {}", MAIN)
    + '\nfrom user code:\n   File "/app/src/model.py", line 77, in forward\n    print(x)\n',
    traceback("torch._inductor.exc.InductorError: AssertionError: buf0 not in layout", MAIN),
    traceback(
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 232448. Reducing block sizes or `num_stages` may help.",
        MAIN,
    ),
    traceback("triton.compiler.errors.CompilationError: at 12:8: unsupported", MAIN),
    traceback(
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.cuda.FloatTensor [8]]",
        MAIN,
    ),
    traceback(
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.", MAIN
    ),
    traceback(
        "torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: Recomputed values for the following tensors have different metadata",
        MAIN,
    ),
    traceback(
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        MAIN,
        ("/app/src/kernels/attn.py", 9, "bwd", "launch()"),
    ),
    'Fatal Python error: Segmentation fault\n\nThread 0x00007f (most recent call first):\n  File "/app/src/io.py", line 4 in read',
    "torchrun: failed (exitcode: -11) local_rank: 3 (pid: 9)\n Signal 11 (SIGSEGV) received by PID 9",
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: ALLREDUCE, but Rank 0 is running BROADCAST",
    "jaxlib.xla_extension.XlaRuntimeError: INVALID_ARGUMENT: Executable expected parameter 0 of size 64 but got buffer with incompatible size 32",
    traceback("RecursionError: maximum recursion depth exceeded", MAIN),
    traceback(
        "ValueError: One of pjit arguments with pytree key path x was given the sharding NamedSharding(), which is incompatible with the devices",
        MAIN,
        (LIB + "jax/_src/pjit.py", 9, "check", "raise ValueError(m)"),
    ),
    "INTERNAL: Mosaic failed to compile TPU kernel: unsupported shape cast",
    "double free or corruption (!prev)\nAborted (core dumped)",
    traceback("AssertionError", MAIN, (LIB + "torch/_inductor/scheduler.py", 8, "fuse", "assert node")),
    "[rank0]: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=5) Watchdog caught collective operation timeout\n[rank1]: WorkNCCL(SeqNum=77, OpType=BROADCAST, NumelIn=5) Watchdog caught collective operation timeout",
)

CONFIG = (
    "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --leraning-rate 3e-4",
    "usage: train.py [-h]\ntrain.py: error: the following arguments are required: --data-dir",
    "train.py: error: argument --precision: invalid choice: 'fp12' (choose from 'bf16', 'fp32')",
    "FATAL Flags parsing error: Unknown command line flag 'batch_sz'. Did you mean: batch_size ?",
    "Usage: run [OPTIONS]\nError: No such option: --stepz",
    traceback("ModuleNotFoundError: No module named 'flash_attn'", MAIN),
    "/usr/bin/python: No module named torch.distributed.runn",
    "python: can't open file '/app/trian.py': [Errno 2] No such file or directory",
    traceback(
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/tokens/train_000.bin'",
        MAIN,
        ("/app/src/data.py", 3, "open_shard", "open(p)"),
    ),
    "Exit code: 1. stderr: FileNotFoundError: [Errno 2] No such file or directory",
    traceback("PermissionError: [Errno 13] Permission denied: '/checkpoints/run1'", MAIN),
    traceback("ImportError: /opt/venv/flash.so: undefined symbol: _ZN3c105ErrorC2E", MAIN),
    traceback("ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory", MAIN),
    traceback(
        "ImportError: cannot import name 'GenerationMixin' from 'transformers' (/usr/lib/python3.12/site-packages/transformers/__init__.py)",
        MAIN,
    ),
    traceback("AttributeError: module 'jax' has no attribute 'tree_map'", MAIN),
    traceback("AttributeError: module 'numpy' has no attribute 'bool8'", MAIN),
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    "AssertionError: Torch not compiled with CUDA enabled",
    traceback("KeyError: 'WANDB_PROJECT'", MAIN, ("<frozen os>", 714, "__getitem__", "raise KeyError(key)")),
    traceback("KeyError: 'warmup'", MAIN, ("/app/src/opt.py", 4, "build", "w = config['warmup']")),
    "hydra.errors.ConfigCompositionException: Could not override 'optim.lrr'. Key 'lrr' is not in struct",
    "omegaconf.errors.ConfigAttributeError: Key 'n_layerz' is not in struct",
    "draccus.utils.DecodingError: `trainer.mp`: Could not decode the value into any of the given types",
    "pydantic_core._pydantic_core.ValidationError: 2 validation errors for TrainConfig\nlr\n  Input should be a valid number",
    'yaml.scanner.ScannerError: mapping values are not allowed here\n  in "run.yaml", line 3',
    traceback(
        "RuntimeError: Error(s) in loading state_dict for GPT:\n\tsize mismatch for wte.weight: copying a param with shape torch.Size([50257, 768]) from checkpoint, the shape in current model is torch.Size([50304, 768]).",
        MAIN,
    ),
    traceback("ValueError: vocab_size mismatch: tokenizer has 128256 entries, model expects 128000", MAIN),
    traceback(
        "AssertionError: global batch size 1000 is not divisible by 64",
        MAIN,
        ("/app/src/mesh.py", 4, "check", "assert gbs % dp == 0"),
    ),
    traceback(
        "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size",
        MAIN,
    ),
    traceback(
        "ValueError: Unsupported activation 'swigloo'", MAIN, ("/app/src/net.py", 4, "act", "raise ValueError(m)")
    ),
    traceback(
        "OSError: meta-llama/Foo is not a local folder and is not a valid model identifier listed on 'https://hub.example/models'",
        MAIN,
    ),
    "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url",
    "wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
    "google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.",
    'Failed to pull image "registry/x:1": manifest unknown\nWarning Failed ErrImagePull',
    "bash: line 3: torchrun: command not found",
    "sbatch: error: invalid partition specified: h1000\nsbatch: error: Batch job submission failed: Invalid partition name specified",
    "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 0 and rank 1 both on CUDA device 1a000",
    "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
    "OSError: [Errno 24] Too many open files",
    traceback(
        "TypeError: flex_attention() got an unexpected keyword argument 'kernel_opts'",
        MAIN,
        (LIB + "torch/nn/attention/flex.py", 4, "wrap", "return fn(**kw)"),
    ),
    traceback(
        "ImportError: attempted relative import with no known parent package",
        ("/app/src/train.py", 2, "<module>", "from .model import M"),
    ),
    "RuntimeError: CUDA error: invalid device ordinal",
    "google.api_core.exceptions.NotFound: 404 GET https://storage.example/b/x: The specified bucket does not exist.",
)

DATA = (
    traceback("RuntimeError: PytorchStreamReader failed reading zip archive: not a ZIP archive", MAIN),
    traceback("_pickle.UnpicklingError: pickle data was truncated", MAIN),
    traceback("EOFError: Ran out of input", MAIN, ("/app/src/ck.py", 3, "load", "pickle.load(f)")),
    traceback("zipfile.BadZipFile: File is not a zip file", MAIN),
    traceback("gzip.BadGzipFile: Not a gzipped file (b'PK')", MAIN),
    traceback("EOFError: Compressed file ended before the end-of-stream marker was reached", MAIN),
    traceback("zlib.error: Error -3 while decompressing data: incorrect header check", MAIN),
    traceback(
        "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.",
        MAIN,
    ),
    traceback("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer", MAIN),
    traceback("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", MAIN),
    "tensorflow.python.framework.errors_impl.DataLossError: corrupted record at 123456",
    'ValueError: DATA_LOSS: Error reading "ckpt/step-900/params/w/0.0": CRC checksum mismatch',
    traceback("PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f00aa>", MAIN),
    traceback("OSError: image file is truncated (12 bytes not processed)", MAIN),
    traceback(
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x8b in position 1: invalid start byte",
        MAIN,
        ("/app/src/read.py", 3, "rows", "for l in f:"),
    ),
    traceback(
        "json.decoder.JSONDecodeError: Expecting value: line 17 column 1 (char 900)",
        MAIN,
        ("/app/src/shards.py", 3, "rows", "json.loads(l)"),
    ),
    traceback(
        "ValueError: mmap length is greater than file size", MAIN, ("/app/src/idx.py", 3, "open", "np.memmap(p)")
    ),
    traceback("ValueError: cannot mmap an empty file", MAIN),
    traceback("ValueError: buffer size must be a multiple of element size", MAIN),
    traceback(
        "KeyError: 'input_ids'",
        MAIN,
        ("/app/src/collate.py", 3, "stack", "x = [example['input_ids'] for example in xs]"),
    ),
    traceback("KeyError: 'optimizer'", MAIN, ("/app/src/resume.py", 3, "restore", "opt.load(checkpoint['optimizer'])")),
    traceback("datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset", MAIN),
    traceback("ValueError: num_samples should be a positive integer value, but got num_samples=0", MAIN),
    traceback(
        "FileNotFoundError: [Errno 2] No such file or directory: '/out/checkpoints/step-4000/metadata.json'", MAIN
    ),
    "ValueError: Column 'text' not found in the dataset. Current columns: ['content']",
    "RuntimeError: shard 17 is truncated: expected 2147483648 bytes, found 1073741824",
    "ValueError: number of tokens read does not match header",
    "OSError: checkpoint step-500 is incomplete: 63 of 64 files",
    traceback("tarfile.ReadError: unexpected end of data", MAIN),
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\nRuntimeError: CUDA error: device-side assert triggered",
)

NUMERICAL = (
    "RuntimeError: Non-finite loss (nan) at step 4711.",
    "[15:15:06] task=/me/x/0 | ValueError: loss is nan at step 17",
    "Exit code: 1. stderr: RuntimeError: Loss is NaN",
    "FloatingPointError: invalid value (nan) encountered in jit(train_step)",
    "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate",
    "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    "AssertionError: found NaN in local grad norm in backward pass before data-parallel communication collective. Device: 3",
    "RuntimeError: Rank 2, node n1, device 1, iteration 500: Unexpected result nan (message='found NaN in local forward loss calculation')",
    "tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss during training.",
    "torch._C._LinAlgError: linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned",
    "torch._C._LinAlgError: linalg.cholesky: The factorization could not be completed because the input is not positive-definite",
    "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
    "ERROR gradient norm is nan for 10 consecutive steps, stopping",
    "RuntimeError: training diverged at step 90: loss 1e12",
    "Detected inf in gradients of layer 3; aborting run",
    "step 1000 loss 2.5\nstep 1010 loss nan\nstep 1020 loss nan\nstep 1030 loss nan\nslurmstepd: error: *** JOB 1 ON n CANCELLED AT 2025-01-01T00:00:00 ***",
    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
    "ValueError: Encountered infinite values in the preconditioner matrix",
    "ValueError: Expected parameter logits (Tensor of shape (4, 9)) of distribution Categorical to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid values: tensor([nan])",
    "Model diverged with loss = NaN.",
)

BENIGN = (
    'step 1000 loss 2.1\nTraining completed successfully.\nException ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n  File "/usr/lib/python3.12/multiprocessing/pool.py", line 271, in __del__\nResourceWarning: unclosed running multiprocessing pool',
    "`Trainer.fit` stopped: `max_steps=1000` reached.\n[rank0]:[W1 ProcessGroupNCCL.cpp:1524] Warning: WARNING: destroy_process_group() was not called before program exit",
    'Finished training.\nError in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File "/usr/lib/python3.12/logging/__init__.py", line 1, in shutdown\n    h.flush()\nValueError: I/O operation on closed file.',
    'job succeeded\nException ignored in atexit callback: <function _exit at 0x1>\nTraceback (most recent call last):\n  File "/app/src/track.py", line 2, in _exit\n    run.finish()\nImportError: sys.meta_path is None, Python is likely shutting down',
    "Training finished\n/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 8 leaked semaphore objects to clean up at shutdown",
    "run_stop status: success\nterminate called without an active exception",
)

UNKNOWN = (
    "Killed",
    "train.sh: line 12:  4431 Killed                  python train.py",
    "Exit code: -9",
    "Exit code 137: killed by SIGKILL (possibly OOM or resource limit)",
    "failed (exitcode: -9) local_rank: 0 (pid: 7) of binary: /usr/bin/python\nSignal 9 (SIGKILL) received by PID 7",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15",
    "Received SIGTERM, exiting",
    "slurmstepd: error: *** JOB 3 ON n1 CANCELLED AT 2025-01-01T01:01:01 ***",
    "Terminated by user",
    "",
    "step 1 loss 2.0\nstep 2 loss 1.9",
    "KeyboardInterrupt",
    "Exit code: 7",
    "Job exceeded max_task_failures",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\ntrain.py FAILED\n  exitcode  : 1 (pid: 4)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.example/elastic/errors.html",
    "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://hub.example/api",
)
