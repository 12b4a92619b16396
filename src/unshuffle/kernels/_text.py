"""Kernel between documents in one language, whichever it is."""

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from unshuffle._core.arrays import check_documents, table_shape
from unshuffle._core.distances import inner_products
from unshuffle._core.parameters import check_count, check_kernel_memory, check_real

# \w lacks the vowel signs of many scripts, which would split their words.
_WORD = re.compile(r"[\w\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff]+")
# Scripts written without spaces: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_FEW_DOCUMENTS = 10


def text_features(
    documents: Any,
    *,
    prefix_length: int = 6,
    min_df: int | None = None,
    max_df: float | None = None,
    name: str = "documents",
) -> sparse.csr_matrix:
    """Sparse unit vector for each document; documents that share rare words are close.

    Parameters
    ----------
    documents : sequence of str
    prefix_length : int, default=6
        Number of leading letters by which words are compared, a stemmer for any language. A
        larger value distinguishes the endings of words; a smaller one merges more words.
    min_df : int, default=None
        Documents in which a word must occur. A larger value drops more rare words. None is 2, or
        1 in a collection of fewer than ten documents.
    max_df : float, default=None
        Largest share of the documents in which a word may occur. A larger value keeps more common
        words. None is 0.5, or 1 in a collection of fewer than ten documents.
    name : str
        Name of the collection in error messages.

    Returns
    -------
    csr_matrix of shape (n_documents, n_words)
        TF-IDF with logarithmic counts. A document without words has a row of zeros.

    Notes
    -----
    Words are lower-cased; single letters are dropped. In scripts without spaces, pairs of adjacent
    characters are used in place of words. A document that would lose all its words to `min_df` and
    `max_df` keeps them. Time and memory grow with the length of the texts.

    Examples
    --------
    >>> features = text_features(["a red garden", "red gardens", "the sea"])
    >>> (features @ features.T).toarray().round(2)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    texts = check_documents(documents, name)
    prefix_length = check_count(prefix_length, "prefix_length")
    few = len(texts) < _FEW_DOCUMENTS
    least = check_count((1 if few else 2) if min_df is None else min_df, "min_df")
    share = check_real(
        (1.0 if few else 0.5) if max_df is None else max_df, "max_df", above=0, most=1
    )

    words = [split_words(text, prefix_length) for text in texts]
    if not any(words):
        raise ValueError(
            f"The documents of {name} hold no words of two letters or more. "
            "Check that they were read as text and are not empty."
        )
    counts = CountVectorizer(analyzer=list, dtype=np.float64).fit_transform(words)
    return TfidfTransformer(sublinear_tf=True).fit_transform(_prune(counts, least, share))


def text_kernel(
    documents: Any,
    *,
    prefix_length: int = 6,
    min_df: int | None = None,
    max_df: float | None = None,
    name: str = "documents",
) -> NDArray[np.float64]:
    """Similarities from 0 to 1 between documents, by the rare words they share.

    Parameters
    ----------
    documents : sequence of str
    prefix_length, min_df, max_df, name
        Passed to `text_features`.

    Returns
    -------
    ndarray of shape (n_documents, n_documents)
        Cosines of the rows of `text_features`; 0 for a document without words.

    Notes
    -----
    O(n^2) memory, which is checked first.

    Examples
    --------
    >>> text_kernel(["a red garden", "red gardens", "the sea"]).round(2)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    n_documents = table_shape(documents)[0]
    check_kernel_memory(n_documents, n_documents, n_copies=3.0)
    features = text_features(
        documents, prefix_length=prefix_length, min_df=min_df, max_df=max_df, name=name
    )
    return inner_products(features)


def split_words(text: str, prefix_length: int) -> list[str]:
    """Lower-case prefixes of the words of a text, without single letters."""
    # One code point for each letter, however its accents were typed.
    text = unicodedata.normalize("NFKC", text).lower()
    words = []
    for word in _WORD.findall(text):
        if _UNSPACED.search(word):
            words += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif len(word) > 1:
            words.append(word[:prefix_length])
    return words


def _prune(counts: sparse.csr_matrix, least: int, share: float) -> sparse.csr_matrix:
    """Drop rare and common words, except from documents that have no others."""
    n_documents, n_words = counts.shape
    frequency = np.bincount(counts.indices, minlength=n_words)
    keep = (frequency >= least) & (frequency <= share * n_documents)
    bare = np.diff(counts[:, keep].indptr) == 0
    keep[counts[bare].indices] = True
    return counts[:, keep]
