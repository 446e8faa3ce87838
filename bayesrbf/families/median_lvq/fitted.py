"""Fitted exemplars, their training rows, and the search for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.base import BaseEstimator

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import to_prediction
from bayesrbf.base.hidden_share import missing_share
from bayesrbf.base.log_posterior import OneByOne, Predictor
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.records import ANY_NUMBER, Requirements, ascending, scales, stored, within
from bayesrbf.base.rows import Observations, Order, Units
from bayesrbf.families.median_lvq.dissimilarities import (
    GOWER,
    PRECOMPUTED,
    Gower,
    Metric,
    check_values,
    comparable_rows,
    pairwise,
)
from bayesrbf.families.median_lvq.objectives import class_log_joint, class_margins, responsibilities
from bayesrbf.families.median_lvq.records import (
    Dissimilarities,
    MedianLVQParameters,
    Prototypes,
    Sigma,
)
from bayesrbf.families.median_lvq.search import ExemplarFit, MedianLVQLogPosterior, fit_exemplars
from bayesrbf.fit.model import Axes, Description, FittedModel, Named
from bayesrbf.inference.draws import Draws
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    import pymc as pm


# Training rows as an exemplar model keeps them, to compare new rows with them.


@stored
class MatrixSource:
    """New rows come with their dissimilarities to the training rows."""

    kept: Int[np.ndarray, " obs"]  # Column of every training row in the matrix.
    metric = PRECOMPUTED
    cells = None  # A row has none that could be hidden.

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.kept.size

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """New rows compared to chosen training rows."""
        return compared(np.asarray(X[:, self.kept[chosen]]))

    def stored(self, values: Real[np.ndarray, "obs obs"], n_columns: int) -> Any:
        """A training row as new rows come: its dissimilarities, 0 to rows that were left out."""
        row = np.zeros((1, n_columns))
        row[:, self.kept] = values[:1]
        return row

    def __laws__(self) -> Requirements:
        yield within(self.kept, 0), "columns of a matrix"


@stored
class TableSource:
    """New rows are rows of a table with holes, compared by Gower's dissimilarity."""

    columns: table.Columns
    gower: Gower
    rows: Observations
    handle_unknown: str
    order: Order  # The canonical order of columns, in which ``gower`` and ``rows`` have them.
    metric = GOWER

    @property
    def cells(self) -> Observations:
        """Training rows, columns and classes in the order of the user's table."""
        return self.rows.reordered(self.order.inverse)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.n_obs

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """New rows compared to chosen training rows."""
        rows = table.encode(X, self.columns, handle_unknown=self.handle_unknown)
        return self.to_cells(rows, chosen)

    def to_cells(self, rows: Observations, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """Encoded rows compared to chosen training rows."""
        values = self.gower.between(rows.reordered(self.order), self.rows.take(chosen))
        return compared(values, rows)

    def stored(self, values: Real[np.ndarray, "obs obs"], n_columns: int) -> Any:
        """A training row as new rows come: its cells."""
        first = self.cells.take(np.arange(1))
        return table.decode(first.real, first.codes, self.columns, [])

    def __laws__(self) -> Requirements:
        columns, gower, rows, order = self.columns, self.gower, self.rows, self.order
        yield self.handle_unknown in ("missing", "error"), "a way with unseen levels"
        sizes = len(columns.real_names), len(columns.categorical_names)
        yield (gower.ranges.size, gower.code_holes.size) == sizes, "ranges of its columns"
        yield (rows.real.shape[1], rows.codes.shape[1]) == sizes, "rows of its columns"
        yield (order.features.size, order.categories.size) == sizes, "an order of its columns"


@stored
class VectorSource:
    """New rows are compared by a metric of scikit-learn or by a callable."""

    rows: Shaped[np.ndarray, "obs column"] = field(metadata=ANY_NUMBER)
    metric: Metric
    cells = None  # They are compared whole.

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.rows)

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """New rows compared to chosen training rows."""
        return compared(pairwise(X, self.rows[chosen], self.metric))

    def stored(self, values: Real[np.ndarray, "obs obs"], n_columns: int) -> Any:
        """A training row as new rows come: itself."""
        return self.rows[:1]

    def __laws__(self) -> Requirements:
        finite = self.rows.dtype.kind in "OU" or bool(np.isfinite(self.rows).all())
        yield finite, "finite rows"


Source = MatrixSource | TableSource | VectorSource  # Compares new rows to training rows.


def compared(
    columns: Real[np.ndarray, "obs needed"], cells: Observations | None = None
) -> Observations:
    """Dissimilarities to the needed rows as cells, and the share of hidden cells beside them."""
    n_obs = len(columns)
    hidden = np.zeros(n_obs) if cells is None else missing_share(cells)
    return Observations(
        columns.astype(np.float64),
        np.empty((n_obs, 0), dtype=np.intp),
        np.full(n_obs, -1),
        np.ones(n_obs),
        hidden=hidden,
    )


# Fitted exemplars, and the search for them.


@dataclass(frozen=True)
class ComparedRows:
    """Training rows compared to each other."""

    source: Source
    values: Real[np.ndarray, "obs obs"]  # ``d(x_n, x_m)``.
    labels: Int[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]  # Row weights, copies of a row added up.
    units: Units | None
    kept: Int[np.ndarray, " obs"]
    """Position of each row (of its first copy) among the rows given to ``fit``."""
    copies: Int[np.ndarray, "2 given"]
    """Position of each row given to ``fit`` that weighs something, and its place among these."""
    repeated: int = 0
    """Rows that are copies of an earlier one beyond chance."""


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search for exemplars, as the estimator's arguments describe them."""

    n_init: int
    max_iter: int
    seed: int


@stored
class FittedExemplars(FittedModel):
    """Fitted exemplars among compared training rows.

    The cells of a row are its dissimilarities to the training rows that are needed: those that
    are an exemplar at the fitted point or in a posterior draw.
    """

    source: Source  # Compares new rows to training rows.
    table: Dissimilarities  # Training rows compared to each other.
    prototypes: Prototypes
    parameters: MedianLVQParameters
    sigma: Sigma | None  # What is known of the width; None for GLVQ, which has none.
    needed: Int[np.ndarray, " needed"]  # Training rows that are needed, ascending.

    @property
    def density(self) -> None:
        """None: no density of the rows is fitted."""
        return None

    def training_cells(self, rows: Observations) -> Observations:
        """Cells of the training rows, where the table has columns."""
        if self.source.cells is None:
            raise ValueError("Rows that are compared as a whole have no cells of their own.")
        return self.source.cells

    @property
    def n_scored(self) -> int:
        """Number of compared training rows."""
        return self.table.n_obs

    def training_rows(self, rows: Observations) -> Observations:
        """Training rows, compared to the needed rows."""
        compared_rows = compared(self.table.values[:, self.needed], self.source.cells)
        return replace(compared_rows, labels=self.table.labels, weights=self.table.weights)

    def compared(self, X: Any, shell: BaseEstimator) -> Observations:
        """New rows, compared to the needed rows."""
        given = comparable_rows(X, self.source.metric, shell, reset=False)
        rows = self.source.to(given, self.needed)
        check_values(rows.real, type(shell).__name__)
        return rows

    def seen(self, cells: Observations) -> Observations:
        """Cells of a table, compared to the needed rows."""
        source = cast(TableSource, self.source)  # no other metric hides single cells
        return source.to_cells(cells, self.needed)

    def hidden_share(
        self, rows: Observations, columns: Columns | None
    ) -> Float[np.ndarray, " obs"]:
        """Share of the cells that every row lacked when it was compared."""
        assert rows.hidden is not None  # compared rows know it
        return rows.hidden

    def stored_row(self, n_columns: int) -> object:
        """A training row, as new rows come."""
        return self.source.stored(self.table.values, n_columns)

    def with_draws(self, draws: Draws) -> FittedExemplars:
        """The model whose rows are compared to every exemplar of posterior draws, too."""
        exemplars = self.parameters.exemplars
        drawn = np.rint(draws.theta[..., : exemplars.size]).astype(np.intp)
        return replace(self, needed=np.union1d(exemplars, drawn))

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Log joint of RSLVQ or margins of GLVQ."""
        columns = rows.real[:, np.searchsorted(self.needed, self.parameters.exemplars)]
        return exemplar_log_joint(columns, self.prototypes, self.parameters)

    def log_posterior(self, rows: Observations) -> MedianLVQLogPosterior:
        """The log posterior of exemplars and width given the whole table of training rows."""
        if self.sigma is None:
            raise AttributeError(
                "objective='glvq' has no likelihood and so declares no posterior; use "
                "objective='rslvq'."
            )
        return MedianLVQLogPosterior(self.table, self.prototypes, self.sigma)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior."""
        return log_posterior.pack(self.parameters)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions under any exemplars and width."""
        return OneByOne(partial(self._predict, log_posterior, rows))

    def _predict(
        self, log_posterior: Any, rows: Observations, theta: Float[np.ndarray, " coordinate"]
    ) -> ClassPrediction:
        """Summed kernels of the classes at one point."""
        places = np.searchsorted(self.needed, log_posterior.exemplars(theta))
        joint = class_log_joint(
            rows.real[:, places], log_posterior.prototypes, log_posterior.width(theta)
        )
        return to_prediction(joint)

    def mean_responsibilities(
        self, log_posterior: Any, rows: Observations, points: Float[np.ndarray, "draw coordinate"]
    ) -> Float[np.ndarray, "obs needed label"]:
        """Part of each exemplar in the answer for each row, by class, averaged over points.

        NaN where a needed row is no exemplar of the class at any of the points.
        """
        mean = np.zeros((rows.n_obs, self.needed.size, len(self.prototypes.class_slices)))
        members = np.zeros(mean.shape[1:], dtype=bool)
        for point in points:
            places = np.searchsorted(self.needed, log_posterior.exemplars(point))
            of_point = responsibilities(rows.real[:, places], log_posterior.width(point))
            for place, label, one in zip(places, self.prototypes.classes, of_point.T, strict=True):
                mean[:, place, label] += one / len(points)
                members[place, label] = True
        # NaN says that the row is no exemplar; 0 would say that it has no part in the answer.
        mean[:, ~members] = np.nan
        return mean

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of exemplars and width on the whole table of training rows."""
        from bayesrbf.models.median_lvq import declare_median_lvq

        assert axes.classes is not None
        log_posterior = self.log_posterior(rows)
        return declare_median_lvq(
            self.table,
            self.prototypes,
            log_posterior.sigma,
            class_names=axes.classes.tolist(),
            obs_names=axes.obs.tolist(),
        )

    def observed(self, rows: Observations) -> Named:
        """Dissimilarities as a group of the DataTree."""
        return {"dissimilarity": ((names.OBS, "exemplar"), rows.real)}

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names of prototypes and their classes, and the labels of the training rows."""
        assert axes.classes is not None
        labels = np.where(self.table.labels < 0, np.nan, self.table.labels)
        classes = axes.classes[list(self.prototypes.classes)]
        coords = {
            names.OBS: axes.obs,
            names.LABEL: axes.classes,
            names.PROTOTYPE: np.arange(classes.size),
        }
        return Description(
            coords,
            {names.OBSERVED_LABEL: ((names.OBS,), labels)},
            {
                "row_weight": ((names.OBS,), self.table.weights),
                "prototype_label": ((names.PROTOTYPE,), classes),
            },
            names.OBSERVED_LABEL,
        )

    def __laws__(self) -> Requirements:
        point, n = self.parameters, self.table.n_obs
        yield point.exemplars.size == self.prototypes.number, "an exemplar of every prototype"
        yield within(point.exemplars, 0, n) and within(self.needed, 0, n), "rows of its table"
        yield ascending(self.needed), "needed rows in order"
        yield bool(np.isin(point.exemplars, self.needed).all()), "exemplars among the needed rows"
        classes = self.prototypes.classes[-1] + 1
        yield classes == self.table.n_classes, "prototypes of every class"
        yield self.source.n_rows == n, "as many stored rows as compared ones"
        yield (point.sigma is None) == (self.sigma is None), "one width"
        yield not isinstance(self.sigma, float) or scales(self.sigma), "a positive width"


def candidates_of(
    labels: Int[np.ndarray, " obs"], n_classes: int
) -> tuple[Int[np.ndarray, " candidate"], ...]:
    """Rows that may be an exemplar of each class: its own."""
    return tuple(np.flatnonzero(labels == label) for label in range(n_classes))


def search(
    rows: Dissimilarities,
    prototypes: Prototypes,
    sigma: Sigma | None,
    settings: SearchSettings,
    *,
    start: Int[np.ndarray, " prototype"] | None = None,
    wider: Sequence[float] = (),
) -> ExemplarFit:
    """Find exemplars; ``wider`` are widths through which the search passes first."""
    return fit_exemplars(
        rows,
        prototypes,
        sigma,
        rng=np.random.default_rng(settings.seed),
        n_init=settings.n_init,
        max_iter=settings.max_iter,
        start=start,
        wider=wider,
    )


def exemplar_log_joint(
    columns: Real[np.ndarray, "obs prototype"],
    prototypes: Prototypes,
    parameters: MedianLVQParameters,
) -> Float[np.ndarray, "obs label"]:
    """Log joint of RSLVQ or margins of GLVQ, of dissimilarities to every exemplar."""
    if parameters.sigma is None:
        return class_margins(columns, prototypes)
    return class_log_joint(columns, prototypes, parameters.sigma)
