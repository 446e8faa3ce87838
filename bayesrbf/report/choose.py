"""Components, covariance, weight of unlabelled rows and missingness, chosen by held-out log score.

The rule looks at training rows only. It first chooses a shape, then how much rows without a label
count, then whether missing cells are informative. It compares the log loss of out-of-fold
probabilities, each at its own best temperature, on the same folds. The simplest candidate comes
first, and a later one replaces it only if it is better by more than one standard error of the
paired difference: on small tables the smallest of many scores is mostly luck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.estimators.mixture.hybrid_objective import unlabelled_gain
from bayesrbf.posterior.recalibration import fit_temperature, tempered
from bayesrbf.posterior.scores import log_loss
from bayesrbf.report.splits import splits_of
from bayesrbf.table import encode_labels

Settings = Mapping[str, Any]

SHAPES: Final[tuple[tuple[str, Settings], ...]] = (
    (
        "one component a class, shared covariance",
        {"n_components": 1, "covariance_type": "full", "tied": True},
    ),
    (
        "one component a class, own full covariance",
        {"n_components": 1, "covariance_type": "full", "tied": False},
    ),
    (
        "3 components a class, full covariances",
        {"n_components": 3, "covariance_type": "full", "tied": False},
    ),
    (
        "3 components a class, diagonal covariances",
        {"n_components": 3, "covariance_type": "diag", "tied": False},
    ),
)
CATEGORICAL_SHAPES: Final[tuple[tuple[str, Settings], ...]] = (
    ("one component a class", {"n_components": 1}),
    ("3 components a class", {"n_components": 3}),
)
"""Without real columns there is no covariance to choose."""


LEAST_GAIN: Final = 1e-3
"""Nats; a smaller gain is not worth a more complicated model, however certain it is."""


@dataclass(frozen=True)
class Trial:
    """One candidate and its out-of-fold losses."""

    name: str  # In words.
    settings: Settings  # Constructor arguments.
    losses: Float[np.ndarray, " scored"]  # In nats, at the candidate's best temperature.

    @property
    def log_loss(self) -> float:
        """Mean log loss in nats."""
        return float(self.losses.mean())

    def beats(self, champion: Trial) -> bool:
        """Whether the mean gain on the same rows exceeds its standard error and ``LEAST_GAIN``."""
        gain = champion.losses - self.losses
        error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else np.inf
        return bool(gain.mean() > max(error, LEAST_GAIN))


@dataclass(frozen=True)
class Choice:
    """The winner, and everything it was compared with."""

    settings: Settings  # Without the arguments that all candidates share.
    name: str  # In words.
    trials: tuple[Trial, ...]  # In the order in which they were tried.
    unlabelled: str = ""  # What rows without a label did, in a sentence.


def choose_mixture(
    X: pd.DataFrame,
    y: pd.Series,
    common: Settings,
    *,
    n_folds: int = 3,
    seed: int = 0,
    groups: Int[np.ndarray, " obs"] | None = None,
) -> Choice:
    """Choose the settings of a mixture, beside the ``common`` ones, on training rows.

    Rows of one of the ``groups`` are never on both sides of a split.
    """
    race = _Race(X, y, common, n_folds, seed, groups)
    real = set(X.columns) - set(common.get("categorical_features") or ())
    # what the report says of cells is what the likelihood finds; a blend bends the density
    start: Settings = {"objective": "likelihood"}
    if race.hidden.any():
        start = {**start, "unlabelled_weight": 0.0}
    shapes = SHAPES if real else CATEGORICAL_SHAPES
    best = race.best([(name, {**shape, **start}) for name, shape in shapes], None)
    unlabelled = ""
    if race.hidden.any():
        left_out = best
        counting = {"little": 1.0 / max(X.shape[1], 2), "fully": 1.0}
        best = race.best(
            [
                (
                    f"{best.name}; rows without a label count {word}",
                    {**best.settings, "unlabelled_weight": weight},
                )
                for word, weight in counting.items()
            ],
            best,
        )
        tried = zip(counting, race.trials[-len(counting) :], strict=True)
        word, counted = min(tried, key=lambda pair: pair[1].log_loss)
        gains = left_out.losses - counted.losses
        unlabelled = unlabelled_gain(word, gains, np.ones(gains.size))
    if X.isna().to_numpy().any():
        told = {**best.settings, "missingness": "informative"}
        best = race.best([(f"{best.name}; holes tell something", told)], best)
    return Choice(best.settings, best.name, tuple(race.trials), unlabelled)


class _Race:
    """Candidates on the same folds, and their scores."""

    def __init__(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        common: Settings,
        n_folds: int,
        seed: int,
        groups: Int[np.ndarray, " obs"] | None,
    ) -> None:
        self.X, self.y, self.common = X, y, common
        _, self.labels = encode_labels(y)
        self.hidden = self.labels < 0
        self.splits = splits_of(self.labels, n_folds, seed, groups)
        self.trials: list[Trial] = []

    def best(self, candidates: list[tuple[str, dict[str, Any]]], champion: Trial | None) -> Trial:
        """The champion after every candidate has challenged it."""
        for name, settings in candidates:
            challenger = Trial(name, settings, self.losses(settings))
            self.trials.append(challenger)
            if champion is None or challenger.beats(champion):
                champion = challenger
        if champion is None:
            raise ValueError("choose_mixture needs at least one candidate.")
        return champion

    def losses(self, settings: Settings) -> Float[np.ndarray, " scored"]:
        """Out-of-fold log losses at the best temperature."""
        model = HybridMixtureClassifier(**{**self.common, **settings, "calibrate": False})
        log_p = np.zeros((self.labels.size, self.labels.max() + 1))
        for train, test in self.splits.pairs():
            model.fit(self.X.iloc[train], self.y.iloc[train])
            log_p[test] = model.predict_log_proba(self.X.iloc[test])
        held = self.splits.folds >= 0
        temperature = fit_temperature(log_p[held], self.labels[held], np.ones(held.sum()))
        return log_loss(np.exp(tempered(log_p[held], temperature)), self.labels[held])
