"""Memory is asked for before it is taken."""

import os
from time import monotonic

# Seconds for which an answer of the system is good: asking takes longer than small fits do.
FRESH = 0.05
_last: tuple[float, int | None] = (-1.0, None)


def available_memory() -> int | None:
    """Bytes that can be taken without swapping, or None where the system does not say."""
    global _last
    now = monotonic()
    if now - _last[0] > FRESH:
        _last = now, _ask()
    return _last[1]


def _ask() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def check_memory(n_bytes: int, *, what: str, instead: str) -> None:
    """Refuse work that would not fit into the memory that is free now."""
    free = available_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} needs {n_bytes / 1e9:,.1f} GB; {free / 1e9:.1f} GB is free. {instead}"
        )


def check_kernel_memory(n_rows: int, n_columns: int, *, n_copies: float = 1.0) -> None:
    """Refuse a dense kernel matrix, and its copies, that would not fit into the free memory."""
    check_memory(
        int(8 * n_rows * n_columns * n_copies),
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} items",
        instead="Use a sample of the items.",
    )


def check_factor_memory(n_items: int, rank: int) -> None:
    """Refuse factors that would not fit into the memory that is free now."""
    check_memory(
        # the factors twice, and what the eigenvectors of a sample take
        16 * n_items * rank + 40 * rank**2,
        what=f"Rank {rank:,} factors of {n_items:,} items",
        instead="Choose a smaller rank.",
    )
