"""The doubt about the kind of model: a stack beside a classifier widens its intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import LEAST_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.base.log_posterior import OneByOne, Predictor
from bayesrbf.base.priors import ClassPrediction, MixturePrior
from bayesrbf.base.records import stored
from bayesrbf.base.rows import Observations
from bayesrbf.families.estimator import AnyFit
from bayesrbf.families.stack.fitted import FittedStack, StackSettings
from bayesrbf.families.stack.fitting import fit_stack
from bayesrbf.families.stack.intervals import ErrorOfRows
from bayesrbf.families.stack.members import own_members, trial_of
from bayesrbf.fit.held_out import masking_of
from bayesrbf.fit.probabilities import LEAST_DOUBT, ClassPosterior

# How far a classifier may be from the truth, told by a stack of the same rows.
#
# Its posterior is that of its parameters if the model is right. The truth is the stack's pool,
# moved by its error (:mod:`bayesrbf.families.stack.intervals`). With the classifier's log odds l,
# and :math:`l_0` of the pool, every draw is
#
# .. math:: l + \delta + z (l_0 - l), \quad z \sim N(0, 1):
#
# how far the two are apart at a row is as much in doubt. The classifier's own draws are not added:
# what rows leave open of the pool is in the error. That alone moves the median of the draws further
# out: where the pool contradicts the classifier at a row, it does not make it surer.


Point = Callable[[Observations], Float[np.ndarray, "obs label"]]
"""Class log probabilities that a classifier gives out at the shares of training."""
LEAST_DISPUTED_LOG: Final = np.log(LEAST_DISPUTED_PROBABILITY)


@stored
class ModelDoubt:
    """A stack, fitted to the rows of a classifier."""

    pool: FittedStack
    copies: Int[np.ndarray, "2 given"] | None = None
    """Names of the labelled rows, and the index of each among the rows held out."""

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the rows of the pool."""
        return self.pool.members.table_shape

    def around(self, posterior: ClassPosterior, point: Point, seed: int) -> ClassPosterior:
        """The posterior whose draws are moved by the error of the pool, and towards it."""
        error = self.pool.error(posterior.n_draws, seed)
        towards = np.random.default_rng([seed, 1]).standard_normal(posterior.n_draws)
        *shape, dimension = posterior.theta.shape
        # Numbers of the draws ride along as a further coordinate, so that blocks keep them.
        numbers = np.arange(posterior.n_draws).reshape(*shape, 1)
        theta = np.concatenate([posterior.theta, numbers], axis=2)

        def prepare(rows: Observations) -> DoubtedPredictor:
            log_p, (pool, of_rows, _) = point(rows), self.pool.error_at(error, rows)
            assert of_rows is not None  # there are draws
            apart = np.maximum(pool, LEAST_DISPUTED_LOG) - np.maximum(log_p, LEAST_DISPUTED_LOG)
            # What is surer than anybody may dispute is moved from where disputes end.
            disputed = log_odds(np.exp(log_p), LEAST_DISPUTED_PROBABILITY)
            given_out = log_odds(np.exp(log_p), LEAST_DOUBT)
            outside = np.abs(given_out) > np.abs(disputed)
            ratio = np.divide(disputed, given_out, out=np.ones_like(log_p), where=outside)
            own = posterior.predictor(rows)
            return DoubtedPredictor(own, dimension, log_p, of_rows, apart, towards, ratio)

        strays = self.pool.strays
        return replace(posterior, predictor=prepare, theta=theta, temperature=1.0, strays=strays)

    def held_out(
        self, log_p: Float[np.ndarray, "obs label"], n_draws: int, seed: int
    ) -> ClassPosterior:
        """The same of rows held out of the classifier, which gave them ``log_p``.

        ``whole`` has the index of a row among those that the pool held out, and its own.
        """

        def point(rows: Observations) -> Float[np.ndarray, "obs label"]:
            assert rows.whole is not None  # rows held out are their indices
            of_rows: np.ndarray = log_p[rows.whole[:, 1]]
            return of_rows

        def predictor(rows: Observations) -> OneByOne:
            return OneByOne(lambda theta: ClassPrediction(point(rows), np.zeros(rows.n_obs)))

        posterior = ClassPosterior(predictor, np.zeros((1, n_draws, 0)), np.zeros(log_p.shape[1]))
        return self.around(posterior, point, seed)


@dataclass(frozen=True)
class DoubtedPredictor(Predictor):
    """Predictions of a classifier, moved by the error of a pool, and towards the pool and away."""

    predictor: Predictor
    """Predictor of the classifier's own draws: their density of the rows stays."""
    dimension: int
    """Coordinates of the classifier's own draws."""
    log_p: Float[np.ndarray, "obs label"]
    """Log probabilities of the classifier at its fitted point."""
    error: ErrorOfRows
    apart: Float[np.ndarray, "obs label"]
    """Log probabilities of the pool less those of the classifier."""
    towards: Float[np.ndarray, " draw"]
    """Factor of ``apart`` in every draw."""
    ratio: Float[np.ndarray, "obs label"]
    """Ratio of what may be disputed to what is given out, in log odds."""

    @property
    def stretch(self) -> Float[np.ndarray, "obs label"]:  # type: ignore[override]
        """Ratio of the median of the draws to what is given out, in log odds."""
        return self.error.stretch(np.exp(self.log_p)) * self.ratio

    @property
    def parts(self) -> dict[str, Predictor]:
        """The error before and after the labels held out, and the distance from the pool."""
        alone = replace(self, towards=np.zeros_like(self.towards))
        return {
            names.BEFORE_LABELS: replace(alone, error=self.error.before_labels),
            names.LABELS_HELD_OUT: alone,
            # Its draws lie around the median of all, which the error alone moves out.
            names.OTHER_KINDS: replace(self, error=self.error.none, ratio=self.stretch),
            names.STRAY_LABELS: replace(alone, error=self.error.none),
        }

    @property
    def labels_near(self) -> Float[np.ndarray, "obs label"]:
        """Those held out that tell of the error."""
        return self.error.labels_near(np.exp(self.log_p))

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        own, numbers = np.split(thetas, [self.dimension], axis=1)
        numbers = numbers[:, 0].astype(int)
        moves = self.error.draws(numbers) + self.towards[numbers, None, None] * self.apart
        log_p = log_softmax(np.maximum(self.log_p, LEAST_DISPUTED_LOG) + moves, axis=-1)
        return ClassPrediction(log_p, self.predictor.at_all(own).log_density)


# A stack, fitted to the rows of a classifier.


def require_comparable(fit: AnyFit) -> None:
    """ValueError where other kinds of models cannot be fitted to the rows of a fit."""
    if not comparable(fit):
        raise ValueError(
            f"{fit.table.owner}.refine(model_doubt='pool') takes mixtures, RBF, kernel and sparse "
            "networks of real and categorical columns, whose missing cells tell nothing and whose "
            "labels are single classes; leave model_doubt out, or fit a StackedClassifier."
        )


def doubt_of(fit: AnyFit, cv: object, n_jobs: int | None) -> ModelDoubt:
    """Other kinds of models of the rows of a fit, held out by the classifier's own splits."""
    training = fit.table
    rows, n_classes = training.rows, training.class_labels.size
    few, seed = table.few_values(rows), training.seed
    members = own_members("default", few, rows.n_labelled)
    masking = masking_of(rows, training.read_columns, n_classes, seed)
    levels = training.read_columns.n_levels
    settings = StackSettings(
        members,
        (),
        levels,
        n_classes,
        MixturePrior(),
        seed,
        few,
        masking,
        on_trial=trial_of("default"),
    )
    splits = None if isinstance(cv, Integral) else cv  # a number of folds is the classifier's own
    seen, pool, _ = fit_stack(training, settings, splits, n_jobs)
    return ModelDoubt(pool, seen.copies)


def comparable(fit: AnyFit) -> bool:
    """Whether other kinds of models can be fitted to the rows of a fit."""
    single = fit.table.rows.labels.max() < fit.table.class_labels.size
    return fit.model.doubtable and single and not fit.table.read_columns.masked
