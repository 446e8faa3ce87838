"""Answers of every estimator on ten small tables, beside those of another commit.

``python -m tests.same_answers --between COMMIT`` makes the same fits with the files of the commit,
prints the answers that differ by more than 1e-10, and ends with 1 if there are some. Names behind
the commit choose subjects ("mixture") or single answers ("mixture: iris").
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import bayesrbf

FILE: Final = Path(__file__).resolve()
ROOT: Final = FILE.parents[1]
NEAR: Final = 1e-10
"""Largest difference of equal answers, relative to the largest of an answer."""
ROWS: Final = 6
"""Rows of a table that are asked about: three as they are, three with a cell hidden."""

Answers = dict[str, np.ndarray]
Table = tuple[Any, np.ndarray]


def some(bunch: Any, n_obs: int, n_features: int, hidden: float = 0.0) -> Table:
    """Rows of a table of scikit-learn, drawn by a fixed seed."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(bunch.target))[:n_obs])
    X = bunch.data[rows][:, :n_features].copy()
    X[rng.random(X.shape) < hidden] = np.nan
    return X, np.asarray(bunch.target_names)[bunch.target[rows]].astype(str)


def mixed(n_obs: int, masked_cells: float, hidden_labels: float = 0.0) -> Table:
    """Two reals, one skewed with a limit of detection, and two categorical columns."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n_obs)
    frame = pd.DataFrame(
        {
            "size": y + rng.normal(size=n_obs),
            "dose": np.maximum(np.exp(0.8 * y + rng.normal(size=n_obs)), 0.5),
            "colour": np.array(["red", "green", "blue"])[(y + rng.integers(0, 2, n_obs)) % 3],
            "site": np.array(["north", "south"])[rng.integers(0, 2, n_obs)],
        }
    ).astype({"colour": object, "site": object})
    frame = frame.mask(rng.random(frame.shape) < masked_cells)
    labels = np.where(rng.random(n_obs) < hidden_labels, None, np.array(["no", "yes"])[y])
    return frame, labels


def copies() -> Table:
    """Forty rows, the first twenty of them twice."""
    X, y = some(load_breast_cancer(), 40, 5)
    rows = np.append(np.arange(40), np.arange(20))
    return X[rows], y[rows]


def ring() -> Table:
    """A disc inside a ring: no linear border."""
    rng = np.random.default_rng(2)
    y = np.arange(90) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, 90), y * 2.0 + rng.normal(0.8, 0.4, 90)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X, np.array(["in", "out"])[y]


TABLES: Final[dict[str, Callable[[], Table]]] = {
    "iris": lambda: some(load_iris(), 90, 4),
    "iris with holes": lambda: some(load_iris(), 90, 4, 0.3),
    "wine": lambda: some(load_wine(), 80, 13),
    "cancer": lambda: some(load_breast_cancer(), 100, 8, 0.1),
    "digits": lambda: some(load_digits(), 100, 30, 0.0),
    "mixed": lambda: mixed(100, 0.0),
    "mixed with holes": lambda: mixed(100, 0.25),
    "few labels": lambda: mixed(100, 0.1, 0.6),
    "copies": copies,
    "ring": ring,
}


@cache
def table(name: str) -> Table:
    """A table by its name; digits have the labels of four classes."""
    X, y = TABLES[name]()
    if name == "digits":
        few = np.isin(y, ["0", "1", "2", "3"])
        return X[few], y[few]
    return X, y


def asked(X: Any) -> Any:
    """Rows that are asked about: three as they are, and three with one cell hidden."""
    rows = pd.DataFrame(X).iloc[:ROWS].copy()
    for row in range(ROWS // 2, ROWS):
        rows.iloc[row, row % rows.shape[1]] = np.nan
    return rows if isinstance(X, pd.DataFrame) else rows.to_numpy()


def numbers(y: np.ndarray) -> np.ndarray:
    """A label as a number with noise, for regression."""
    codes = np.unique(y.astype(str), return_inverse=True)[1]
    return codes + 0.3 * np.random.default_rng(3).normal(size=len(y))


def answered(model: Any, rows: Any) -> Answers:
    """What a fitted model says of rows."""
    wanted = ("predict_proba", "predict", "score_samples")
    said = {name: np.asarray(getattr(model, name)(rows)) for name in wanted if hasattr(model, name)}
    return {name: values for name, values in said.items() if values.dtype.kind == "f"}


def fitted(kind: str, options: dict[str, Any], name: str) -> Any:
    """An estimator that was fitted to a table."""
    X, y = table(name)
    estimator = getattr(bayesrbf, kind)(**options, random_state=0)
    if kind == "MixtureDensity":
        return estimator.fit(X)
    return estimator.fit(X, numbers(y) if kind == "RBFNetworkRegressor" else y)


def point(kind: str, options: dict[str, Any], name: str) -> Answers:
    """Answers of a fit."""
    return answered(fitted(kind, options, name), asked(table(name)[0]))


def drawn(kind: str, options: dict[str, Any], method: str, how: dict[str, Any], name: str) -> Any:
    """Answers under draws by seed, with their intervals."""
    model, rows = fitted(kind, options, name), asked(table(name)[0])
    model.refine(method, **how)
    said = answered(model, rows)
    if hasattr(model, "uncertainty"):
        said["uncertainty"] = model.uncertainty(rows).to_array().values
    return said


def report(_: str) -> Answers:
    """Numbers of the sections of a report, and its table of predictions."""
    from bayesrbf.app.report.job import Job
    from bayesrbf.app.report.run import run
    from bayesrbf.table.kinds import kind_named

    X, y = table("mixed with holes")
    kinds = {c: kind_named("categorical" if X[c].dtype == object else "real") for c in X}
    job = Job("Mixed", "label", X, pd.Series(y), kinds, "laplace", 0, family="mixture", folds=3)
    with tempfile.TemporaryDirectory() as folder:
        run(job, Path(folder))
        page = next(Path(folder).glob("*.html")).read_text()
        predictions = pd.read_csv(next(Path(folder).glob("predictions*.csv")))
    page = re.sub(r"(?s)<(style|script|svg|head)\b.*?</\1>", " ", page)
    sections = re.findall(r"(?s)<h2[^>]*>(.*?)</h2>(.*?)(?=<h2|$)", page)
    said = {re.sub("<[^>]+>", "", heading).strip(): shown(text) for heading, text in sections}
    return said | {"predictions": predictions.select_dtypes("number").iloc[::5].to_numpy(float)}


def shown(html: str) -> np.ndarray:
    """Numbers in the text of a page, without names such as X2 and versions such as 1.2.3."""
    text = re.sub("<[^>]+>", " ", html)
    found = re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*\d)", text)
    return np.array([float(number.replace(",", "")) for number in found])


SAMPLERS: Final[dict[str, dict[str, Any]]] = {
    "laplace": {"draws": 4},
    "advi": {"draws": 4},
    "gibbs": {"draws": 3, "tune": 4, "chains": 2},
    "nuts": {"draws": 3, "tune": 10, "chains": 2},
    "bootstrap": {"draws": 3},
}
LIKELIHOOD: Final = {"n_components": 2, "covariance_type": "full", "objective": "likelihood"}
FITS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "density": ("MixtureDensity", {"n_components": 2}),
    "density pool": ("MixtureDensity", {"n_components": "cv", "pool": 2, "trim": True}),
    "mixture": ("HybridMixtureClassifier", {}),
    "likelihood mixture": ("HybridMixtureClassifier", LIKELIHOOD),
    "hinge mixture": ("HybridMixtureClassifier", {"objective": "hinge", "covariance_type": "diag"}),
    "kernel network": ("KernelNetworkClassifier", {}),
    "RBF network": ("RBFNetworkClassifier", {"n_components": 3}),
    "RBF regression": ("RBFNetworkRegressor", {"n_components": 3}),
    "sparse mixture": ("SDGMClassifier", {"n_components": 2, "n_init": 2}),
    "exemplars": ("MedianLVQClassifier", {}),
    "GLVQ exemplars": ("MedianLVQClassifier", {"objective": "glvq"}),
    "stack": ("StackedClassifier", {}),
}
"""Estimators that are asked on every table."""
LARGE: Final = ("iris with holes", "few labels")
"""Tables of the default stack, whose fit is the longest."""
DRAWS: Final[dict[str, tuple[str, ...]]] = {
    "density": ("laplace", "advi", "gibbs", "nuts", "bootstrap"),
    "mixture": ("laplace", "advi", "nuts", "bootstrap"),
    "likelihood mixture": ("laplace", "gibbs", "nuts"),
    "kernel network": ("laplace", "nuts", "bootstrap"),
    "RBF network": ("laplace", "advi", "nuts", "bootstrap"),
    "RBF regression": ("laplace", "nuts"),
    "sparse mixture": ("laplace", "advi", "nuts", "bootstrap"),
    "exemplars": ("gibbs",),
    "stack": ("laplace",),
}
DRAWN_ON: Final = ("iris with holes", "mixed with holes")

Ask = Callable[[str], Answers]


def subjects() -> dict[str, dict[str, Ask]]:
    """What is asked, by subject and by table or method."""
    plain: dict[str, dict[str, Ask]] = {
        name: {where: partial(point, kind, options) for where in TABLES}
        for name, (kind, options) in FITS.items()
    }
    default: Ask = partial(point, "StackedClassifier", {})
    plain["default stack"] = dict.fromkeys(LARGE, default)
    draws: dict[str, dict[str, Ask]] = {
        f"{name}, draws": {
            f"{method}, {where}": partial(by_method, name, method)
            for method in methods
            for where in DRAWN_ON
        }
        for name, methods in DRAWS.items()
    }
    return plain | draws | {"report": {"mixed with holes": report}}


def by_method(name: str, method: str, where: str) -> Answers:
    """Answers of a subject under draws; ``where`` is the method and the table."""
    kind, options = FITS[name]
    return drawn(kind, options, method, SAMPLERS[method], where.partition(", ")[2])


def answers(chosen: Sequence[str] = ()) -> Iterator[tuple[str, Answers]]:
    """Names of answers, and the answers; none where a commit cannot give it, which is printed."""
    for subject, places in subjects().items():
        for place, ask in places.items():
            name = f"{subject}: {place}"
            if not chosen or subject in chosen or name in chosen:
                try:
                    yield name, ask(place)
                except Exception as error:  # of an estimator or argument that a commit lacks
                    print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                    yield name, {}


def difference(said: Answers, before: Answers) -> float:
    """Largest difference of answers, infinite where one is new, gone or of another shape."""
    if not said or said.keys() != before.keys():
        return np.inf
    return max(apart(value, before[name]) for name, value in said.items())


def apart(one: np.ndarray, two: np.ndarray) -> float:
    """Largest difference of two arrays, relative to their largest number where that is above 1."""
    if one.shape != two.shape or not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return np.inf
    finite = np.isfinite(one)
    size = max(1.0, np.abs(two[finite]).max(initial=0.0))
    return float(np.abs(one[finite] - two[finite]).max(initial=0.0) / size)


def said_by(checkouts: Sequence[Path], chosen: Sequence[str]) -> list[dict[str, Answers]]:
    """Answers that the files of each checkout give in a process of its own, at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{place}.json" for place in range(len(checkouts))]
        running = [
            subprocess.Popen(
                [sys.executable, "-P", FILE, "--write", file, *chosen],
                cwd=checkout,
                env=os.environ | {"PYTHONPATH": str(checkout)},
            )
            for checkout, file in zip(checkouts, files, strict=True)
        ]
        if codes := [code for one in running if (code := one.wait())]:
            raise RuntimeError(f"answers must be given; their processes ended with {codes}.")
        found = [json.loads(file.read_text()) for file in files]
    return [
        {name: {what: np.array(v, float) for what, v in said.items()} for name, said in one.items()}
        for one in found
    ]


def extract(commit: str, folder: Path) -> None:
    """Put the files of a commit into a folder."""
    packed = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")


def main(words: Sequence[str]) -> int:
    """Compare with a commit; the processes of both write their answers."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(prog="python -m tests.same_answers", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--between", metavar="COMMIT")
    what.add_argument("--write", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("chosen", nargs="*")
    asked = parser.parse_args(words)
    if asked.write:
        told = {
            name: {what: values.tolist() for what, values in said.items()}
            for name, said in answers(asked.chosen)
        }
        asked.write.write_text(json.dumps(told))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        extract(asked.between, Path(folder))
        now, before = said_by([ROOT, Path(folder)], asked.chosen)
    if not now:
        parser.error(f"names must be among {', '.join(subjects())}; got {asked.chosen}")
    moved = {
        name: far for name, said in now.items() if (far := difference(said, before[name])) > NEAR
    }
    for name, far in moved.items():
        print(f"{name}: differs by {far:.1e}")
    print(f"{len(now) - len(moved)} of {len(now)} answers are those of {asked.between}.")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
