"""From compared rows to fitted exemplars: the steps that every fit and fold shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real as RealNumber
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf.estimators.checks import components_per_class
from bayesrbf.exemplars import (
    Dissimilarities,
    MedianLVQParameters,
    MedianLVQPrior,
    Prototypes,
    Sigma,
)
from bayesrbf.numerics.median_lvq.exemplar_search import ExemplarFit, Optimizer, fit_exemplars
from bayesrbf.numerics.median_lvq.glvq import class_margins
from bayesrbf.numerics.median_lvq.rslvq import class_log_joint

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

    @property
    def narrowing(self) -> bool:
        """Whether a search may begin where that of a wider kernel ended.

        The generalised EM moves little once it has begun: it starts anew.
        """
        return self.optimizer == "swap"


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


def search(
    rows: Dissimilarities,
    prototypes: Prototypes,
    sigma: Sigma | None,
    settings: SearchSettings,
    *,
    start: Int[np.ndarray, " prototype"] | None = None,
    wider: Sequence[float] = (),
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
    start : ndarray of shape (n_prototypes,), optional
        The only start, in place of random ones.
    wider : sequence of float
        Widths, from the widest on, that are searched before.

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
        start=start,
        wider=wider,
    )
    return FittedExemplars(prototypes, fit.parameters, sigma), fit
