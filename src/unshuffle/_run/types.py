"""Names of arrays, and of what is called to report progress."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Points = NDArray[np.float64]  # a row each
Planes = NDArray[np.float32]  # one for each feature
Pixels = NDArray[np.uint8]
Indices = NDArray[np.intp]
Order = NDArray[np.intp]
Orders = NDArray[np.intp]  # a row each
Pairs = NDArray[np.intp]  # rows of two
Permutation = NDArray[np.intp]  # the partner of each item; -1 for none
Permutations = NDArray[np.intp]  # a row each
Progress = Callable[[int, int], object]  # of the steps done and their total
