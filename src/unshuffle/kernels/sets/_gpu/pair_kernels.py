"""Triton kernels that compare all pairs of sets; importing this module imports Triton.

Numbers of components lie side by side by set, so that neighboring threads read neighbors. Tuples
are registers: they are unrolled when a kernel is compiled, and Triton supports only `+` on them.
"""

# Triton reads annotations itself, and allows none but its own.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code=assignment
# ruff: noqa: RUF005

import triton
import triton.language as tl


@triton.jit
def _numbers(table, component, sets, n, N: tl.constexpr):
    """All numbers of one component of each of some sets."""
    found = (tl.load(table + component * N * n + sets),)
    for q in tl.static_range(1, N):
        found = found + (tl.load(table + (component * N + q) * n + sets),)
    return found


@triton.jit
def _outer(a, b):
    """Sums of all pairs."""
    return a[:, None] + b[None, :]


@triton.jit
def _full_term(left, right, D: tl.constexpr):
    """exp(a + b - log|A + B| / 2 - z'(A + B)^-1 z / 2) for all pairs, by LDL' in registers."""
    pivot = _outer(left[1 + D], right[1 + D])
    head = left[1][:, None] - right[1][None, :]
    product = pivot
    inverses = (1.0 / pivot,)
    heads = (head,)
    ratios = (pivot,)  # lower triangle without the diagonal; the first is not used
    form = head * head * inverses[0]
    log_det = pivot * 0.0
    for r in tl.static_range(1, D):
        # Row r of a triangle begins at 1 + D + r (r + 1) / 2; names cannot hold such an index.
        pivot = _outer(left[D + (r + 1) * (r + 2) // 2], right[D + (r + 1) * (r + 2) // 2])
        head = left[1 + r][:, None] - right[1 + r][None, :]
        row = (pivot,)  # of the triangle before division; the first is not used
        for c in tl.static_range(r):
            value = _outer(left[1 + D + r * (r + 1) // 2 + c], right[1 + D + r * (r + 1) // 2 + c])
            for k in tl.static_range(c):
                value -= row[1 + k] * ratios[1 + c * (c - 1) // 2 + k]
            ratio = value * inverses[c]
            pivot -= value * ratio
            head -= ratio * heads[c]
            row = row + (value,)
            ratios = ratios + (ratio,)
        inverse = 1.0 / pivot
        inverses = inverses + (inverse,)
        heads = heads + (head,)
        form += head * head * inverse
        if r % 4 == 0:  # one logarithm for four pivots, whose product fits into float32
            log_det += tl.log(product)
            product = pivot
        else:
            product *= pivot
    log_det += tl.log(product)
    return tl.exp(_outer(left[0], right[0]) - 0.5 * (log_det + form))


@triton.jit(do_not_specialize=["n_rows", "n_columns", "M", "OTHER_M"])
def full_products(
    table, other, out, n_rows, n_columns, n, n_other, M, OTHER_M, D: tl.constexpr,
    HALF: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sums over pairs of components of full covariances, one tile of pairs of sets each.

    `table` (M, 1 + D + D (D + 1) / 2, n) holds the log factor, mean and lower triangle of each
    component; n is a multiple of the tile. With HALF, `other` is `table`, tiles below the
    diagonal are left out, and the others are written twice.
    """
    first = tl.program_id(0) * ROWS
    column = tl.program_id(1) * COLUMNS
    if HALF and column + COLUMNS <= first:
        return
    N: tl.constexpr = 1 + D + D * (D + 1) // 2
    rows = first + tl.arange(0, ROWS)
    columns = column + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=table.dtype.element_ty)
    for i in range(M):
        left = _numbers(table, i, rows, n, N)
        for j in range(OTHER_M):
            right = _numbers(other, j, columns, n_other, N)
            total += _full_term(left, right, D)
    _write(out, total, rows, columns, n_rows, n_columns, HALF)


@triton.jit(do_not_specialize=["n_rows", "n_columns", "M", "OTHER_M"])
def diagonal_products(
    table, other, out, n_rows, n_columns, n, n_other, M, OTHER_M, D: tl.constexpr,
    HALF: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """As `full_products` for diagonal covariances: `table` is (M, 1 + 2 D, n)."""
    first = tl.program_id(0) * ROWS
    column = tl.program_id(1) * COLUMNS
    if HALF and column + COLUMNS <= first:
        return
    rows = first + tl.arange(0, ROWS)
    columns = column + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=table.dtype.element_ty)
    for i in range(M):
        a = table + i * (1 + 2 * D) * n + rows
        for j in range(OTHER_M):
            b = other + j * (1 + 2 * D) * n_other + columns
            term = _outer(tl.load(a), tl.load(b))
            for k in range(1, D + 1):
                gap = tl.load(a + k * n)[:, None] - tl.load(b + k * n_other)[None, :]
                spread = _outer(tl.load(a + (D + k) * n), tl.load(b + (D + k) * n_other))
                term -= 0.5 * (gap * gap / spread + tl.log(spread))
            total += tl.exp(term)
    _write(out, total, rows, columns, n_rows, n_columns, HALF)


@triton.jit
def _write(out, total, rows, columns, n_rows, n_columns, HALF: tl.constexpr):
    """Store a tile, and its mirror image if only half of them are computed."""
    wide = rows.to(tl.int64)
    kept = (rows < n_rows)[:, None] & (columns < n_columns)[None, :]
    if HALF:
        # Tiles on the diagonal: both triangles from the upper one, for exact symmetry.
        kept = kept & (rows[:, None] <= columns[None, :])
        mirror = columns.to(tl.int64)[None, :] * n_columns + rows[:, None]
        tl.store(out + mirror, total, mask=kept)
    tl.store(out + wide[:, None] * n_columns + columns[None, :], total, mask=kept)


@triton.jit
def _add_column(total, x, y, DEGREE: tl.constexpr):
    """Add the squared differences, or the products, of one column of two groups of points."""
    if DEGREE == 0:
        gap = x[:, None] - y[None, :]
        return total + gap * gap
    return total + x[:, None] * y[None, :]


@triton.jit
def _similarities(
    x, y, i, j, size, other_size, n_points, n_other, dtype: tl.constexpr, D: tl.constexpr,
    DEGREE: tl.constexpr,
):  # fmt: skip
    """Kernel between points i at x and j at y; zero where there is no point.

    Places without a point are so far away in the first column that their square is negligible.
    """
    far = 1e18 if DEGREE == 0 else 0.0
    first = tl.load(x + i, mask=i < size, other=far)
    other = tl.load(y + j, mask=j < other_size, other=-far)
    total = _add_column(tl.zeros((i.shape[0], j.shape[0]), dtype=dtype), first, other, DEGREE)
    if D <= 16:
        for k in tl.static_range(1, D):
            a = tl.load(x + k * n_points + i, mask=i < size, other=0.0)
            b = tl.load(y + k * n_other + j, mask=j < other_size, other=0.0)
            total = _add_column(total, a, b, DEGREE)
    else:
        for k in range(1, D):
            a = tl.load(x + k * n_points + i, mask=i < size, other=0.0)
            b = tl.load(y + k * n_other + j, mask=j < other_size, other=0.0)
            total = _add_column(total, a, b, DEGREE)
    if DEGREE == 0:
        return tl.exp2(-total)
    value = total + 1.0
    for _ in tl.static_range(DEGREE - 1):
        value = value * (total + 1.0)
    return tl.where((i < size)[:, None] & (j < other_size)[None, :], value, 0.0)


@triton.jit(do_not_specialize=["n_columns", "n_points", "n_other"])
def point_means(
    points, offsets, others, other_offsets, out, n_columns, n_points, n_other, D: tl.constexpr,
    DEGREE: tl.constexpr, HALF: tl.constexpr, SETS: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Mean of a kernel over the pairs of points of one set with each of SETS others.

    `points` (D, n_points) are stacked by set, from `offsets`. DEGREE 0 is 2^-|x - y|^2, else
    (x'y + 1)^DEGREE.
    """
    row = tl.program_id(0)
    begin = tl.program_id(1) * SETS
    end = tl.minimum(begin + SETS, n_columns)
    if HALF:
        begin = tl.maximum(begin, row)
    stride = n_columns.to(tl.int64)  # the matrix may have more than 2^31 entries
    dtype = points.dtype.element_ty
    first = tl.load(offsets + row)
    size = tl.load(offsets + row + 1) - first
    for column in range(begin, end):
        other_first = tl.load(other_offsets + column)
        other_size = tl.load(other_offsets + column + 1) - other_first
        total = tl.zeros((COLUMNS,), dtype=dtype)
        for start in range(0, size, ROWS):
            i = start + tl.arange(0, ROWS)
            for other_start in range(0, other_size, COLUMNS):
                j = other_start + tl.arange(0, COLUMNS)
                values = _similarities(
                    points + first, others + other_first, i, j, size, other_size, n_points,
                    n_other, dtype, D, DEGREE,
                )  # fmt: skip
                total += tl.sum(values, axis=0)  # the rows of a column are in one thread
        mean = tl.sum(total, axis=0) / size.to(dtype) / other_size.to(dtype)
        tl.store(out + row * stride + column, mean)
        if HALF:
            tl.store(out + column * stride + row, mean)
