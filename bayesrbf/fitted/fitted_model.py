"""The interface of a fitted model of any family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf.numerics.log_posterior import LogPosterior, Predictor
from bayesrbf.numerics.log_sums import class_shares
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.table import Columns

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.fitted.fitted_mixture import FittedMixture


Named = dict[str, tuple[tuple[str, ...], np.ndarray]]
"""Arrays of a group of the DataTree, each with its dims."""


@dataclass(frozen=True)
class Axes:
    """Names along the dims of a fitted table: its columns, its rows and its classes."""

    columns: Columns | None
    obs: Shaped[np.ndarray, " obs"]
    classes: Shaped[np.ndarray, " label"] | None

    @property
    def of_graph(self) -> dict[str, Any]:
        """The same as the graphs of rows take them."""
        assert self.columns is not None  # rows that are only compared have no such graph
        named = {
            "feature_names": self.columns.real_names,
            "categorical_names": self.columns.categorical_names,
            "level_names": self.columns.all_levels,
            "obs_names": self.obs.tolist(),
        }
        return named if self.classes is None else named | {"class_names": self.classes.tolist()}


@dataclass(frozen=True)
class Description:
    """What the DataTree of a posterior says beside the draws: coords and two groups of data."""

    coords: Mapping[str, Any]
    observed: Named
    constant: Named
    scored: str
    """What the log likelihood is of. Two models can be compared if theirs are of the same."""


class FittedModel(ABC):
    """A fitted model: what predicting, drawing and declaring need, and nothing else.

    Rows are in the user's units everywhere. A classifier, a member of a stack, a companion that
    fills cells and a hidden layer are all of this kind.
    """

    @property
    @abstractmethod
    def density(self) -> FittedMixture | None:
        """The mixture that says what rows look like, where there is one."""

    @abstractmethod
    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log joint or log probabilities at the fitted point, up to a constant a row.

        The temperature matters where a mean over completions is taken of tempered
        probabilities: there, the result is what tempering would turn into that mean.
        """

    @abstractmethod
    def log_posterior(self, rows: Observations) -> LogPosterior:
        """The log posterior given training rows, in the coordinates of the graph.

        A model that is a point estimate only says so in a ValueError.
        """

    @abstractmethod
    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior."""

    @abstractmethod
    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates: classes and density apart."""

    def mixture_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The density under a posterior draw, in standard units; most families hold it fixed."""
        if self.density is None:
            raise ValueError(f"{type(self).__name__} has no density.")
        return self.density.parameters

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for: those of the labelled rows."""
        return class_shares(rows.labels, rows.weights, n_classes)

    @abstractmethod
    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The PyMC graph on training rows; a family may take more options."""

    @abstractmethod
    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names and training rows, for the DataTree."""

    def training_cells(self, rows: Observations) -> Observations:
        """Cells of the training rows; a model that compares rows keeps them beside."""
        return rows

    def observed(self, rows: Observations) -> Named:
        """Rows as a group of the DataTree."""
        return observed_rows(rows)


def observed_rows(rows: Observations) -> Named:
    """Cells of rows as the observed node of the graph, NaN where hidden."""
    codes = np.column_stack([rows.labels, rows.codes]).astype(float)
    codes[codes < 0] = np.nan
    cells = np.column_stack([codes[:, :1], rows.real, codes[:, 1:], *rows.further])
    return {names.OBSERVED: ((names.OBS, names.COLUMN), cells)}


def row_weights(rows: Observations) -> Named:
    """What the graph knows about the rows beside their cells."""
    return {"row_weight": ((names.OBS,), rows.weights)}
