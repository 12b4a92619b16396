from importlib.util import find_spec

import pytest

if find_spec("matplotlib") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
