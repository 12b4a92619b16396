"""Shapes that a function of arrays asks for, stated above it and checked on each call."""

import threading
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import as_numbers
from unshuffle._parameters import check_count, check_flag, check_memory, check_real

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Door(threading.local):
    """Whether the present thread is inside a function whose arguments were checked."""

    passed = False


_door = _Door()

# Arguments so large may be why a decomposition failed.
LARGE = 1e100


def takes(
    *, finite: bool = True, empty: bool = False, **shapes: str
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Check the arguments of a function against their shapes, and that its result is finite.

    The checks cost a few microseconds and never read the numbers: NaN, infinity and overflow show
    in the result. An argument that is not an array becomes one. A function that is called from
    another such function is not checked again.

    Examples
    --------
    >>> @takes(A="n d", b="d")
    ... def product(A, b):
    ...     return A @ b
    >>> product([[1, 2]], [3, 4, 5])
    Traceback (most recent call last):
    ValueError: `b` must be an array of shape (d,) with d = 2 as in `A`, got shape (3,).
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        names = list(signature(function).parameters)

        @wraps(function)
        def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            # Checked once, at the door: what functions hand to one another fits. And Python has
            # words of its own for too many arguments.
            if _door.passed or len(args) > len(names):
                return function(*args, **kwargs)
            given: dict[str, Any] = {**dict(zip(names, args, strict=False)), **kwargs}
            given = shaped(given, shapes)
            for name, value in given.items():
                if not empty and isinstance(value, np.ndarray) and value.size == 0:
                    raise ValueError(f"`{name}` is empty: it has shape {value.shape}.")
            _check_room(given)
            _door.passed = True
            try:
                with np.errstate(all="ignore"):
                    result = function(**given)  # type: ignore[call-arg]
            except ValueError as error:
                if "`" in str(error):  # it names an argument already
                    raise
                arrays = [each for each in given.values() if isinstance(each, list | np.ndarray)]
                if any(not _size(array) < LARGE for array in arrays):
                    raise_not_float(function.__name__, given, error)
                if not isinstance(error, np.linalg.LinAlgError):
                    raise
                raise type(error)(
                    f"{function.__name__} has no value: a matrix made from "
                    f"{_listed(shapes)} is singular or not positive definite ({error})."
                ) from error
            except ZeroDivisionError as error:
                raise ValueError(
                    f"{function.__name__} needs more items than {_listed(shapes)} hold."
                ) from error
            finally:
                _door.passed = False
            if finite and not _is_finite(result):
                raise_not_float(function.__name__, given)
            return result

        return checked

    return decorate


def _check_room(given: dict[str, Any]) -> None:
    """Refuse large arrays where memory for a few more of their size is missing."""
    parts = (value if isinstance(value, list) else [value] for value in given.values())
    arrays = [array for part in parts for array in part if isinstance(array, np.ndarray)]
    largest = max(arrays, key=lambda array: array.nbytes, default=None)
    if largest is not None and largest.nbytes > 1e6:  # asking takes longer than small arrays do
        check_memory(
            3 * largest.nbytes,
            what=f"Computing with {_listed(given)} of {len(largest):,} items",
            instead="Use a sample of the items.",
        )


def raise_not_float(
    what: str, arguments: Mapping[str, Any], cause: Exception | None = None
) -> NoReturn:
    """Say that a result does not fit into a float, and how large its arguments were."""
    sizes = [
        f"`{name}` of up to {_size(value):.3g}"
        for name, value in arguments.items()
        if isinstance(value, float | list | np.ndarray)
    ]
    raise ValueError(
        f"{what} does not fit into a float, given {', '.join(sizes)}. Pass finite numbers closer "
        "to 1: divide them by a common one first."
    ) from cause


def _size(value: Any) -> float:
    """Largest entry by magnitude; infinite where one is not finite."""
    parts = value if isinstance(value, list | tuple) else [value]
    sizes = [float(np.abs(np.asarray(part, dtype=np.float64)).max(initial=0.0)) for part in parts]
    return max((np.inf if np.isnan(size) else size for size in sizes), default=0.0)


def shaped(given: Mapping[str, Any], shapes: Mapping[str, str]) -> dict[str, Any]:
    """The same arguments as arrays of the shapes that `takes` describes."""
    sizes: dict[str, tuple[int, str]] = {}
    checked = {
        name: _checked(given[name], name, shape, sizes)
        for name, shape in shapes.items()
        if name in given
    }
    return {**given, **checked}


def _checked(value: Any, name: str, shape: str, sizes: dict[str, tuple[int, str]]) -> Any:
    """The argument as an array, a list of arrays or a number."""
    if shape.startswith("problem "):
        if not hasattr(value, "free_rows"):
            raise TypeError(f"`{name}` must be a QuadraticProblem, got {_kind(value)}.")
        sizes.update(
            {axis: (size, name) for axis, size in zip(shape.split()[1:], value.shape, strict=True)}
        )
        return value
    if shape == "flag":
        return check_flag(value, name)
    if shape == "count":
        return check_count(value, name)
    if shape == "at least 0":
        return check_real(value, name, least=0)
    if shape.startswith("above "):
        return check_real(value, name, above=float(shape.removeprefix("above ")))
    if shape.startswith("list of "):
        if not isinstance(value, list | tuple | np.ndarray) or len(value) == 0:
            raise ValueError(f"`{name}` must be a list of arrays, got {_kind(value)}.")
        inner = shape.removeprefix("list of ")
        return [_checked(each, f"{name}[{i}]", inner, sizes) for i, each in enumerate(value)]
    if " among " in shape:
        return _order(value, name, shape, sizes)
    array = as_numbers(value, f"`{name}`")
    _check_shape(array, name, shape.split(), sizes)
    return array


def _order(value: Any, name: str, shape: str, sizes: dict[str, tuple[int, str]]) -> Any:
    """Different indices below the size of another argument."""
    length, among = shape.split(" among ")
    order = _as_order(value, name)
    _check_shape(order, name, [length], sizes)
    most = sizes[among][0] if among in sizes else 10**8  # more would take memory to check
    if order.size and (
        order.min() < 0 or order.max() >= most or np.count_nonzero(np.bincount(order)) < order.size
    ):
        raise ValueError(
            f"`{name}` must hold different indices from 0 to {most - 1}, got {order!r:.200}."
        )
    return order


def _as_order(value: Any, name: str) -> NDArray[np.intp]:
    """An array of indices."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value.astype(np.intp, copy=False)
    numbers = as_numbers(value, f"`{name}`")
    if not (np.abs(numbers) < 2**53).all() or (numbers != np.rint(numbers)).any():
        raise ValueError(f"`{name}` must hold whole numbers, got {value!r:.200}.")
    return numbers.astype(np.intp)


def _check_shape(
    array: NDArray[Any], name: str, axes: list[str], sizes: dict[str, tuple[int, str]]
) -> None:
    """Compare a shape with letters, and note the sizes of letters that are new."""
    wanted = [axis for axis in axes if axis != "..."]
    right = array.ndim == len(wanted) or ("..." in axes and array.ndim > len(wanted))
    shape = array.shape[-len(wanted) :] if axes[0] == "..." else array.shape
    known = {}
    for axis, size in zip(wanted, shape, strict=False):
        if axis.isdigit():
            right = right and size == int(axis)
        elif axis in sizes:
            right = right and size == sizes[axis][0]
            known[axis] = sizes[axis][0]
        else:
            sizes[axis] = (size, name)
    if not right:
        listed = ", ".join(axes) + ("," if len(axes) == 1 else "")
        as_in = [
            f"{axis} = {sizes[axis][0]} as in `{sizes[axis][1]}`" for axis in dict.fromkeys(known)
        ]
        where = " with " + " and ".join(as_in) if as_in else ""
        raise ValueError(
            f"`{name}` must be an array of shape ({listed}){where}, got shape {array.shape}."
        )


def _is_finite(result: Any) -> bool:
    if isinstance(result, tuple):
        return all(_is_finite(each) for each in result)
    if isinstance(result, float | np.ndarray):
        return bool(np.isfinite(result).all())
    return True


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} of {value.dtype}"
    return (
        f"{value!r:.60}" if isinstance(value, str | bytes | int | float) else type(value).__name__
    )


def _listed(shapes: Mapping[str, Any]) -> str:
    *others, last = (f"`{name}`" for name in shapes)
    return f"{', '.join(others)} and {last}" if others else last
