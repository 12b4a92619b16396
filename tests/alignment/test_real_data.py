"""Digits as bags of points, by the protocol of the published figures."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from unshuffle import MinimumVolumePCA
from unshuffle.alignment._volume import log_volume


def bag_of(image, rng, n_points=70):
    height, width = image.shape
    share = image.ravel() / image.sum()
    row, column = np.divmod(rng.choice(share.size, n_points, p=share), width)
    return np.stack([column, height - 1 - row], axis=1) + rng.random((n_points, 2)) - 0.5


def split_bags(images, threes, nines, rng):
    """50 + 50 bags to fit and 30 + 30 held out, all on one scale."""
    fitted = np.stack([bag_of(images[i], rng) for i in [*threes[:50], *nines[:50]]])
    held_out = np.stack([bag_of(images[i], rng) for i in [*threes[50:80], *nines[50:80]]])
    middle, scale = fitted.mean(axis=(0, 1)), (fitted - fitted.mean(axis=(0, 1))).std()
    return (fitted - middle) / scale, (held_out - middle) / scale


def n_components_for(share, bags):
    vectors = bags.reshape(len(bags), -1)
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
    return int(np.searchsorted(np.cumsum(values) / values.sum(), share)) + 1


def held_out_error(found, bags):
    """Squared residuals of ten components, as a share of the spread inside the bags."""
    aligned = np.stack([bag[p] for bag, p in zip(bags, found.align(bags), strict=True)])
    residual = aligned - found.inverse_transform(found.transform(bags))
    return np.sum(residual**2) / np.sum((bags - bags.mean(axis=1, keepdims=True)) ** 2)


def ordered(found, bags):
    return np.stack([bag[p] for bag, p in zip(bags, found.permutations_, strict=True)])


@pytest.mark.slow
def test_mnist_needs_fewer_components_once_aligned(shared_data):
    with np.load(shared_data("mnist3000.npz")) as data:
        images, labels = data["images"].astype(float), data["labels"]
    found = []
    for draw in range(5):
        rng = np.random.default_rng(draw)
        fitted, held_out = split_bags(
            images, np.flatnonzero(labels == 3), np.flatnonzero(labels == 9), rng
        )
        mean = MinimumVolumePCA(10).fit(fitted)
        covariance = MinimumVolumePCA(10, "covariance").fit(fitted)
        assert np.all(np.diff(mean.objective_path_) <= 1e-9)
        assert np.all(np.diff(covariance.log_volume_path_) <= 1e-9)
        found.append(
            [
                n_components_for(0.95, fitted),
                n_components_for(0.95, ordered(mean, fitted)),
                n_components_for(0.95, ordered(covariance, fitted)),
                held_out_error(mean, held_out),
                held_out_error(covariance, held_out),
            ]
        )
    raw, mean, covariance, mean_error, covariance_error = np.mean(found, axis=0)
    assert raw > 66
    assert mean <= 44
    assert covariance <= 38
    assert mean_error <= 0.040
    assert covariance_error <= 0.040


@pytest.mark.slow
def test_small_digits_take_less_room_by_their_covariance():
    digits = load_digits()
    found = []
    for draw in range(3):
        rng = np.random.default_rng(draw)
        threes, nines = (rng.permutation(np.flatnonzero(digits.target == k)) for k in (3, 9))
        fitted, held_out = split_bags(digits.images, threes, nines, rng)
        ridge = 0.01 * fitted.var(axis=0).sum() / 99
        mean = MinimumVolumePCA(10).fit(fitted)
        covariance = MinimumVolumePCA(10, "covariance").fit(fitted)
        found.append(
            [
                held_out_error(mean, held_out),
                held_out_error(covariance, held_out),
                log_volume(ordered(mean, fitted), ridge=ridge)
                - log_volume(ordered(covariance, fitted), ridge=ridge),
            ]
        )
    mean_error, covariance_error, fall = np.mean(found, axis=0)
    assert mean_error <= 0.034
    assert covariance_error <= 0.034
    assert fall >= 4
