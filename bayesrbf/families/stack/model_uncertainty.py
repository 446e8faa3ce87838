"""Uncertainty about the model: a stack of the same rows widens a classifier's intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from numbers import Integral
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base import names
from bayesrbf.base.arrays import MIN_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.base.priors import MixturePrior
from bayesrbf.base.records import stored
from bayesrbf.base.rows import Observations
from bayesrbf.families.estimator import AnyFit
from bayesrbf.families.stack.fitted import FittedStack, SeenByPool, StackSettings
from bayesrbf.families.stack.fitting import fit_stack
from bayesrbf.families.stack.intervals import PoolError
from bayesrbf.families.stack.members import chosen_members, trial_of
from bayesrbf.fit.chain import Draws, Seen, Stage, State, Step
from bayesrbf.fit.held_out import masking_of
from bayesrbf.fit.label_noise import LabelNoise
from bayesrbf.fit.probabilities import MIN_DISTANCE_TO_CERTAINTY

# How far a classifier may be from the truth, told by a stack of the same rows.
#
# Its posterior is that of its parameters if the model is right. The truth is the stack's pool,
# moved by its error (:mod:`bayesrbf.families.stack.intervals`). With the classifier's log odds l,
# and :math:`l_0` of the pool, every draw is
#
# .. math:: l + \delta + z (l_0 - l), \quad z \sim N(0, 1):
#
# how far the two are apart at a row is as uncertain. The classifier's own draws are not added:
# what rows leave open of the pool is in the error. That alone moves the median of the draws further
# out: where the pool contradicts the classifier at a row, it does not make it surer.


MIN_DISPUTED_LOG: Final = np.log(MIN_DISPUTED_PROBABILITY)


@stored
class StackedModelUncertainty:
    """A stack, fitted to the rows of a classifier."""

    pool: FittedStack
    copies: Int[np.ndarray, "2 given"] | None = None
    """Names of the labelled rows, and the index of each among the rows held out."""

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the rows of the pool."""
        return self.pool.members.table_shape

    def label_noise(self) -> LabelNoise:
        """Label noise by the rows held out."""
        return self.pool.label_noise()

    def error(self, n_draws: int, seed: int, rows: Observations) -> ModelUncertainty:
        """Stage that shifts draws by the error of the pool, and along the distance to the pool."""
        towards = np.random.default_rng([seed, 4]).standard_normal(n_draws)
        error = cache(partial(self.pool.pool_error, n_draws, seed, rows))
        return ModelUncertainty(self.pool, error, towards)

    def held_out(self, log_p: Float[np.ndarray, "obs label"], n_draws: int) -> HeldOutSource:
        """A source of rows held out, which were given ``log_p``.

        ``whole`` has the index of a row among those that the pool held out, and its own.
        """
        return HeldOutSource(self.pool, log_p, (1, n_draws))


@dataclass(frozen=True)
class HeldOutSource:
    """Held-out rows of a classifier, with their class log probabilities."""

    pool: FittedStack
    log_p: Float[np.ndarray, "obs label"]
    shape: tuple[int, int]

    def on(self, rows: Observations) -> SeenHeldOut:
        """Look at some rows."""
        return SeenHeldOut(self, rows)


@dataclass(frozen=True)
class SeenHeldOut:
    """Held-out rows of a classifier, looked at once for the point and all draws."""

    source: HeldOutSource
    rows: Observations

    @property
    def missing_fraction(self) -> Float[np.ndarray, " obs"]:
        """Missing fraction of every row."""
        assert self.rows.whole is not None  # rows held out are their indices
        return self.source.pool.held.missing_fraction[self.rows.whole[:, 0]]

    def state(self, draws: Draws | None) -> State:
        """Log probabilities of the classifier, the same under every draw."""
        assert self.rows.whole is not None
        log_p = self.source.log_p[self.rows.whole[:, 1]]
        shape = 1 if draws is None else draws.size, *log_p.shape
        return State(np.broadcast_to(log_p, shape), np.zeros(shape[:2]))


@dataclass(frozen=True)
class ModelUncertainty(Stage):
    """The classifier at its fitted point, moved by the error of a pool, and towards it and away.

    The classifier's own draws are left out: what rows leave open of the pool is in the error.
    """

    pool: FittedStack
    error: Callable[[], PoolError]
    """Gives the error, when it is asked for."""
    towards: Float[np.ndarray, " draw"]
    """Factor of the distance from the pool in every draw."""
    component: str = ""
    """Name of the only component of the uncertainty; empty: all."""

    @property
    def components(self) -> dict[str, Stage]:
        """Stages with one component of the error, or the distance from the pool, by name."""
        named = *names.COMPONENTS_OF_ERROR, names.OTHER_KINDS
        return {name: replace(self, component=name) for name in named}

    def on(self, seen: Seen) -> Step:
        """Step that moves the point by the error of the pool, and towards or away from the pool."""
        by_pool = SeenByPool(self.pool, seen.rows)
        of_rows = cache(lambda: by_pool.error_under(self.error()))

        def step(state: State, point: State, draws: Draws | None) -> State:
            """State of draws around the point; for the point itself the state is unchanged."""
            if draws is None:
                return state
            log_p, error = point.log_p[0], of_rows()
            labels_near = error.labels_near(np.exp(log_p))
            disputed = np.maximum(log_p, MIN_DISPUTED_LOG)
            apart = np.maximum(by_pool.log_p, MIN_DISPUTED_LOG) - disputed
            error = (
                error.only(self.component) if self.component in names.COMPONENTS_OF_ERROR else error
            )
            # Draws around the pool do not change the median.
            correction = error.median_correction(np.exp(log_p)) * clipped_ratio(log_p)
            log_odds_shift = np.zeros((draws.size, *log_p.shape))
            if self.component != names.OTHER_KINDS:
                log_odds_shift += error.draws(draws)
            if self.component in ("", names.OTHER_KINDS):
                log_odds_shift += self.towards[draws, None, None] * apart
            shifted = log_softmax(disputed + log_odds_shift, axis=-1)
            return replace(
                state, log_p=shifted, median_correction=correction, labels_near=labels_near
            )

        return step


def clipped_ratio(log_p: Float[np.ndarray, "obs label"]) -> Float[np.ndarray, "obs label"]:
    """Ratio of the log odds after clipping at the disputed probability to the reported ones.

    It is 1 unless the reported probability lies nearer to 0 or 1 than the clip.
    """
    disputed = log_odds(np.exp(log_p), MIN_DISPUTED_PROBABILITY)
    reported = log_odds(np.exp(log_p), MIN_DISTANCE_TO_CERTAINTY)
    outside = np.abs(reported) > np.abs(disputed)
    return np.divide(disputed, reported, out=np.ones_like(log_p), where=outside)


# A stack, fitted to the rows of a classifier.


def require_comparable(fit: AnyFit) -> None:
    """ValueError where other kinds of models cannot be fitted to the rows of a fit."""
    if not fit.comparable:
        raise ValueError(
            f"{fit.table.owner}.refine(model_uncertainty='pool') takes mixtures, RBF, kernel and "
            "sparse networks of real and categorical columns, whose missing cells tell nothing and "
            "whose labels are single classes; leave model_uncertainty out, or fit a "
            "StackedClassifier."
        )


def model_uncertainty_of(fit: AnyFit, cv: object, n_jobs: int | None) -> StackedModelUncertainty:
    """Stack of other kinds of models, fitted to the rows of a fit.

    Rows are held out by the classifier's splits ``cv``, or by the stack's own if that is a number.
    """
    training = fit.table
    rows, n_classes = training.rows, training.class_labels.size
    seed = training.seed
    members = chosen_members("default", rows.n_labelled)
    masking = masking_of(rows, training.read_columns, n_classes, seed)
    levels = training.read_columns.n_levels
    settings = StackSettings(
        members,
        (),
        levels,
        n_classes,
        MixturePrior(),
        seed,
        masking,
        on_trial=trial_of("default"),
    )
    splits = None if isinstance(cv, Integral) else cv  # a number of folds is the classifier's own
    seen, pool, _ = fit_stack(training, settings, splits, n_jobs)
    return StackedModelUncertainty(pool, seen.copies)
