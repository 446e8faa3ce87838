"""Words for missing, and words written in two ways, are told of columns and labels alike."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, read_table
from bayesrbf.reading.cells import doubtful_labels, spelled_alike, words_for_missing
from bayesrbf.reading.notes import ColumnWarning
from tests.cases import generative, some_quick

N = 120
A = np.random.default_rng(3).normal(size=N).round(2)
Y = np.where(A + np.random.default_rng(4).normal(size=N) > 0, "yes", "no").astype(object)
FIFTH = np.arange(N) % 5 == 0
OF_PANDAS = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
OTHERS = (
    "unknown",
    "-",
    "—",
    "N.A.",
    "#DIV/0!",
    "#NUM!",
    "NaT",
    "NAN",
    "na",
    "Null",
    "(blank)",
    "?",
)
GENUINE = ("none", "Na", "nonsmoker", "native", "A", "+", "dead", "unknown primary", "north", "0")


@pytest.mark.parametrize(
    "word", some_quick([*OF_PANDAS, *OTHERS], "#N/A", "-nan", "null", *OTHERS[:5])
)
def test_a_word_for_missing_is_told_of_a_column_and_of_labels(word: str, tmp_path: Path) -> None:
    cells = np.where(FIFTH, word, Y)
    pd.DataFrame({"a": A, "g": cells, "y": Y}).to_csv(tmp_path / "f.csv", index=False)
    pd.DataFrame({"a": A, "y": cells}).to_csv(tmp_path / "l.csv", index=False)
    for name, column in (("f.csv", "g"), ("l.csv", "y")):
        read = read_table(tmp_path / name, "y")
        assert any(f"'{column}'" in note and "24 cells" in note for note in read.notes)
        again = read_table(tmp_path / name, "y", na=word)
        held = again.frame["g"] if column == "g" else again.target
        assert held is not None
        assert held.isna().sum() == 24
    with pytest.warns(ColumnWarning, match="Column 'g' holds .* in 24 cells, read as a category"):
        generative().fit(pd.DataFrame({"a": A, "g": cells}), Y)
    said = "takes the label .* for a class .24 rows.. If it means that a row has no label, give"
    with pytest.warns(ColumnWarning, match=said):
        generative().fit(A[:, None], cells)


@pytest.mark.parametrize("word", GENUINE)
def test_genuine_levels_are_quiet(word: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        generative().fit(pd.DataFrame({"a": A, "g": np.where(FIFTH, word, Y)}), Y)
        generative().fit(A[:, None], np.where(FIFTH, word, Y))


def test_named_categories_have_their_words_told() -> None:
    X = pd.DataFrame({"a": A, "g": pd.Categorical(np.where(FIFTH, "nan", Y))})
    with pytest.warns(ColumnWarning, match="holds 'nan' in 24 cells"):
        generative().fit(X, Y)
    with pytest.warns(ColumnWarning, match="holds 'nan' in 24 cells"):
        generative(categorical_features=["g"]).fit(X.astype({"g": str}), Y)


WAYS = {
    "capitals": ("yes", "YES", "capitals only"),
    "blanks": ("yes now", "yes  now", "blanks only"),
    "hard blank": ("yes now", "yes\u00a0now", "blanks only"),
    "zero-width space": ("yes", "\u200byes", "signs that nobody sees only"),
    "composed": ("n\u00e9", "ne\u0301", "the Unicode form of their letters only"),
    "two at once": ("yes now", "YESnow", "capitals and blanks"),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_word_in_two_ways_is_told_of_levels_and_of_labels(way: str, tmp_path: Path) -> None:
    first, second, how = WAYS[way]
    cells = np.array([first, "no", second, "other"], dtype=object)[np.arange(N) % 4]
    labels = np.random.default_rng(5).permutation(cells)
    pd.DataFrame({"a": A, "g": cells, "y": labels}).to_csv(tmp_path / "t.csv", index=False)
    first_of_all = read_table(tmp_path / "t.csv", "y").notes[0]
    assert first_of_all.startswith("Columns 'y' and 'g' hold ")
    assert f"(30 and 30 cells), which differ by {how}" in first_of_all
    with pytest.warns(ColumnWarning, match=rf"Column 'g' holds .*30 and 30 cells.*{how}"):
        generative().fit(pd.DataFrame({"a": A, "g": cells}), Y)
    with pytest.warns(ColumnWarning, match=rf"takes the labels .*30 and 30 cells.*{how}"):
        generative().fit(A[:, None], cells)


def test_letters_that_look_the_same_are_spelled() -> None:
    (note,) = spelled_alike("y", {"n\u00e9": 2, "ne\u0301": 1})
    assert note.value == r"'n\xe9' and 'ne\u0301' (2 and 1 cells)"


def test_a_negative_code_among_labels_may_hide_them() -> None:
    labels = np.where(FIFTH, -1, A > 0)
    with pytest.warns(ColumnWarning, match="give unlabelled=-1"):
        KernelNetworkClassifier(calibrate=False).fit(A[:, None], labels)
    for plain in ({"-1": 5, "1": 5}, {"-2": 1, "-1": 5, "0": 3, "1": 4}, {"0": 1, "1": 2, "2": 3}):
        assert list(doubtful_labels("y", plain)) == []
    assert list(words_for_missing({"unknown": 4})) == []  # all that there is


def test_one_class_alone_is_told() -> None:
    with pytest.warns(UserWarning, match="one class alone, 0: its probability is 1"):
        model = HybridMixtureClassifier(random_state=0).fit(A[:, None], np.zeros(N, dtype=int))
    np.testing.assert_array_equal(model.predict_proba(A[:3, None]), 1.0)
