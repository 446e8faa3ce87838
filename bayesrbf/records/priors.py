"""Declared priors: what a user may set, and what it resolves to on a table."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from bayesrbf.records.mixture import Standardisation
from bayesrbf.records.specification import MixtureSpecification, Order
from bayesrbf.records.stored import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    Requirements,
    scales,
    stored,
    within,
)


@stored
class MixturePrior:
    """Hyper-parameters of a mixture; they are its only regularisation.

    Attributes
    ----------
    degrees_of_freedom : float or None
        Strength nu0 of the covariance prior in rows. None: D for full, 0.3 D
        for shared full, 2 for all other covariances.
    mean_precision : float
        Strength kappa0 of the prior on the means in rows.
    weight_concentration : float
        Dirichlet parameter of the component weights.
    class_concentration : float
        Dirichlet parameter of the class probabilities.
    category_strength : float
        Rows of the column's own marginal added to each component's levels.
    """

    degrees_of_freedom: float | None = None
    mean_precision: float = 0.1
    weight_concentration: float = 1.5
    class_concentration: float = 2.0
    category_strength: float = 1.0

    def __post_init__(self) -> None:
        bounds = {
            "degrees_of_freedom": (self.degrees_of_freedom, 0.0),
            "mean_precision": (self.mean_precision, 0.0),
            "weight_concentration": (self.weight_concentration, 1.0),
            "class_concentration": (self.class_concentration, 1.0),
            "category_strength": (self.category_strength, 0.0),
        }
        for name, (value, bound) in bounds.items():
            if value is None and name == "degrees_of_freedom":
                continue
            if value is None or not (np.isfinite(value) and value > bound):
                raise ValueError(
                    f"MixturePrior.{name} must be finite and greater than {bound:g}; "
                    f"received {value!r}."
                )

    def weakened(self, part: float, specification: MixtureSpecification) -> MixturePrior:
        """A copy whose covariance prior is weaker by the factor ``part``."""
        if part == 1:
            return self
        declared = self.degrees_of_freedom
        strength = specification.prior_rows if declared is None else declared
        return replace(self, degrees_of_freedom=part * strength)

    def resolve(
        self,
        specification: MixtureSpecification,
        units: Standardisation,
        marginals: tuple[Float[np.ndarray, " _"], ...],
    ) -> MixtureHyperparameters:
        """Fix every number of the prior for one table, in the user's units.

        The units of the columns are the prior's centre and scale; ``marginals`` are the level
        probabilities of each categorical column, positive.
        """
        freedom = self.degrees_of_freedom
        freedom = specification.prior_rows if freedom is None else float(freedom)
        return MixtureHyperparameters(
            degrees_of_freedom=freedom,
            mean_precision=float(self.mean_precision),
            location=units.location,
            scale=units.scale,
            weight_concentration=float(self.weight_concentration),
            class_concentration=float(self.class_concentration),
            category_concentrations=tuple(1 + self.category_strength * m for m in marginals),
        )


@stored
class MixtureHyperparameters:
    """The resolved prior of a mixture on one table, in the user's units."""

    degrees_of_freedom: float
    """nu0."""
    mean_precision: float
    """kappa0."""
    location: Float[np.ndarray, " feature"]
    """Prior mean m0 of the component means."""
    scale: Float[np.ndarray, " feature"]
    """Square roots of the diagonal of the prior covariance S0."""
    weight_concentration: float
    """Dirichlet parameter of the component weights."""
    class_concentration: float
    """Dirichlet parameter of the class probabilities."""
    category_concentrations: tuple[Float[np.ndarray, " _"], ...]
    """Dirichlet parameters of the level probabilities, one array per categorical column."""

    @cached_property
    def units(self) -> Standardisation:
        """Location and scale as a change of units."""
        return Standardisation(self.location, self.scale)

    def standardised(self) -> MixtureHyperparameters:
        """The prior in standard units: location 0 and scale 1; the rest is free of units."""
        zeros = np.zeros_like(self.location)
        return replace(self, location=zeros, scale=zeros + 1)

    def reordered(self, order: Order) -> MixtureHyperparameters:
        """Put the columns in another order."""
        return replace(
            self,
            location=self.location[order.features],
            scale=self.scale[order.features],
            category_concentrations=tuple(
                self.category_concentrations[place] for place in order.categories
            ),
        )

    def __laws__(self) -> Requirements:
        yield within(self.scale, 1e-305), "positive scales"
        yield scales(self.mean_precision), "a positive strength of the means"
        least = SMALLEST_SCALE if self.location.size else 0  # without real columns it is 0
        strength = within(self.degrees_of_freedom, least, LARGEST_SCALE)
        yield strength, "a positive strength of covariances"
        concentrations = self.weight_concentration, self.class_concentration
        yield scales(concentrations), "positive concentrations"
        yield all(map(scales, self.category_concentrations)), "positive concentrations of levels"


@stored
class GammaPrecisions:
    """A prior of the precisions: alpha ~ Gamma(shape, rate), each on its own.

    Attributes
    ----------
    shape : float
        Positive; ``2 shape`` is the degrees of freedom of the Student t that a
        weight has when its precision is integrated out.
    rate : float
        Positive: at 0 the posterior would be improper.
    """

    shape: float = 0.5
    rate: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self, shape=self.shape, rate=self.rate)


@stored
class HorseshoePrecisions:
    r"""The regularised horseshoe: many weights near zero, a few free.

    .. math:: \alpha_h = (\tau \lambda_h)^{-2} + s^{-2}, \quad
        \tau \sim C^+(0, \tau_0), \; \lambda_h \sim C^+(0, 1)

    Attributes
    ----------
    scale : float
        Scale tau_0 of the global half-Cauchy.
    slab : float
        Standard deviation s that no weight's prior exceeds.

    References
    ----------
    Piironen and Vehtari (2017), Electronic Journal of Statistics 11,
    5018-5051, section 2.3, with a fixed slab.
    """

    scale: float = 0.1
    slab: float = 5.0

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale, slab=self.slab)


PrecisionPrior = GammaPrecisions | HorseshoePrecisions


def _check_positive(record: PrecisionPrior, **values: float) -> None:
    """Refuse hyper-parameters that are no positive numbers."""
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"{type(record).__name__}.{name} must be finite and positive; received {value!r}."
            )
