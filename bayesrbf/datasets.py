"""Tables for examples, tests and benchmarks, and ways to hide their cells and labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Shaped

from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import decode, encode, encode_labels

if TYPE_CHECKING:
    import pandas as pd


DATA_VARIABLE: Final = "BAYESRBF_DATA"
TARGET: Final = "target"
NOT_A_FEATURE: Final = "extra_"
BUNDLED: Final = ("breast_cancer", "digits", "iris", "wine")  # Tables that come with scikit-learn.


@dataclass(frozen=True)
class Dataset:
    """A table of features and its labels, which are strings."""

    name: str
    X: pd.DataFrame  # float64 columns are real, str columns categorical.
    y: Shaped[np.ndarray, " obs"]


def data_folder() -> Path:
    """Existing folder of the benchmark tables, which the variable BAYESRBF_DATA names."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder or not Path(folder).is_dir():
        raise FileNotFoundError(
            f"The environment variable {DATA_VARIABLE} must name the folder of the benchmark "
            f"tables; it is {folder!r}."
        )
    return Path(folder)


def load_table(name: str, folder: Path | None = None) -> Dataset:
    """Load a table by its name, one of scikit-learn's or one in ``folder``.

    The folder is :func:`data_folder` by default.

    In a file ``<name>.csv`` or ``<name>.csv.gz`` the column ``target`` is the label, and columns
    that start with ``extra_`` are no features. FileNotFoundError if there is no such table.

    >>> iris = load_table("iris")
    >>> iris.X.shape, sorted(set(iris.y))
    ((150, 4), ['setosa', 'versicolor', 'virginica'])
    """
    if name in BUNDLED:
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        labels = np.asarray(bunch.target_names).astype(str).astype(object)
        return Dataset(name, bunch.data.astype("float64"), labels[bunch.target.to_numpy()])
    import pandas as pd

    folder = folder or data_folder()
    files = [folder / f"{name}.csv", folder / f"{name}.csv.gz"]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        tables = sorted(path.name.split(".")[0] for path in folder.glob("*.csv*"))
        raise FileNotFoundError(f"There is no table {name!r}; there are {', '.join(tables)}.")
    frame = pd.read_csv(file, dtype={TARGET: "str"})
    y = frame.pop(TARGET).to_numpy(dtype=object)
    features = [column for column in frame.columns if not column.startswith(NOT_A_FEATURE)]
    X = frame[features]
    numbers = X.select_dtypes("number").columns
    return Dataset(name, X.astype(dict.fromkeys(numbers, "float64")), y)


def hide_cells(X: Any, fraction: float, rng: np.random.Generator) -> Any:
    """A copy of a table, of the same type, with cells hidden completely at random.

    >>> hide_cells(np.ones((2, 3)), 0.5, np.random.default_rng(3))
    array([[nan, nan,  1.],
           [ 1., nan, nan]])
    """
    _check_fraction(fraction)
    columns = learn_columns(X, whole=False)  # all columns, constant ones and copies, too
    table = encode(X, columns)
    masked = rng.random((len(table.real), len(columns.names))) < fraction
    real = np.where(masked[:, list(columns.real_positions)], np.nan, table.real)
    codes = np.where(masked[:, [*columns.code_of]], -1, table.codes)
    return decode(real, codes, columns, X)


def hide_labels(y: Any, fraction: float, rng: np.random.Generator) -> Shaped[np.ndarray, " obs"]:
    """Labels as objects, None for a random fraction of each class but never for all of one.

    >>> hide_labels(["a", "a", "b", "b"], 0.5, np.random.default_rng(1)).tolist()
    [None, 'a', 'b', None]
    """
    _check_fraction(fraction)
    classes, codes = encode_labels(y)
    names = np.array([*classes.tolist(), None], dtype=object)
    labels = names[codes]
    for code in range(len(classes)):
        rows = np.flatnonzero(codes == code)
        n_hidden = min(round(fraction * len(rows)), len(rows) - 1)
        labels[rng.choice(rows, size=n_hidden, replace=False)] = None
    return labels


def _check_fraction(fraction: float) -> None:
    """Refuse a fraction outside [0, 1]."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be in [0, 1]; received {fraction!r}.")


def demo_tables(
    rng: np.random.Generator, *, cells: float = 0.3, labels: float = 0.5
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Breast cancer with fractions of its cells and labels hidden, and the complete table.

    >>> incomplete, truth = demo_tables(np.random.default_rng(0))
    >>> incomplete.shape, int(truth.isna().sum().sum())
    ((569, 31), 0)
    """
    data = load_table("breast_cancer")
    names = {name: name.replace(" ", "_") for name in data.X.columns}
    truth = data.X.rename(columns=names).assign(**{TARGET: data.y})
    incomplete = hide_cells(truth.drop(columns=TARGET), cells, rng)
    return incomplete.assign(**{TARGET: hide_labels(data.y, labels, rng)}), truth
