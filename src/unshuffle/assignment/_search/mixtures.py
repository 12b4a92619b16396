"""Mixtures of two matchings, from which the search for quadratic problems continues."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Permutation

WORD = 2**64 - 1


def mix(first: Permutation, second: Permutation, seed: int) -> Permutation:
    """A matching between two: common partners stay, others are those of either if still free."""
    random = _Random(seed)
    parents = first.tolist(), second.tolist()
    n_items = first.size
    mixed = [own if own == other else -1 for own, other in zip(*parents, strict=True)]
    used = set(mixed)
    visit = list(range(n_items))
    for i in range(n_items - 1, -1, -1):  # in random order
        k = random.below(i + 1)
        item = visit[k]
        visit[k] = visit[i]
        if mixed[item] >= 0:
            continue
        turn = random.below(2)
        own, other = parents[turn][item], parents[1 - turn][item]
        partner = other if own in used else own
        if partner not in used:
            mixed[item] = partner
            used.add(partner)
    left = [item for item in range(n_items) if item not in used]
    for item in range(n_items):
        if mixed[item] < 0:
            k = random.below(len(left))
            mixed[item] = left[k]
            left[k] = left[-1]
            left.pop()
    return np.array(mixed, dtype=np.intp)


def random_state(seed: int) -> NDArray[np.uint64]:
    """First state of the generator of `_Random`."""
    return np.array([(seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & WORD], dtype=np.uint64)


class _Random:
    """Marsaglia's xorshift generator: seeded faster than those of NumPy, the same everywhere."""

    def __init__(self, seed: int) -> None:
        self.state = int(random_state(seed)[0])

    def below(self, n: int) -> int:
        """Whole number from 0 to n - 1."""
        state = self.state
        state ^= (state << 13) & WORD
        state ^= state >> 7
        state ^= (state << 17) & WORD
        self.state = state
        return (state >> 33) % n
