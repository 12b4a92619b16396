import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unshuffle.images import color_texture, lab_pixels
from unshuffle.images._gradients import orientation_energy, pooled, working_lab

LAYOUT, HISTOGRAM, EDGES = slice(0, 48), slice(48, 264), slice(264, 408)


def noise(n, height=32, width=32, seed=0):
    return np.random.RandomState(seed).randint(0, 256, (n, height, width, 3)).astype(np.uint8)


def stripes(axis, period=8, side=32, brightness=255):
    wave = np.arange(side) // (period // 2) % 2 * brightness
    image = np.broadcast_to(wave[:, None] if axis == 0 else wave, (side, side))
    return np.repeat(image[..., None], 3, axis=-1).astype(np.uint8)


def label_agreement(features, labels):
    """Share of items whose nearest other item has their label."""
    norms = (features**2).sum(axis=1)
    D = norms[:, None] + norms - 2 * features @ features.T
    np.fill_diagonal(D, np.inf)
    return np.mean(labels[D.argmin(axis=1)] == labels)


def test_a_slope_has_all_its_energy_in_its_own_direction():
    down = np.broadcast_to(3.0 * np.arange(10, dtype=np.float32)[:, None], (1, 10, 10))
    energy = orientation_energy(down, 4, signed=False)
    # From top to bottom is 90 degrees, the third of 0, 45, 90 and 135.
    np.testing.assert_allclose(energy[0, 5, 5], [0, 0, 3, 0], atol=1e-5)
    signed = orientation_energy(-down, 8, signed=True)
    np.testing.assert_allclose(signed[0, 5, 5], np.eye(8)[6] * 3, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1), st.booleans())
def test_directions_share_out_the_length_of_the_gradient(seed, signed):
    lightness = np.random.RandomState(seed).rand(2, 6, 7).astype(np.float32) * 100
    energy = orientation_energy(lightness, 5, signed=signed)
    assert (energy >= 0).all()
    rows, columns = (np.gradient(lightness[:, 1:-1, 1:-1], axis=a)[:, 1:-1, 1:-1] for a in (1, 2))
    np.testing.assert_allclose(
        energy.sum(axis=-1)[:, 2:-2, 2:-2], np.hypot(rows, columns), rtol=1e-4, atol=1e-4
    )


def test_pooling_takes_means_and_shares_out_cut_pixels():
    maps = np.arange(3, dtype=np.float32).reshape(1, 1, 3, 1)
    np.testing.assert_allclose(pooled(maps, 1, 3).ravel(), [0, 1, 2])
    np.testing.assert_allclose(pooled(maps, 1, 2).ravel(), [(0 + 0.5) / 1.5, (0.5 + 2) / 1.5])
    np.testing.assert_allclose(pooled(maps, 1, 6).ravel(), [0, 0, 1, 1, 2, 2])
    constant = np.full((2, 7, 5, 3), 4.0, np.float32)
    np.testing.assert_allclose(pooled(constant, 3, 2, overlap=True), 4.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((32, 40), (32, 40)), ((80, 120), (40, 60)), ((4, 8), (20, 40)), ((1, 3000), (20, 160))],
)
def test_pictures_are_looked_at_within_bounds_of_size(shape, expected):
    assert working_lab(noise(2, *shape)).shape == (2, *expected, 3)


def test_one_colour_has_that_colour_in_every_cell_and_no_edges():
    red = np.full((1, 32, 32, 3), (255, 0, 0), np.uint8)
    features = color_texture(red)
    assert features.shape == (1, 408)
    assert features.dtype == np.float32
    cells = features[0, LAYOUT].reshape(16, 3)
    np.testing.assert_allclose(
        cells * (53.24 / cells[0, 0]), [(53.24, 80.09, 67.2)] * 16, atol=0.05
    )
    assert np.count_nonzero(features[0, HISTOGRAM]) == 1
    np.testing.assert_allclose(features[0, EDGES], 0, atol=1e-3)


def test_stripes_of_one_direction_are_alike_whatever_their_place():
    pictures = np.stack([stripes(0), np.roll(stripes(0), 2, axis=0), stripes(1)])
    edges = color_texture(pictures)[:, EDGES]
    assert np.linalg.norm(edges[0] - edges[1]) < 0.3 * np.linalg.norm(edges[0] - edges[2])
    pixels = lab_pixels(pictures)
    assert np.linalg.norm(pixels[0] - pixels[1]) > 0.9 * np.linalg.norm(pixels[0] - pixels[2])


def test_edges_of_a_darker_picture_are_nearly_those_of_the_bright_one():
    bright, dark, other = color_texture(
        np.stack([stripes(0), stripes(0, brightness=150), stripes(1)])
    )[:, EDGES]
    assert np.linalg.norm(bright - dark) < 0.2 * np.linalg.norm(bright - other)


def test_a_row_depends_on_its_own_picture_alone():
    images = noise(40)  # more than one chunk
    whole = color_texture(images)
    np.testing.assert_allclose(whole[35:36], color_texture(images[35:36]), atol=1e-6)
    order = np.random.RandomState(1).permutation(40)
    np.testing.assert_allclose(whole[order], color_texture(images[order]), atol=1e-6)


def test_the_size_that_pictures_were_read_at_hardly_matters():
    small = noise(6, 40, 40)
    large = small.repeat(3, axis=1).repeat(3, axis=2)
    np.testing.assert_allclose(color_texture(small), color_texture(large), atol=1e-4)


def test_colour_and_edges_weigh_about_alike_on_photographs(shared_data):
    with np.load(shared_data("flickr320.npz")) as data:
        features = color_texture(data["images"])
    color = features[:, :264].var(axis=0).sum()
    edges = features[:, EDGES].var(axis=0).sum()
    assert 0.7 < color / edges < 1.4


def test_neighbours_show_the_same_more_often_than_by_pixels(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        images, labels = data["images"], data["labels"]
    ours = label_agreement(color_texture(images).astype(float), labels)
    assert ours > 0.31  # by chance 0.10
    assert ours > label_agreement(lab_pixels(images), labels) + 0.05


def test_single_precision_is_half_the_memory_and_the_same_colours():
    images = noise(3)
    single = lab_pixels(images, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, lab_pixels(images), atol=1e-4)
