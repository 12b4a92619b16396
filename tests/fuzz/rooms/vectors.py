"""Kernels between vectors and texts."""

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
        _arguments["gamma"] = v.real(None, 0.5)
    function(kernels, _name, _arguments)
function(
    kernels,
    "geodesic_kernel",
    {
        "X": v.table("n", "d"),
        "n_neighbors": v.count(None, 2, 3),
        "metric": v.option("euclidean", "cosine", "correlation"),
        "gamma": v.real(None, 0.5),
    },
)
function(
    kernels,
    "geodesic_distances",
    {
        "X": v.table("n", "d"),
        "n_neighbors": v.count(None, 2, 3),
        "metric": v.option("euclidean", "cosine", "correlation"),
    },
)
function(
    kernels,
    "gram_matrix",
    {
        "X": v.table("n", "d"),
        "kernel": v.kernel(*VECTOR_KERNELS),
        "gamma": v.real(None, 0.5),
    },
)
function(
    kernels,
    "combined_gram",
    {
        "X": v.table("n", "d"),
        "kernel": v.kernel(*VECTOR_KERNELS, several=True),
        "gamma": v.real(None, 0.5),
        "weights": v.real(None),
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
        "kernel": v.kernel(*VECTOR_KERNELS),
        "rank": v.count(1, 3, 100),
        "gamma": v.real(None, 0.5),
        "random_state": v.seed(),
    },
)
function(
    kernels,
    "pivoted_cholesky",
    {"X": v.gram("n"), "rank": needed(v.count(1, 3)), "tol": v.real(1e-10, 0.1)},
)
function(kernels, "spectral_power", {"K": v.gram("n"), "exponent": needed(v.real(0.5, 1, 2))})
function(
    kernels,
    "spectral_power_path",
    {
        "K": v.gram("n"),
        "exponents": Kind(lambda case, rng: [0.5, 1, 2], v.stack("n").hostile, needed=True),
    },
)
add(
    "kernels.SpectralPower",
    lambda K, exponent, **more: kernels.SpectralPower(K, **more)(exponent),
    {"K": v.gram("n"), "exponent": needed(v.real(0.5, 1, 2)), "centered": v.flag()},
)
for _name in ("center", "unit_norm", "zero_diagonal"):
    function(kernels, _name, {"K": v.gram("n")})
for _name in ("text_features", "text_kernel"):
    function(
        kernels,
        _name,
        {
            "documents": v.texts("n"),
            "prefix_length": v.count(1, 6),
            "min_df": v.count(None, 1),
            "max_df": v.real(None, 0.9, 1.0),
        },
    )
