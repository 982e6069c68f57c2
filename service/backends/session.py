"""One ONNX Runtime session, set up so that threads and memory stay within what the container was given."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

# Official builds of ONNX Runtime report their use to their maker and keep a device's id in the home folder, from the
# import on. A server that answers about people's photographs contacts nobody.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

from service.errors import SettingsError

Device = Literal["cpu", "cuda"]


def give_back_memory() -> None:
    """Hand memory that was freed back to the system.

    Loading a graph, and dropping a session, frees about as much as the weights take, in pieces that the C library
    would keep: 240 MB and 390 MB for a ViLT-B/32. Does nothing where the C library is not glibc.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


class Brake:
    """Stops an inference half way, from any thread: a ViLT-B/32 of 100 to 180 ms ends within 1 to 3 ms.

    Attributes:
        options: to run the session with; what was stopped raises.
        applied: whether it was to stop.
    """

    def __init__(self) -> None:
        self.options = ort.RunOptions()
        self.applied = False

    def apply(self) -> None:
        """Stop what runs with the options, or will."""
        self.applied = True
        # Looked at before each node of the graph.
        self.options.terminate = True


def open_session(path: Path, *, device: Device, device_id: int, threads: int) -> Any:
    """Load a graph for `device` with `threads` intra-op threads.

    A session is made in the process that uses it, after any fork: ONNX Runtime's threads do not survive one.

    Raises:
        SettingsError: `device` is `cuda` and this ONNX Runtime has no CUDA provider, or it did not come up.
    """
    options = ort.SessionOptions()
    # Set explicitly: the default is one thread for each of the host's cores, whatever the quota, pinned to cores that
    # the process may not be allowed to use.
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # Shapes vary from question to question; memory patterns would be kept for each of them.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    # Between the nodes of a graph its threads spin: going to sleep and being woken some 300 times costs a ViLT-B/32 on
    # two threads 4 % of its time, an 8-bit one 12 %. They stop when the inference ends: for longer they would burn the
    # quota that decoding needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if device == "cpu":
        providers: list[Any] = ["CPUExecutionProvider"]
    else:
        if "CUDAExecutionProvider" not in ort.get_available_providers():
            raise SettingsError(
                "setting device (VQA_DEVICE): cuda needs onnxruntime-gpu in place of onnxruntime "
                f"(this one offers {', '.join(ort.get_available_providers())})"
            )
        cuda = {
            "device_id": device_id,
            "arena_extend_strategy": "kSameAsRequested",
            # An exhaustive search would run again for every new shape.
            "cudnn_conv_algo_search": "HEURISTIC",
        }
        providers = [("CUDAExecutionProvider", cuda), "CPUExecutionProvider"]
    session = ort.InferenceSession(str(path), options, providers=providers)
    if device == "cuda" and session.get_providers()[0] != "CUDAExecutionProvider":
        # ONNX Runtime falls back to the CPU without an error; a GPU deployment that is 30 times too slow is worse.
        raise SettingsError("setting device (VQA_DEVICE): the CUDA provider did not start; see ONNX Runtime's log")
    return session
