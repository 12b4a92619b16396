"""Kernels between vectors and texts."""

from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import VECTOR_KERNELS, add, function
from tests.fuzz.values import Kind, needed

from unshuffle import kernels

for _name in ("rbf_kernel", "laplacian_kernel", "chi2_kernel", "linear_kernel"):
    _arguments = {
        "X": v.table("n", "d", positive=_name == "chi2_kernel"),
        "Y": Kind(*2 * (v.table("m", "d", positive=_name == "chi2_kernel").ordinary,)),
    }
    _arguments["Y"] = Kind(_arguments["Y"].ordinary, v.table("m", "d").hostile)
    if _name != "linear_kernel":
        _arguments["gamma"] = s.real(None, 0.5)
    function(kernels, _name, _arguments)
function(
    kernels,
    "geodesic_kernel",
    {
        "X": v.table("n", "d"),
        "n_neighbors": s.count(None, 2, 3),
        "metric": s.option("euclidean", "cosine", "correlation"),
        "gamma": s.real(None, 0.5),
    },
)
function(
    kernels,
    "local_kernel",
    {"X": v.table("n", "d"), "n_neighbors": s.count(None, 2, 3)},
)
function(
    kernels,
    "geodesic_distances",
    {
        "X": v.table("n", "d"),
        "n_neighbors": s.count(None, 2, 3),
        "metric": s.option("euclidean", "cosine", "correlation"),
    },
)
function(
    kernels,
    "gram_matrix",
    {
        "X": v.table("n", "d"),
        "kernel": s.kernel(*VECTOR_KERNELS),
        "gamma": s.real(None, 0.5),
    },
)
function(
    kernels,
    "combined_gram",
    {
        "X": v.table("n", "d"),
        "kernel": s.kernel(*VECTOR_KERNELS, several=True),
        "gamma": s.real(None, 0.5),
        "weights": s.real(None),
        "center": s.flag(),
    },
)
function(
    kernels,
    "median_gamma",
    {"distances": v.table("n", "d", positive=True)},
)
function(
    kernels,
    "nystroem_factors",
    {
        "X": v.table("n", "d"),
        "kernel": s.kernel(*VECTOR_KERNELS),
        "rank": s.count(1, 3, 100),
        "gamma": s.real(None, 0.5),
        "random_state": s.seed(),
    },
)
function(
    kernels,
    "pivoted_cholesky",
    {"X": v.gram("n"), "rank": needed(s.count(1, 3)), "tol": s.real(1e-10, 0.1)},
)
function(kernels, "spectral_power", {"K": v.gram("n"), "exponent": needed(s.real(0.5, 1, 2))})
function(
    kernels,
    "spectral_power_path",
    {
        "K": v.gram("n"),
        "exponents": Kind(lambda case, rng: [0.5, 1, 2], v.stack("n").hostile, needed=True),
    },
    words={"exponent"},
)
add(
    "kernels.SpectralPower",
    lambda K, exponent, **more: kernels.SpectralPower(K, **more)(exponent),
    {"K": v.gram("n"), "exponent": needed(s.real(0.5, 1, 2)), "centered": s.flag()},
)
for _name in ("center", "unit_norm", "zero_diagonal"):
    function(kernels, _name, {"K": v.gram("n")})
for _name in ("text_features", "text_kernel"):
    function(
        kernels,
        _name,
        {
            "documents": v.texts("n"),
            "prefix_length": s.count(1, 6),
            "min_df": s.count(None, 1),
            "max_df": s.real(None, 0.9, 1.0),
        },
    )
