"""A similarity of points that tells where it was called, and once kills its process."""

import os
import signal
import time
from pathlib import Path

import numpy as np


class Marked:
    """Gaussian similarity of points that leaves a mark at each call, and once ends its process.

    Each call leaves an empty file in a folder. The call that finds `deadly` of them, and is the
    first to do so, kills the worker that it runs on.
    """

    def __init__(self, folder, deadly):
        folder.mkdir(exist_ok=True)
        self.folder = str(folder)
        self.deadly = deadly

    def __call__(self, X, Y):
        if len(os.listdir(self.folder)) >= self.deadly and self.first():
            os.kill(os.getpid(), signal.SIGKILL)
        Path(self.folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        return np.exp(-0.5 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))

    def first(self):
        try:
            os.close(os.open(f"{self.folder}.killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True
