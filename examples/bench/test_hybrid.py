"""Hybrid mixtures: objectives on published tables, and a prevalence that has changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from bayesrbf.base.arrays import log_loss
from bayesrbf.datasets import load_table
from bench.figures import show
from reproduce.roth import _error
from reproduce.roth_methods import METHODS, SVMS
from tests.cases import generative

SHIFTED = ("breast_cancer", "heart_cleveland", "credit_approval", "pima_uci_missing", "vehicle")
N_SPLITS = 5
ODDS = 6.0
"""How many times less of the most frequent class a shifted table shows than of the rarest."""


def test_objectives_on_small_tables(data_folder: object) -> None:
    tables = ("iris", "breast_cancer", "segment")
    names = [*METHODS, *SVMS]
    found = pd.DataFrame(
        {name: [_error(table, name, 10_000)["error"] for table in tables] for name in names},
        index=tables,
    )
    show("hybrid/small_tables", found, 2)
    hybrid = found[["blend", "hinge"]].min(axis=1)
    assert hybrid["breast_cancer"] <= 3.0
    assert hybrid["segment"] <= 9.0
    assert (hybrid <= found["ML"]).all()


def test_images(data_folder: object) -> None:
    found = {
        table: {name: _error(table, name, 10_000)["error"] for name in ("ML", "hinge")}
        for table in ("mnist50", "usps")
    }
    show("hybrid/images", pd.DataFrame(found).T, 2)
    assert found["mnist50"]["hinge"] <= 2.9
    assert found["usps"]["hinge"] <= 4.87


def shifted(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of a population whose frequent classes have become rare."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    rank = (-counts).argsort(kind="stable").argsort(kind="stable")
    chances = ODDS ** (rank[codes] / (classes.size - 1) - 1)
    return np.flatnonzero(rng.random(y.size) < chances)


def losses(name: str, seed: int) -> dict[str, float]:
    """Log loss on a shifted half: at the trained, the estimated and the true prevalence."""
    table = load_table(name)
    X, X_new, y, y_new = train_test_split(
        table.X, table.y, test_size=0.5, stratify=table.y, random_state=seed
    )
    rows = shifted(y_new, np.random.default_rng(seed))
    X_new, y_new = X_new.iloc[rows], y_new[rows]
    model = generative(tied=True, calibrate=True, random_state=seed).fit(X, y)
    codes = np.searchsorted(model.classes_, y_new)
    found = {"unadapted": log_loss(model.predict_proba(X_new), codes).mean()}
    estimate = model.adapt_prior(X_new)
    found["adapted"] = log_loss(model.predict_proba(X_new), codes).mean()
    truth = np.bincount(codes, minlength=model.classes_.size) / codes.size
    model.fitted_ = model.fitted_.at_prevalence(truth)
    found["true prevalence"] = log_loss(model.predict_proba(X_new), codes).mean()
    z = (estimate["probability"].to_numpy() - truth) / estimate["standard_error"].to_numpy()
    return found | {"largest z": np.abs(z).max()}


@pytest.mark.filterwarnings("ignore:X has categories that were not seen at fit")
def test_a_changed_prevalence_is_found(data_folder: object) -> None:
    means = pd.DataFrame(
        {
            name: pd.DataFrame([losses(name, seed) for seed in range(N_SPLITS)]).mean()
            for name in SHIFTED
        }
    ).T
    show("hybrid/prevalence", means)
    assert (means["adapted"] < means["unadapted"]).all()
