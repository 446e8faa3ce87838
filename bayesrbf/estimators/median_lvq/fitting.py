"""From compared rows to fitted exemplars: the steps that every fit and fold shares."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real as RealNumber
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf.estimators.calibrating import split_rows
from bayesrbf.estimators.checks import components_per_class
from bayesrbf.estimators.out_of_fold import HeldOut, hold_out
from bayesrbf.exemplars import (
    Dissimilarities,
    MedianLVQParameters,
    MedianLVQPrior,
    Prototypes,
    Sigma,
)
from bayesrbf.numerics.median_lvq.exemplars import class_log_joint, class_margins
from bayesrbf.numerics.median_lvq.search import ExemplarFit, Optimizer, fit_exemplars
from bayesrbf.parameters import Observations
from bayesrbf.posterior.temperature import fit_temperature, tempered

SIGMA_GRID: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.8)
"""Values of sigma squared that cross-validation tries, in median dissimilarities."""

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "objective": ("rslvq", "glvq"),
    "optimizer": ("swap", "gem"),
    "inference": ("map", "gibbs"),
}


@dataclass(frozen=True)
class SearchSettings:
    """How exemplars are searched for.

    Attributes
    ----------
    optimizer : {"swap", "gem"}
        How a prototype moves.
    n_init : int
        Number of restarts.
    max_iter : int
        Most sweeps of a restart.
    seed : int
        Seed of the restarts.
    """

    optimizer: Optimizer
    n_init: int
    max_iter: int
    seed: int


@dataclass(frozen=True)
class FittedExemplars:
    """Fitted exemplars: what predicting needs.

    Attributes
    ----------
    prototypes : Prototypes
        Class of every prototype.
    parameters : MedianLVQParameters
        The fitted point.
    sigma : SigmaPrior, float or None
        The width: its prior, its value, or None for GLVQ.
    """

    prototypes: Prototypes
    parameters: MedianLVQParameters
    sigma: Sigma | None

    def class_log_joint(
        self, columns: Real[np.ndarray, "obs prototype"]
    ) -> Float[np.ndarray, "obs label"]:
        """Log joint of RSLVQ or margins of GLVQ.

        Parameters
        ----------
        columns : ndarray of shape (n_obs, n_prototypes)
            Dissimilarities of rows to the exemplars.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Class log joint in nats up to a constant a row, or margins.
        """
        if self.parameters.sigma is None:
            return class_margins(columns, self.prototypes)
        return class_log_joint(columns, self.prototypes, self.parameters.sigma)


def check_choices(arguments: Mapping[str, object], owner: str) -> None:
    """Check the arguments that only this family has.

    Parameters
    ----------
    arguments : mapping of str to object
        Constructor arguments by name.
    owner : str
        Name of the estimator, for messages.

    Raises
    ------
    ValueError
        If an argument is not among its choices, or contradicts another.
    TypeError
        If ``prior`` is no ``MedianLVQPrior``.

    Examples
    --------
    >>> check_choices({"objective": "lvq"}, "MedianLVQClassifier")
    Traceback (most recent call last):
    ValueError: MedianLVQClassifier(objective=...) must be 'rslvq' or 'glvq'; received 'lvq'.
    """
    for name, allowed in CHOICES.items():
        if name in arguments and arguments[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(f"{owner}({name}=...) must be {words}; received {arguments[name]!r}.")
    sigma = arguments.get("sigma", "cv")
    number = isinstance(sigma, RealNumber) and 1e-100 <= float(sigma) <= 1e100
    if not (sigma in ("cv", "sample") or number) or isinstance(sigma, bool):
        raise ValueError(
            f"{owner}(sigma=...) must be 'cv', 'sample' or a number from 1e-100 to 1e100; "
            f"received {sigma!r}."
        )
    if arguments.get("objective") == "glvq":
        for name, default in (("sigma", "cv"), ("prior", None), ("inference", "map")):
            if arguments[name] != default:
                raise ValueError(
                    f"{owner}(objective='glvq') has no likelihood and so no {name}; leave it at "
                    f"{default!r}, or use objective='rslvq'. Received {name}={arguments[name]!r}."
                )
        if arguments["class_prior"] is not None and not arguments["calibrate"]:
            raise ValueError(
                f"{owner}(objective='glvq', class_prior=...) needs calibrate=True: margins are no "
                "probabilities before."
            )
    prior = arguments.get("prior")
    if not (prior is None or isinstance(prior, MedianLVQPrior)):
        raise TypeError(f"{owner}(prior=...) must be a MedianLVQPrior or None; received {prior!r}.")


def candidates_of(
    labels: Int[np.ndarray, " obs"], n_classes: int, unlabelled: bool
) -> tuple[Int[np.ndarray, " candidate"], ...]:
    """Rows that may be an exemplar of each class.

    Parameters
    ----------
    labels : ndarray of shape (n_obs,)
        Class codes, -1 where hidden.
    n_classes : int
        Number of classes.
    unlabelled : bool
        Whether a row without a label may be an exemplar, of any class.

    Returns
    -------
    tuple of ndarray of shape (n_candidates,)
        Ascending rows of every class.
    """
    joins = (labels < 0) & unlabelled
    return tuple(np.flatnonzero((labels == label) | joins) for label in range(n_classes))


def prototypes_per_class(n_prototypes: object, classes: np.ndarray, owner: str) -> Prototypes:
    """Class of every prototype.

    Parameters
    ----------
    n_prototypes : int or mapping of class to int
        Number of prototypes of every class.
    classes : ndarray of shape (n_classes,)
        Class labels.
    owner : str
        Name of the estimator, for messages.

    Returns
    -------
    Prototypes
        Class by class.

    Raises
    ------
    ValueError
        If a number is no positive integer, or a class has none or is unknown.
    """
    return Prototypes(components_per_class(n_prototypes, classes, owner, "n_prototypes"))


def widths_to_try(
    objective: str, sigma: object, prior: MedianLVQPrior, scale: float
) -> tuple[Sigma | None, ...]:
    """Widths among which cross-validation chooses; one where there is no choice.

    Parameters
    ----------
    objective : {"rslvq", "glvq"}
        GLVQ has no width.
    sigma : "cv", float or "sample"
        As given to the constructor.
    prior : MedianLVQPrior
        Prior of the width.
    scale : float
        Median dissimilarity.

    Returns
    -------
    tuple of SigmaPrior, float or None
        At least one.

    Examples
    --------
    >>> widths_to_try("rslvq", 2, MedianLVQPrior(), 1.0)
    (2.0,)
    """
    if objective == "glvq":
        return (None,)
    if sigma == "sample":
        return (prior.resolve(scale),)
    if sigma == "cv":
        return tuple(float(np.sqrt(share * scale)) for share in SIGMA_GRID)
    return (float(sigma),)  # type: ignore[arg-type]  # checked before


def choose_width(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    classes: np.ndarray,
    calibrate: bool,
    owner: str,
) -> tuple[Sigma | None, float]:
    """Width of least held-out log loss, and the temperature that calibrates it.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    widths : sequence of SigmaPrior, float or None
        The widths to try.
    settings : SearchSettings
        How to search.
    cv : int, splitter or iterable
        Folds.
    kept : ndarray of shape (n_obs,)
        Position of each row among those given to ``fit``.
    classes : ndarray of shape (n_classes,)
        Class labels, for messages.
    calibrate : bool
        Whether a temperature is wanted.
    owner : str
        Name of the estimator, for messages.

    Returns
    -------
    width : SigmaPrior, float or None
        The best; the middle one, with a warning, where no row can be held out.
    temperature : float
        1 unless it is wanted and rows can be held out.
    """
    if len(widths) == 1 and not calibrate:
        return widths[0], 1.0
    held = held_out(rows, prototypes, widths, settings, cv=cv, kept=kept, classes=classes)
    if held is None:
        warnings.warn(
            f"{owner}: no labelled row could be held out by cv={cv} (the only row of a class "
            "never is), so sigma is the middle of its grid and the temperature 1; label more "
            "rows, or give sigma.",
            stacklevel=4,
        )
        return widths[len(widths) // 2], 1.0
    own = tempered(held.values, 1.0)[np.arange(held.labels.size), :, held.labels]
    best = int((held.weights @ own).argmax())
    if not calibrate:
        return widths[best], 1.0
    return widths[best], fit_temperature(held.values[:, best], held.labels, held.weights)


def search(
    rows: Dissimilarities, prototypes: Prototypes, sigma: Sigma | None, settings: SearchSettings
) -> tuple[FittedExemplars, ExemplarFit]:
    """Find exemplars.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : SigmaPrior, float or None
        The width, or None for GLVQ.
    settings : SearchSettings
        How to search.

    Returns
    -------
    fitted : FittedExemplars
        What predicts.
    fit : ExemplarFit
        How it was reached.
    """
    fit = fit_exemplars(
        rows,
        prototypes,
        sigma,
        rng=np.random.default_rng(settings.seed),
        optimizer=settings.optimizer,
        n_init=settings.n_init,
        max_iter=settings.max_iter,
    )
    return FittedExemplars(prototypes, fit.parameters, sigma), fit


def held_out(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    classes: np.ndarray,
) -> HeldOut | None:
    """Class log joints of rows that the exemplars were not searched for with.

    A row that is held out is no exemplar and has no likelihood.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    widths : sequence of SigmaPrior, float or None
        The widths to try.
    settings : SearchSettings
        How to search; folds have one restart.
    cv : int, splitter or iterable
        Folds.
    kept : ndarray of shape (n_obs,)
        Position of each row among those given to ``fit``.
    classes : ndarray of shape (n_classes,)
        Class labels, for messages.

    Returns
    -------
    HeldOut or None
        Values of shape (n_held_out, n_widths, n_classes); None where no class has
        rows enough for the folds.
    """
    # Rows go by their position, which is all that the folds need to know of them.
    named = Observations(
        np.arange(rows.n_obs, dtype=np.float64)[:, None],
        np.empty((rows.n_obs, 0), dtype=np.intp),
        rows.labels,
        rows.weights,
    )

    def predict(
        fold: int, train: Observations, test: Observations
    ) -> Float[np.ndarray, "test width label"]:
        seen, unseen = (part.real[:, 0].astype(np.intp) for part in (train, test))
        part = _restricted(rows, seen)
        seeded = replace(settings, n_init=1, seed=settings.seed + 1 + fold)
        found = [search(part, prototypes, width, seeded)[0] for width in widths]
        return np.stack(
            [
                fitted.class_log_joint(rows.values[unseen[:, None], fitted.parameters.exemplars])
                for fitted in found
            ],
            axis=1,
        )

    return hold_out(split_rows(cv, named, kept, settings.seed), predict, classes)


def _restricted(rows: Dissimilarities, seen: Int[np.ndarray, " seen"]) -> Dissimilarities:
    """The same matrix, where only some rows have a label or may be exemplars."""
    labels = np.full(rows.n_obs, -1)
    labels[seen] = rows.labels[seen]
    candidates = tuple(part[np.isin(part, seen)] for part in rows.candidates)
    return replace(rows, labels=labels, candidates=candidates)
