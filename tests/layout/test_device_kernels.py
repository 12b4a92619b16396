import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")


@pytest.mark.slow
def test_triton_kernels_do_what_plain_pytorch_does():
    # In a process of its own: Triton decides when it is imported whether to interpret kernels.
    import torch

    environment = dict(os.environ)
    if not torch.cuda.is_available():
        environment["TRITON_INTERPRET"] = "1"
    script = Path(__file__).with_name("compare_kernels.py")
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "averages agree",
        "exchanges with 3 features agree",
        "exchanges with 5 features agree",
    ]
