"""Right pairs on real data, the truth always shuffled first."""

import gzip
import json
import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from unshuffle import KernelizedSorting
from unshuffle.images import color_histogram, lab_pixels
from unshuffle.matching import DoubtWarning
from unshuffle.metrics import foscttm

TWO_KERNELS = ["rbf", "rbf"]


def shuffled(n_items, seed):
    """An order, and where each item went."""
    order = np.random.default_rng(seed).permutation(n_items)
    return order, np.argsort(order)


def halves(images, features):
    """Features of the left and of the right halves of pictures."""
    middle = images.shape[2] // 2
    return [
        [make(np.ascontiguousarray(half)) for make in features]
        for half in (images[:, :, :middle], images[:, :, middle:])
    ]


@pytest.fixture(scope="module")
def flickr(shared_data):
    with np.load(shared_data("flickr320.npz")) as data:
        return data["images"]


@pytest.fixture(scope="module")
def pixels(flickr):
    (left,), (right,) = halves(flickr, [lab_pixels])
    order, truth = shuffled(320, 0)
    return left, right[order], truth


@pytest.fixture(scope="module")
def by_pixels(pixels):
    """Fit of the paper's kernel; a warning would be an error."""
    X, y, _ = pixels
    return KernelizedSorting().fit(X, y)


@pytest.mark.slow
def test_halves_of_photos_by_pixels_without_a_warning(pixels, by_pixels):
    assert (by_pixels.permutation_ == pixels[2]).sum() >= 272
    assert by_pixels.converged_


@pytest.mark.slow
def test_confidence_tells_right_halves_from_wrong_ones(pixels, by_pixels):
    right = by_pixels.permutation_ == pixels[2]
    assert roc_auc_score(right, by_pixels.confidence_) >= 0.8


@pytest.mark.slow
def test_known_pairs_are_kept_and_cost_no_right_ones(pixels, by_pixels):
    X, y, truth = pixels
    known = np.random.default_rng(1).choice(320, size=10, replace=False)
    frozen = np.column_stack([known, truth[known]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = KernelizedSorting().fit(X, y, frozen=frozen)
    assert np.array_equal(sorting.permutation_[known], truth[known])
    assert (sorting.permutation_ == truth).sum() >= (by_pixels.permutation_ == truth).sum()


@pytest.mark.slow
def test_halves_of_photos_by_the_classic_method(pixels):
    X, y, truth = pixels
    with pytest.warns(DoubtWarning, match="alike"):  # less than half of the pairs are right
        sorting = KernelizedSorting(method="classic").fit(X, y)
    assert (sorting.permutation_ == truth).sum() >= 140  # the paper's count


@pytest.mark.slow
def test_halves_of_photos_by_pixels_and_colors(flickr):
    left, right = halves(flickr, [lab_pixels, color_histogram])
    order, truth = shuffled(320, 0)
    sorting = KernelizedSorting(TWO_KERNELS).fit(left, [view[order] for view in right])
    assert (sorting.permutation_ == truth).sum() >= 307


@pytest.mark.slow
@pytest.mark.parametrize(("n_right", "least"), [(300, 275), (240, 205), (160, 128)])
def test_all_left_halves_against_some_right_ones(flickr, n_right, least):
    left, right = halves(flickr, [lab_pixels, color_histogram])
    chosen = np.random.default_rng(0).permutation(320)[:n_right]
    truth = np.full(320, -1)
    truth[chosen] = np.arange(n_right)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        sorting = KernelizedSorting(TWO_KERNELS).fit(left, [view[chosen] for view in right])
    assert len(sorting.pairs_) == n_right
    assert (sorting.permutation_[chosen] == truth[chosen]).sum() >= least


@pytest.mark.slow
def test_halves_of_small_pictures(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        left, right = halves(data["images"][:400], [lab_pixels, color_histogram])
    order, truth = shuffled(400, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        sorting = KernelizedSorting(TWO_KERNELS).fit(left, [view[order] for view in right])
    assert (sorting.permutation_ == truth).sum() >= 226


@pytest.fixture(scope="module")
def parliament(shared_data):
    with gzip.open(shared_data("europarl7.json.gz"), "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "es", "fr", "it", "nl", "pt"])
def test_debates_in_two_languages_without_a_warning(parliament, language):
    order, truth = shuffled(300, 0)
    documents = parliament[language]
    sorting = KernelizedSorting("text").fit(parliament["en"], [documents[i] for i in order])
    assert (sorting.permutation_ == truth).sum() >= 297


@pytest.fixture(scope="module")
def help_pages(shared_data):
    with gzip.open(shared_data("lohelp9.json.gz"), "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["da", "nl", "fr", "de", "it", "pt", "es", "sv"])
def test_help_pages_in_two_languages(help_pages, language):
    order, truth = shuffled(300, 0)
    documents = help_pages[language]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        sorting = KernelizedSorting("text").fit(help_pages["en"], [documents[i] for i in order])
    assert (sorting.permutation_ == truth).sum() >= 285


@pytest.mark.slow
def test_two_measurements_of_the_same_cells(shared_data):
    with np.load(shared_data("snareseq.npz")) as data:
        rna = normalize(data["rna"].astype(float))
        atac = normalize(data["atac"].astype(float))
    order, truth = shuffled(len(atac), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        sorting = KernelizedSorting().fit(rna, atac[order])
    smoothed = sorting.soft_matches() @ atac[order]
    assert foscttm(smoothed, atac[order][truth]) <= 0.155
