"""Exemplars by the generalised EM alone, as Nebel, Hammer and Villmann (2014) publish it.

``MedianLVQClassifier`` goes on from its end by swaps; here it is the whole search. The width of the
kernel is chosen by cross-validation, each width from a start of its own: the generalised EM moves
little once it has begun.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, Self

import numpy as np
from jaxtyping import Float, Real, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from bayesrbf import MedianLVQPrior, table
from bayesrbf.base.arrays import log_softmax, ranked
from bayesrbf.base.rows import Observations
from bayesrbf.families.median_lvq.classifier import widths_to_try
from bayesrbf.families.median_lvq.fitted import candidates_of, exemplar_log_joint
from bayesrbf.families.median_lvq.records import (
    Dissimilarities,
    MedianLVQParameters,
    Prototypes,
    Sigma,
)
from bayesrbf.families.median_lvq.search import objective_of, point_of, random_exemplars, sweeps
from bayesrbf.fit.held_out import hold_out, split_rows

FOLDS: Final = 5  # Those that choose the width.
MAX_ITER: Final = 100  # Most sweeps over the prototypes.
LARGEST_SEED: Final = 2**31 - 1


class GeneralisedEM(ClassifierMixin, BaseEstimator):
    """Classifier of precomputed dissimilarities by exemplars, under RSLVQ or GLVQ."""

    def __init__(
        self,
        n_prototypes: int = 2,
        *,
        objective: Literal["rslvq", "glvq"] = "rslvq",
        n_init: int = 4,
        random_state: int | None = None,
    ) -> None:
        self.n_prototypes = n_prototypes
        self.objective = objective
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, D: Real[np.ndarray, "obs obs"], y: Shaped[np.ndarray, " obs"]) -> Self:
        """Choose the width and find the exemplars."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = self.classes_.size
        candidates = candidates_of(labels, n_classes)
        rows = Dissimilarities(D, labels, np.ones(labels.size), candidates)
        self._prototypes = Prototypes(
            tuple(label for label in range(n_classes) for _ in range(self.n_prototypes))
        )
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        widths = widths_to_try(self.objective, "cv", MedianLVQPrior(), rows.scale)
        width = widths[0] if len(widths) == 1 else self._chosen(rows, widths, seed)
        self._point = searched(rows, self._prototypes, width, self.n_init, seed)
        self.exemplars_ = self._point.exemplars
        return self

    def _chosen(
        self, rows: Dissimilarities, widths: tuple[Sigma | None, ...], seed: int
    ) -> Sigma | None:
        """Width of least held-out log loss."""
        # Folds need to know nothing of a row but its position.
        positions = np.arange(rows.n_obs, dtype=np.float64)[:, None]
        no_codes = np.empty((rows.n_obs, 0), dtype=np.intp)
        given, _ = table.with_subjects(Observations(positions, no_codes, rows.labels, rows.weights))

        def predict(
            fold: int, train: Observations, test: Observations
        ) -> Float[np.ndarray, "test width label"]:
            seen, new = (part.real[:, 0].astype(np.intp) for part in (train, test))
            labels = np.full(rows.n_obs, -1)
            labels[seen] = rows.labels[seen]
            known = replace(rows, labels=labels, candidates=candidates_of(labels, rows.n_classes))
            points = [
                searched(known, self._prototypes, width, 1, seed + 1 + fold) for width in widths
            ]
            joints = [
                exemplar_log_joint(
                    rows.values[new[:, None], point.exemplars], self._prototypes, point
                )
                for point in points
            ]
            return np.stack(joints, axis=1)

        folds = split_rows(FOLDS, given, np.arange(rows.n_obs), seed)
        held_out = hold_out(folds, predict, self.classes_)
        assert held_out is not None  # every class has several rows
        return held_out.selection(widths, calibrate=False).chosen

    def _log_probabilities(
        self, D: Real[np.ndarray, "obs train"]
    ) -> Float[np.ndarray, "obs label"]:
        """Log probabilities of RSLVQ; of GLVQ margins, up to a constant a row."""
        columns = D[:, self.exemplars_]
        return log_softmax(exemplar_log_joint(columns, self._prototypes, self._point), axis=1)

    @available_if(lambda model: model.objective == "rslvq")  # type: ignore[untyped-decorator]
    def predict_proba(self, D: Real[np.ndarray, "obs train"]) -> Float[np.ndarray, "obs label"]:
        """Class probabilities, of dissimilarities to the training rows."""
        return np.exp(self._log_probabilities(D))

    def predict(self, D: Real[np.ndarray, "obs train"]) -> Shaped[np.ndarray, " obs"]:
        """Most probable class, of dissimilarities to the training rows."""
        return self.classes_[self._log_probabilities(D).argmax(axis=1)]


def searched(
    rows: Dissimilarities,
    prototypes: Prototypes,
    width: Sigma | None,
    n_init: int,
    seed: int,
) -> MedianLVQParameters:
    """The best end of the generalised EM over random starts."""
    rng = np.random.default_rng(seed)
    starts = [random_exemplars(rows, prototypes, rng) for _ in range(n_init)]
    points, reached = [], []
    for start in starts:
        objective = objective_of(rows, prototypes, width)
        trace = [objective.value(start)]
        objective, exemplars, _ = sweeps(objective, start, trace, MAX_ITER, bounded=True)
        points.append(point_of(objective, exemplars))
        reached.append(trace[-1])
    return points[ranked(np.array(reached))[0]]
