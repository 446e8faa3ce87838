r"""Components and missing cells of a table, drawn given the parameters.

Components are drawn with the missing cells summed out, :math:`p(k \mid x_o)`, among those of
the row's class where its label is known. Given its component, a row's missing cells are
normal; with y a draw from the whole component they are

.. math:: x_m = y_m - P_{mm}^{-1} P_{mo} (x_o - y_o).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.expectation import Expectation, prepare
from bayesrbf.numerics.mixture.gaussian import FullComponents
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations, in_blocks
from bayesrbf.records.specification import MixtureSpecification


def of_class(
    parameters: MixtureParameters, part: slice, groups: Int[np.ndarray, " group"]
) -> MixtureParameters:
    """The components and covariance groups of one class as a mixture of one class."""
    return replace(parameters.taken(part, groups), class_probabilities=np.ones(1))


@dataclass(frozen=True)
class _Open:
    """Rows whose labels allow the same several components.

    ``groups`` are the covariances of those components; ``expectation`` has the rows prepared for a
    mixture of those components alone.
    """

    rows: Int[np.ndarray, " row"]
    components: slice
    groups: Int[np.ndarray, " group"]
    expectation: Expectation

    def draw(
        self, parameters: MixtureParameters, rng: np.random.Generator
    ) -> Int[np.ndarray, " row"]:
        """Draw the component of every row, its missing cells summed out."""
        part, mine = self.components, parameters
        if part.stop - part.start < parameters.weights.size:
            mine = of_class(parameters, part, self.groups)
        responsibilities = log_sum_exp(self.expectation.component_log_joint(mine), axis=1)[1]
        return part.start + draw_categories(responsibilities, rng)


class ComponentDraws:
    """Draws of the component of every row of one table, in standard units.

    Row weights are not used. ``certain`` has the component of every row where the labels leave each
    row only one, else it is None.
    """

    def __init__(self, observations: Observations, specification: MixtureSpecification) -> None:
        every = slice(0, specification.n_components)
        self._certain = np.zeros(observations.n_obs, dtype=np.intp)
        self._open: list[_Open] = []
        for label, part in [*enumerate(specification.class_slices), (-1, every)]:
            rows = np.flatnonzero(observations.labels == label)
            self._certain[rows] = part.start
            size = part.stop - part.start
            if size == 1 or not rows.size:
                continue
            classes = specification.component_class if part == every else (0,) * size
            # Where the label is known, components of other classes have probability 0: they are
            # left out.
            own = replace(specification, component_class=classes)
            groups = np.unique(specification.covariance_group[part])
            hidden = observations.take(rows).unlabelled()
            self._open.append(_Open(rows, part, groups, prepare(hidden, own)))
        self.certain = None if self._open else self._certain

    def draw(
        self, parameters: MixtureParameters, rng: np.random.Generator
    ) -> Int[np.ndarray, " obs"]:
        """Draw the component of every row given the parameters in standard units."""
        components = self._certain.copy()
        for part in self._open:
            components[part.rows] = part.draw(parameters, rng)
        return components


class CellDraws:
    """Draws of the missing reals of one table in standard units.

    ``are_known`` says that there is no cell to draw.
    """

    def __init__(
        self, real: Float[np.ndarray, "obs feature"], specification: MixtureSpecification
    ) -> None:
        self._real = real
        self._group = specification.covariance_group
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []
        n_missing = laws_of(specification).reals.holes(~np.isnan(real))
        for m in np.unique(n_missing[n_missing > 0]):
            # Rows with as many holes have systems of one size, which are solved together.
            same = np.flatnonzero(n_missing == m)
            for part in in_blocks(same.size, real.shape[1] ** 2):
                rows = same[part]
                places = np.nonzero(np.isnan(real[rows]))[1].reshape(rows.size, int(m))
                self._blocks.append((rows, places))
        self.are_known = not self._blocks

    def draw(
        self,
        parameters: MixtureParameters,
        components: Int[np.ndarray, " obs"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "obs feature"]:
        """Complete rows: the missing cells drawn given every row's component.

        Under diagonal and spherical covariances the rows come back as they are: the posterior of
        the parameters needs no missing cell there.
        """
        if not self._blocks:
            return self._real
        factors = parameters.precisions_cholesky[self._group]
        normal = FullComponents(parameters.means, factors)
        real = self._real.copy()
        for rows, places in self._blocks:
            mine = components[rows]
            noise = rng.standard_normal((rows.size, real.shape[1], 1))
            # A draw of the whole row is corrected to agree with the observed cells. Only the block
            # of the missing cells is solved; no conditional covariance is factored.
            drawn = normal.means[mine] + (normal.back[mine] @ noise)[:, :, 0]
            lane = np.arange(rows.size)[:, None]
            deviation = real[rows] - drawn
            # Only observed cells pull.
            deviation[lane, places] = 0.0
            precisions = normal.precisions[mine]
            pull = (precisions @ deviation[:, :, None])[lane, places]
            inner = precisions[lane[:, :, None], places[:, :, None], places[:, None, :]]
            step = np.linalg.solve(inner, pull)[:, :, 0]
            real[rows[:, None], places] = drawn[lane, places] - step
        return real
