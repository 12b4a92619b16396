import io
import os

import numpy as np
import pytest
from PIL import Image
from sklearn.decomposition import PCA

from unshuffle.encoders import Encoder
from unshuffle.images import (
    color_texture,
    describe,
    lab_pixels,
    read_features,
    read_folder,
    visual_words,
)
from unshuffle.images._visual_words import patch_descriptors
from unshuffle.kernels import chi2_kernel, gram_matrix

IMAGES = np.random.RandomState(0).randint(0, 256, (5, 24, 24, 3)).astype(np.uint8)


class Means(Encoder):
    """Mean colors, and the shapes of the batches it was given."""

    def __init__(self, key="means"):
        super().__init__("means", key=key, side=16)
        self.seen = []

    def _encode_batch(self, items):
        self.seen.append(items.shape)
        return items.mean(axis=(1, 2))


@pytest.mark.parametrize("features", ["color", "texture", "words"])
def test_every_feature_goes_with_its_kernel(features):
    vectors, kernel = describe(IMAGES, features, random_state=0)
    assert len(vectors) == 5
    assert vectors.dtype.kind == "f"
    K = gram_matrix(vectors, kernel)
    assert K.shape == (5, 5)
    assert np.isfinite(K).all()


def test_features_are_those_of_the_functions_named():
    np.testing.assert_allclose(describe(IMAGES)[0], lab_pixels(IMAGES), atol=1e-4)
    np.testing.assert_array_equal(describe(IMAGES, "texture")[0], color_texture(IMAGES))
    words, kernel = describe(IMAGES, "words", random_state=3, n_jobs=2)
    np.testing.assert_array_equal(words, visual_words(IMAGES, random_state=3))
    assert kernel == "chi2"


def test_unknown_features_are_refused():
    for features in ("shape", "color+shape", ["color", "shape"]):
        with pytest.raises(ValueError, match=r"`features` shape is not understood\. Give color, "):
            describe(IMAGES, features)
    with pytest.raises(ValueError, match="`features` holds color 2 times"):
        describe(IMAGES, "color+color")
    with pytest.raises(ValueError, match=r"`features` holds 3\. Give color"):
        describe(IMAGES, 3)
    with pytest.raises(ValueError, match="`features` holds the class PCA"):
        describe(IMAGES, ["color", PCA])
    with pytest.raises(ValueError, match="`features` is empty"):
        describe(IMAGES, [])


def test_several_kinds_weigh_alike():
    vectors, kernel = describe(IMAGES, "color+texture+words", random_state=0)
    assert kernel == "linear"
    widths = [
        describe(IMAGES, each, random_state=0)[0].shape[1]
        for each in ("color", "texture", "words")
    ]
    parts = np.split(vectors, np.cumsum(widths)[:-1], axis=1)
    for part in parts:
        np.testing.assert_allclose(part.mean(axis=0), 0.0, atol=1e-6)
        assert np.linalg.norm(part @ part.T) == pytest.approx(5.0, rel=1e-5)
    color = lab_pixels(IMAGES)
    color -= color.mean(axis=0)
    np.testing.assert_allclose(
        parts[0], color / np.sqrt(np.linalg.norm(color @ color.T) / 5), atol=1e-5
    )


def test_progress_of_several_kinds_reaches_the_end():
    steps = []
    describe(
        IMAGES,
        ["color", "words", Means()],
        random_state=0,
        on_progress=lambda *step: steps.append(step),
    )
    assert steps == sorted(steps)
    assert steps[-1] == (3000, 3000)


def test_functions_and_transformers_of_the_user_describe():
    def brightness(images):
        return images.reshape(len(images), -1).mean(axis=1, keepdims=True)

    np.testing.assert_array_equal(describe(IMAGES, brightness)[0], brightness(IMAGES))
    assert describe(IMAGES, ["color", brightness])[0].shape[1] == IMAGES[0].size + 1
    rows = IMAGES.reshape(5, -1)
    fresh, fitted = PCA(2), PCA(2).fit(rows[:3])
    np.testing.assert_allclose(describe(IMAGES, fresh)[0], PCA(2).fit_transform(rows), atol=1e-6)
    np.testing.assert_allclose(describe(IMAGES, fitted)[0], fitted.transform(rows))
    for wrong, words in (
        (lambda images: images, "of shape"),
        (lambda images: np.zeros((2, 3)), "of 5 pictures"),
        (lambda images: np.full((5, 2), "a"), "must return numbers"),
        (lambda images: np.full((5, 2), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            describe(IMAGES, wrong)


def test_vectors_of_an_encoder_have_length_1():
    vectors, kernel = describe(IMAGES, Means())
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    means = IMAGES.mean(axis=(1, 2))
    np.testing.assert_allclose(vectors, means / np.linalg.norm(means, axis=1)[:, None], rtol=1e-5)
    assert kernel == "linear"


def test_a_file_of_vectors_may_be_one_of_several(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a+b.npy", np.arange(10.0).reshape(5, 2))
    assert describe(IMAGES, "a+b.npy")[0].shape == (5, 2)
    np.save("own.npy", np.arange(10.0).reshape(5, 2))
    assert describe(IMAGES, "own.npy+texture")[0].shape[1] == 2 + color_texture(IMAGES).shape[1]
    with pytest.raises(ValueError, match=r"5 row\(s\), but there are 4 item"):
        describe(IMAGES[:4], "own.npy")


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos").mkdir()
    rng = np.random.RandomState(0)
    for i in range(5):
        pixels = rng.randint(0, 256, (20, 30, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path / "photos"


def test_files_are_encoded_once_at_the_size_of_the_encoder(photos, tmp_path):
    encoder, kept = Means(), tmp_path / "kept"
    collection = read_folder(photos, size=4, fit="crop")
    first, _ = describe(collection, encoder, cache=kept, n_jobs=2)
    assert encoder.seen == [(5, 16, 16, 3)]
    again, _ = describe(collection, encoder, cache=kept)
    assert len(encoder.seen) == 1
    np.testing.assert_array_equal(first, again)
    Image.new("RGB", (30, 20), "red").save(photos / "2.png")
    steps = []
    changed, _ = describe(
        collection, encoder, cache=kept, on_progress=lambda *step: steps.append(step)
    )
    assert encoder.seen[1:] == [(1, 16, 16, 3)]
    assert steps == [(5, 5)]
    np.testing.assert_array_equal(changed[[0, 1, 3, 4]], first[[0, 1, 3, 4]])
    np.testing.assert_allclose(changed[2], [1, 0, 0])
    other = Means(key="other")
    describe(collection, other, cache=kept)
    assert other.seen == [(5, 16, 16, 3)]
    whole = read_folder(photos, size=4, fit="stretch")
    describe(whole, encoder, cache=kept)
    assert encoder.seen[-1] == (5, 16, 16, 3), "cut and whole pictures differ"


def test_damaged_vectors_in_the_cache_are_made_again(photos, tmp_path):
    encoder, kept = Means(), tmp_path / "kept"
    collection = read_folder(photos, size=4)
    first, _ = describe(collection, encoder, cache=kept)
    files = sorted(kept.glob("*.vector"))
    assert len(files) == 5
    files[0].write_bytes(files[0].read_bytes()[:-3])
    files[1].write_bytes(b"")
    content = bytearray(files[2].read_bytes())
    content[25] ^= 1
    files[2].write_bytes(content)
    again, _ = describe(collection, encoder, cache=kept)
    assert encoder.seen[1:] == [(3, 16, 16, 3)]
    np.testing.assert_array_equal(first, again)


def test_a_file_that_is_gone_is_named(photos):
    collection = read_folder(photos, size=4)
    (photos / "3.png").unlink()
    with pytest.raises(ValueError, match=r"3\.png cannot be read any more"):
        describe(collection, Means())


def test_a_cache_that_cannot_be_written_is_a_warning(photos, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="Vectors cannot be kept in"):
        vectors, _ = describe(read_folder(photos, size=4), Means(), cache=tmp_path / "file")
    assert vectors.shape == (5, 3)


def test_encoders_of_texts_do_not_describe_pictures(monkeypatch):
    encoder = Means()
    encoder.items, encoder.name = "texts", "sentence-transformers:tiny"
    monkeypatch.setattr("unshuffle.images._describe.load_encoder", lambda name, device: encoder)
    with pytest.raises(ValueError, match="sentence-transformers:tiny describes texts"):
        describe(IMAGES, "sentence-transformers:tiny")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
def test_features_of_the_user_are_read_as_they_are(tmp_path, dtype):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    np.save(tmp_path / "own.npy", values)
    features = read_features(tmp_path / "own.npy", 4)
    assert features.dtype == np.float64
    assert not isinstance(features, np.memmap)
    np.testing.assert_array_equal(features, values)


def test_a_wrong_number_of_rows_names_both_numbers(tmp_path):
    np.save(tmp_path / "own.npy", np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"4 row\(s\), but there are 5 item\(s\)\. Give one"):
        read_features(tmp_path / "own.npy", 5)
    with pytest.raises(ValueError, match=r"names, from a\.jpg to e\.jpg\."):
        read_features(tmp_path / "own.npy", 5, names=["a.jpg", "b", "c", "d", "e.jpg"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(4), r"shape \(4,\)"),
        (np.zeros((4, 2, 2)), r"shape \(4, 2, 2\)"),
        (np.zeros((4, 0)), r"shape \(4, 0\)"),
        (np.array([["a"]] * 4), "Give real numbers"),
        (np.zeros((4, 2), complex), "Give real numbers"),
        (np.array([[0.0], [1.0], [np.nan], [2.0]]), r"contains NaN .* the first is row 2"),
        (np.array([[0.0], [1.0], [np.inf], [2.0]]), "contains infinity"),
    ],
)
def test_arrays_that_are_no_features_are_refused(tmp_path, values, message):
    np.save(tmp_path / "own.npy", values)
    with pytest.raises(ValueError, match=message):
        read_features(tmp_path / "own.npy", 4)


class Exploit:
    def __reduce__(self):
        return os.mkdir, ("exploited",)


def test_pickled_objects_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("own.npy", np.array([[Exploit()]] * 4, dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read as an array of numbers"):
        read_features("own.npy", 4)
    assert not os.path.exists("exploited")


def test_files_that_are_no_arrays_are_refused(tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    whole = io.BytesIO()
    np.save(whole, np.zeros((4, 100)))
    (tmp_path / "cut.npy").write_bytes(whole.getvalue()[:-50])
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        huge, {"descr": "<f8", "fortran_order": False, "shape": (4, 10**15)}
    )
    (tmp_path / "huge.npy").write_bytes(huge.getvalue())
    with pytest.raises(ValueError, match=r"There is no file .*missing\.npy"):
        read_features(tmp_path / "missing.npy", 4)
    for name in ("text.npy", "empty.npy", "cut.npy", "huge.npy"):
        with pytest.raises(ValueError, match=f"{name} cannot be read as an array of numbers"):
            read_features(tmp_path / name, 4)
    np.savez(tmp_path / "several.npz", a=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="holds several arrays"):
        read_features(tmp_path / "several.npz", 4)


def noise(n, height=32, width=32, seed=0):
    return np.random.RandomState(seed).randint(0, 256, (n, height, width, 3)).astype(np.uint8)


def textures(n_each, seed=0):
    """Stripes from top to bottom, stripes from left to right, and checks, shifted at random."""
    rng = np.random.RandomState(seed)
    images, labels = [], []
    for label in range(3):
        for _ in range(n_each):
            rows, columns = (np.arange(32) + rng.randint(8)) // 4, (np.arange(32) + 3) // 4
            down, across = np.broadcast_to(rows[:, None], (32, 32)), np.tile(columns, (32, 1))
            pattern = (down, across, down + across)[label] % 2
            gray = 60 + 120 * pattern + rng.randint(-10, 11, (32, 32))
            images.append(np.repeat(gray[..., None], 3, axis=-1))
            labels.append(label)
    return np.array(images, np.uint8), np.array(labels)


def nearest(K):
    K = K.copy()
    np.fill_diagonal(K, -np.inf)
    return K.argmax(axis=1)


def test_textures_are_told_apart_wherever_they_begin():
    images, labels = textures(10)
    counts = visual_words(images, n_words=20, random_state=0)
    assert counts.shape == (30, 21)
    assert (labels[nearest(chi2_kernel(counts))] == labels).all()


def test_counts_are_whole_never_negative_and_as_many_for_each_picture():
    counts = visual_words(noise(5), n_words=30, random_state=0)
    assert (counts >= 0).all()
    assert (counts == np.rint(counts)).all()
    # Patches of 12 and of 20 pixels, every 2 pixels of 32.
    assert (counts.sum(axis=1) == 11**2 + 7**2).all()


def test_pictures_without_structure_have_a_word_of_their_own():
    images = noise(6)
    images[3] = 120
    counts = visual_words(images, n_words=10, random_state=0)
    assert counts[3, -1] == counts[3].sum()
    assert (np.delete(counts, 3, axis=0)[:, -1] == 0).all()


def test_pictures_of_one_color_alone_are_counted_too():
    counts = visual_words(np.full((3, 32, 32, 3), 7, np.uint8), n_words=10, random_state=0)
    assert (counts[:, :-1] == 0).all()
    assert (counts[:, -1] == 170).all()


def test_fewer_different_patches_than_words_leave_words_unused():
    images, _ = textures(1)
    same = np.repeat(images[:1], 4, axis=0)
    counts = visual_words(same, n_words=500, random_state=0)
    assert counts.shape == (4, 501)
    assert (counts == counts[0]).all()
    assert 1 < np.count_nonzero(counts[0]) <= 170


@pytest.mark.slow
def test_result_depends_on_the_seed_and_on_nothing_else():
    images = noise(70)  # more than two chunks
    calls = []
    one = visual_words(images, n_words=25, random_state=0)
    two = visual_words(
        images, n_words=25, random_state=0, n_jobs=2, on_progress=lambda *done: calls.append(done)
    )
    np.testing.assert_array_equal(one, two)
    assert calls == [(i, 6) for i in range(1, 7)]
    assert (one != visual_words(images, n_words=25, random_state=1)).any()


def test_descriptors_have_length_one_and_ignore_brightness_and_contrast():
    images = noise(3) // 2
    one, flat = patch_descriptors(images)
    assert one.shape == (3, 170, 128)
    assert not flat.any()
    np.testing.assert_allclose(np.linalg.norm(one, axis=-1), 1, rtol=1e-5)
    gray = np.repeat(images[..., :1], 3, axis=-1)
    brighter, _ = patch_descriptors(gray // 2 + 100)
    plain, _ = patch_descriptors(gray)
    assert np.linalg.norm(brighter - plain, axis=-1).mean() < 0.2


@pytest.mark.parametrize("shape", [(8, 8), (3, 50), (60, 20), (150, 100)])
def test_pictures_of_any_size_have_patches(shape):
    counts = visual_words(noise(3, *shape), n_words=5, random_state=0)
    assert (counts.sum(axis=1) > 0).all()


@pytest.mark.parametrize("n_words", [0, -1, 2.5, 10**6])
def test_impossible_numbers_of_words_are_refused(n_words):
    with pytest.raises(ValueError, match="n_words"):
        visual_words(noise(2), n_words=n_words)


def test_neighbors_show_the_same_more_often_than_by_chance(shared_data):
    with np.load(shared_data("cifar10_1000.npz")) as data:
        images, labels = data["images"][:500], data["labels"][:500]
    counts = visual_words(images, random_state=0)
    assert np.mean(labels[nearest(chi2_kernel(counts))] == labels) > 0.22  # by chance 0.10


@pytest.fixture
def many(monkeypatch):
    """Sixty pictures that count as many, of which a few components are kept."""
    monkeypatch.setattr("unshuffle.images._describe.MANY", 50)
    monkeypatch.setattr("unshuffle.images._components.N_COMPONENTS", 20)
    monkeypatch.setattr("unshuffle.images._components._BLOCK", 16)
    rng = np.random.RandomState(0)
    coarse = rng.randint(0, 256, (60, 2, 2, 3)).astype(np.uint8)
    return np.stack([np.asarray(Image.fromarray(each).resize((8, 8))) for each in coarse])


@pytest.mark.slow
@pytest.mark.parametrize("features", ["color", "texture", "color+texture+words", [Means()]])
def test_many_pictures_are_described_by_their_leading_components(many, features):
    vectors, kernel = describe(many, features, random_state=0)
    assert vectors.dtype == np.float32
    assert vectors.shape == (60, 3 if isinstance(features, list) else 20)
    assert kernel == "linear"
    for n_jobs in (2, 3):
        again, _ = describe(many, features, random_state=0, n_jobs=n_jobs)
        np.testing.assert_array_equal(again, vectors)


def test_components_keep_the_distances_of_pictures_that_vary_in_few_ways(many):
    vectors, _ = describe(many)
    assert vectors.shape == (60, 20)
    whole = lab_pixels(many)
    expected = np.linalg.norm(whole[:, None] - whole[None], axis=2)
    found = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=1.0)
    # Uncorrelated, the longest first.
    spread = np.cov(vectors.T)
    assert np.abs(spread - np.diag(np.diag(spread))).max() < 1e-3 * spread.max()
    assert (np.diff(np.diag(spread)) <= 1e-3 * spread.max()).all()


@pytest.mark.slow
def test_as_many_pictures_as_that_are_described_by_all_numbers(many):
    np.testing.assert_array_equal(describe(many[:50])[0], lab_pixels(many[:50], dtype=np.float32))
    assert describe(many[:50], "words", random_state=0)[1] == "chi2"


@pytest.mark.slow
def test_words_of_many_pictures_are_roots_of_shares(many):
    roots, kernel = describe(many, "words", random_state=0)
    counts = visual_words(many, random_state=0)
    np.testing.assert_allclose(roots**2 * counts.sum(axis=1, keepdims=True), counts, atol=1e-4)
    assert kernel == "linear"


def test_many_equal_pictures_have_equal_vectors(many):
    vectors, _ = describe(np.repeat(many[:1], 60, axis=0))
    assert np.isfinite(vectors).all()
    assert np.ptp(vectors, axis=0).max() < 1e-3


def test_own_vectors_keep_all_their_columns(many):
    own = describe(many, lambda images: images.reshape(len(images), -1) / 255)[0]
    np.testing.assert_array_equal(own, many.reshape(60, -1) / 255)
