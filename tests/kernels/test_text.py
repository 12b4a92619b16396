import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.kernels import text_features, text_kernel
from unshuffle.kernels._text import split_words

WORDS = ["river", "mountain", "parliament", "budget", "fishing", "energy", "vote"]
collections = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=2, max_size=25
)


def test_kernel_agrees_with_the_formula_by_hand():
    # Both words of each text count once; idf = log((1 + n) / (1 + df)) + 1.
    K = text_kernel(["river vote", "river budget"])
    shared, alone = np.log(3 / 3) + 1, np.log(3 / 2) + 1
    assert K[0, 1] == pytest.approx(shared**2 / (shared**2 + alone**2))


def test_repeated_words_count_by_their_logarithm():
    features = text_features(["river river river vote", "river", "vote"]).toarray()[0]
    assert features[0] / features[1] == pytest.approx(1 + np.log(3))


def test_words_are_lower_case_beginnings():
    assert split_words("The PARLIAMENTARY budgets, 2009!", 6) == [
        "the",
        "parlia",
        "budget",
        "2009",
    ]
    assert split_words("a b", 6) == []


def test_accents_may_be_typed_either_way():
    assert split_words("caf\u00e9", 6) == split_words("cafe\u0301", 6)


def test_words_keep_their_vowel_signs():
    assert split_words("हिन्दी भाषा", 6) == ["हिन्दी", "भाषा"]


def test_scripts_without_spaces_are_cut_into_pairs():
    assert split_words("図書館", 6) == ["図書", "書館"]
    assert text_kernel(["図書館へ行く", "図書館で読む", "魚を食べる"])[0, 1] > 0


def test_large_collections_drop_rare_and_common_words():
    documents = [f"common word{i % 6} unique{chr(97 + i)}" for i in range(12)]
    documents = [d.replace("word", "w") for d in documents]
    assert text_features(documents).shape == (12, 6)
    assert text_features(documents, min_df=1, max_df=1.0, prefix_length=9).shape == (12, 19)


def test_a_document_that_would_lose_all_words_keeps_them():
    documents = ["river vote"] * 6 + ["budget energy"] * 6 + ["solitary"]
    features = text_features(documents)
    np.testing.assert_allclose(features.multiply(features).sum(axis=1), 1)
    assert features.shape[1] == 5


def test_an_empty_document_resembles_nothing():
    K = text_kernel(["river vote", "", "river budget"])
    assert (K[1] == 0).all()
    assert K[0, 2] > 0


@given(collections, st.integers(0, 99))
def test_reordering_documents_reorders_the_kernel(documents, seed):
    order = np.random.default_rng(seed).permutation(len(documents))
    K = text_kernel(documents)
    assert np.array_equal(K, K.T)
    assert K.min() >= 0
    np.testing.assert_allclose(np.diag(K), 1)
    shuffled = text_kernel([documents[i] for i in order])
    np.testing.assert_allclose(shuffled, K[np.ix_(order, order)], atol=1e-12)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("one string", "X is one string"),
        ([], "X is empty"),
        (["one"], "at least two items"),
        (["one", 2], "item 1 is a int"),
        ([[1.0], [2.0]], "item 0 is a list"),
        (["", "!"], "hold no word"),
    ],
)
def test_bad_documents_are_refused(documents, message):
    with pytest.raises(ValueError, match=message):
        text_kernel(documents, name="X")


@pytest.mark.parametrize(
    "options",
    [{"prefix_length": 0}, {"min_df": 0}, {"min_df": 1.5}, {"max_df": 0}, {"max_df": 1.1}],
)
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        text_kernel(["one two", "two three"], **options)


@pytest.mark.parametrize("length", [None, 800])
def test_translations_have_similar_kernels(shared_data, length):
    with gzip.open(shared_data("europarl7.json.gz")) as file:
        texts = json.load(file)
    off_diagonal = ~np.eye(300, dtype=bool)
    english, french = (
        text_kernel([text[:length] for text in texts[language]])[off_diagonal]
        for language in ("en", "fr")
    )
    assert np.corrcoef(english, french)[0, 1] > 0.6
