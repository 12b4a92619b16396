import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.images import (
    color_histogram,
    color_texture,
    lab_pixels,
    rgb_to_lab,
    visual_words,
)
from unshuffle.images._features import orientation_energy, pooled, working_lab

# Parts of the vectors of `color_texture`.
LAYOUT, HISTOGRAM, EDGES = slice(0, 48), slice(48, 264), slice(264, 408)
# CIE Lab of the sRGB corners, white point D65 (Lindbloom's calculator).
KNOWN = {
    (0, 0, 0): (0, 0, 0),
    (255, 255, 255): (100, 0, 0),
    (255, 0, 0): (53.24, 80.09, 67.20),
    (0, 255, 0): (87.73, -86.18, 83.18),
    (0, 0, 255): (32.30, 79.19, -107.86),
    (128, 128, 128): (53.59, 0, 0),
    (3, 3, 3): (0.823, 0, 0),
}


@pytest.mark.parametrize(("rgb", "lab"), KNOWN.items())
def test_known_colors_have_their_known_lab_values(rgb, lab):
    np.testing.assert_allclose(rgb_to_lab(np.array(rgb, np.uint8)), lab, atol=0.01)


def test_floats_are_shares_and_integers_are_levels():
    levels = np.random.RandomState(0).randint(0, 256, (20, 3))
    expected = rgb_to_lab(levels.astype(np.uint8))
    np.testing.assert_allclose(rgb_to_lab(levels), expected)
    np.testing.assert_allclose(rgb_to_lab(levels / 255), expected)
    np.testing.assert_allclose(rgb_to_lab((levels / 255).astype(np.float32)), expected, atol=1e-4)
    np.testing.assert_allclose(rgb_to_lab([0.5, 0.5, 0.5]), [53.39, 0, 0], atol=0.01)
    assert rgb_to_lab(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("rgb", "message"),
    [
        ([128.0, 0.0, 0.0], "from 0 to 128 of dtype float64. Integers must be from 0 to 255, fl"),
        ([0.5, 0.5, 1.5], "from 0.5 to 1.5 of dtype float64"),
        ([0.5, np.nan, 0.5], "values from nan to nan"),
        ([300, 0, 0], "from 0 to 300 of dtype int64"),
        ([-1, 0, 0], "from -1 to 0"),
        ([0.1, 0.2], r"shape \(..., 3\)"),
        (0.5, r"Got shape \(\)"),
        ([True, False, True], "got dtype bool"),
        (["1", "2", "3"], "got dtype <U1"),
        (np.ma.masked_equal([1, 2, 3], 2), "masked entries"),
    ],
)
def test_colors_that_would_have_to_be_guessed_at_are_refused(rgb, message):
    with pytest.raises(ValueError, match=message):
        rgb_to_lab(rgb)


def test_histograms_larger_than_memory_are_refused():
    picture = np.zeros((1, 4, 4, 3), np.uint8)
    with pytest.raises(MemoryError, match=r"1,000,000,000,000,000 bins .* GB; .* fewer `bins`"):
        color_histogram(picture, bins=(100_000,) * 3)
    # The product of small integers of NumPy would overflow.
    assert color_histogram(picture, bins=np.array([100, 2, 2], np.int8)).shape == (1, 400)


@pytest.mark.parametrize("bins", [8, (8, 8), (8, 8, 0), (8, 8, 2.5), (8, 8, -1), "888", None])
def test_impossible_bins_are_refused(bins):
    with pytest.raises(ValueError, match="`bins` must be"):
        color_histogram(np.zeros((1, 4, 4, 3), np.uint8), bins=bins)


def test_lab_pixels_larger_than_memory_are_refused():
    many = np.broadcast_to(np.uint8(0), (10**7, 300, 300, 3))
    with pytest.raises(MemoryError, match="10,000,000 pictures of 300 x 300 pixels"):
        lab_pixels(many)


def test_lab_agrees_with_scikit_image(peer):
    color = peer("skimage.color")
    rgb = np.random.RandomState(0).randint(0, 256, (50, 7, 3)).astype(np.uint8)
    np.testing.assert_allclose(rgb_to_lab(rgb), color.rgb2lab(rgb), atol=0.02)


def test_lab_pixels_keep_rows_of_pixels_in_order():
    images = np.zeros((40, 2, 3, 3), np.uint8)  # more than one chunk
    images[37, 0, 1] = 255, 0, 0
    features = lab_pixels(images)
    assert features.shape == (40, 18)
    np.testing.assert_allclose(features[37, 3:6], KNOWN[255, 0, 0], atol=0.01)
    np.testing.assert_allclose(np.delete(features[37], [3, 4, 5]), 0, atol=1e-12)


def test_gray_images_equal_rgb_images_of_three_equal_channels():
    gray = np.random.RandomState(0).randint(0, 256, (3, 4, 5)).astype(np.uint8)
    np.testing.assert_array_equal(lab_pixels(gray), lab_pixels(np.stack([gray] * 3, axis=-1)))


def test_histogram_of_half_black_half_white_is_two_square_roots():
    images = np.zeros((1, 2, 2, 3), np.uint8)
    images[0, 0] = 255
    features = color_histogram(images, bins=(4, 2, 2))
    # White falls in the last bin of L; a = b = 0 (up to rounding) lies on a bin edge.
    assert features.shape == (1, 16)
    by_lightness = (features**2).reshape(4, 4).sum(axis=1)
    np.testing.assert_allclose(by_lightness, [0.5, 0, 0, 0.5])
    np.testing.assert_allclose(np.sort(features[0])[-2:], np.sqrt(0.5))


def test_colors_beyond_the_range_count_in_the_outermost_bin():
    blue = np.full((1, 3, 3, 3), (0, 0, 255), np.uint8)  # b = -107.9, a = 79.2, L = 32.3
    assert color_histogram(blue, bins=(2, 3, 3))[0].argmax() == 0 * 9 + 2 * 3 + 0


@given(st.integers(0, 2**31 - 1))
def test_histograms_ignore_where_the_pixels_are_and_have_length_one(seed):
    rng = np.random.RandomState(seed)
    images = rng.randint(0, 256, (3, 4, 5, 3)).astype(np.uint8)
    shuffled = images.reshape(3, 20, 3)[:, rng.permutation(20)].reshape(images.shape)
    features = color_histogram(images)
    np.testing.assert_array_equal(features, color_histogram(shuffled))
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 3, 3, 3)), "dtype uint8"),
        (np.zeros((2, 3, 3, 4), np.uint8), "must have shape"),
        (np.zeros((0, 3, 3, 3), np.uint8), "is empty"),
        (np.zeros((3, 3), np.uint8), "must have shape"),
    ],
)
@pytest.mark.parametrize("feature", [lab_pixels, color_histogram, color_texture, visual_words])
def test_what_is_no_stack_of_pictures_is_refused(feature, images, message):
    with pytest.raises(ValueError, match=message):
        feature(images)


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


def test_one_color_has_that_color_in_every_cell_and_no_edges():
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


def test_color_and_edges_weigh_about_alike_on_photographs(shared_data):
    with np.load(shared_data("flickr320.npz")) as data:
        features = color_texture(data["images"])
    color = features[:, :264].var(axis=0).sum()
    edges = features[:, EDGES].var(axis=0).sum()
    assert 0.7 < color / edges < 1.4


def test_neighbors_show_the_same_more_often_than_by_pixels(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        images, labels = data["images"], data["labels"]
    ours = label_agreement(color_texture(images).astype(float), labels)
    assert ours > 0.31  # by chance 0.10
    assert ours > label_agreement(lab_pixels(images), labels) + 0.05


def test_single_precision_is_half_the_memory_and_the_same_colors():
    images = noise(3)
    single = lab_pixels(images, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, lab_pixels(images), atol=1e-4)
