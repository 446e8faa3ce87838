"""Fitted exemplars and their training rows."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int, Real, Shaped

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import to_prediction
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.records import ANY_NUMBER, Requirements, scales, stored, within
from bayesrbf.base.rows import Observations, Order
from bayesrbf.families.median_lvq.dissimilarities import (
    PRECOMPUTED,
    Gower,
    Metric,
    WholeRows,
    check_values,
    learn_gower,
    pairwise,
)
from bayesrbf.families.median_lvq.objectives import class_log_joint, class_margins, responsibilities
from bayesrbf.families.median_lvq.records import (
    Dissimilarities,
    MedianLVQParameters,
    Prototypes,
    Sigma,
)
from bayesrbf.families.median_lvq.search import MedianLVQLogPosterior
from bayesrbf.fit.model import Axes, Description, FittedModel
from bayesrbf.fit.table import TrainingTable

if TYPE_CHECKING:
    import pymc as pm


# Training rows as an exemplar model keeps them, to compare new rows with them.


@stored
class MatrixSource:
    """New rows come with their dissimilarities to the training rows."""

    matrix_columns: Int[np.ndarray, " obs"]  # Column of every training row in the matrix.

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.matrix_columns.size

    def to(self, rows: Observations, chosen: Int[np.ndarray, " chosen"]) -> Compared:
        """Dissimilarities of rows to the ``chosen`` training rows, in the user's precision."""
        assert rows.whole is not None  # they are read whole
        columns = self.matrix_columns[chosen]
        if np.array_equal(columns, np.arange(rows.whole.shape[1])):
            return rows.whole  # a square matrix is not copied
        return rows.whole[:, columns]

    def __laws__(self) -> Requirements:
        yield within(self.matrix_columns, 0), "columns of a matrix"


@stored
class TableSource:
    """New rows are rows of a table with holes, compared by Gower's dissimilarity."""

    gower: Gower
    rows: Observations
    order: Order  # The canonical order of columns, in which ``gower`` and ``rows`` have them.

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.n_obs

    def to(self, rows: Observations, chosen: Int[np.ndarray, " chosen"]) -> Compared:
        """Dissimilarities of rows to the ``chosen`` training rows."""
        reference = self.rows.take(chosen)
        dtype = _dtype(rows.n_obs * reference.n_obs)
        return self.gower.between(rows.reordered(self.order), reference, dtype)

    def __laws__(self) -> Requirements:
        gower, rows, order = self.gower, self.rows, self.order
        sizes = rows.real.shape[1], rows.codes.shape[1]
        yield (gower.ranges.size, gower.code_holes.size) == sizes, "ranges of its columns"
        yield (order.features.size, order.categories.size) == sizes, "an order of its columns"


@stored
class VectorSource:
    """New rows are compared by a metric of scikit-learn or by a callable."""

    rows: Shaped[np.ndarray, "obs column"] = field(metadata=ANY_NUMBER)
    metric: Metric

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.rows)

    def to(self, rows: Observations, chosen: Int[np.ndarray, " chosen"]) -> Compared:
        """Dissimilarities of rows to the ``chosen`` training rows."""
        assert rows.whole is not None  # they are read whole
        reference = self.rows[chosen]
        return pairwise(rows.whole, reference, self.metric, _dtype(rows.n_obs * len(reference)))

    def __laws__(self) -> Requirements:
        finite = self.rows.dtype.kind in "OU" or bool(np.isfinite(self.rows).all())
        yield finite, "finite rows"


Source = MatrixSource | TableSource | VectorSource  # Compares rows to training rows.
Compared = Real[np.ndarray, "obs chosen"]
"""Dissimilarities of rows to chosen training rows."""

LARGEST_DOUBLE: Final = 2**27
"""Entries (1 GiB) beyond which a matrix computed here is held in float32."""


def _dtype(n_entries: int) -> type[np.floating]:
    """Precision of a matrix of ``n_entries`` dissimilarities."""
    return np.float64 if n_entries <= LARGEST_DOUBLE else np.float32


def source_of(training: TrainingTable) -> Source:
    """Source of dissimilarities of new rows to the rows of a training table."""
    rows, reader = training.rows, training.whole
    if not isinstance(reader, WholeRows):
        # Sums over columns in one order, whatever the table's: ties must stay ties.
        order = table.canonical_order(rows)
        canonical = rows.reordered(order)
        return TableSource(learn_gower(canonical), canonical, order)
    assert rows.whole is not None  # they are read whole
    if reader.metric == PRECOMPUTED:
        return MatrixSource(training.row_indices)
    return VectorSource(rows.whole, reader.metric)


class ExemplarPredictor(Predictor):
    """Class probabilities of rows under draws; every exemplar is compared to the rows once."""

    def __init__(self, model: FittedExemplars, log_posterior: Any, rows: Observations) -> None:
        self._model, self._log_posterior, self._rows = model, log_posterior, rows
        self._known = np.empty(0, dtype=np.intp)
        self._columns = np.empty((rows.n_obs, 0))

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Class probabilities and summed kernels under every draw."""
        log_posterior = self._log_posterior
        exemplars = [log_posterior.exemplars(theta) for theta in thetas]
        new = np.setdiff1d(exemplars, self._known)
        if new.size:  # metrics of scikit-learn refuse to compare with no row
            self._known = np.append(self._known, new)
            self._columns = np.hstack([self._columns, self._model.compared(self._rows, new)])
        order = np.argsort(self._known)
        ordered = self._known[order]
        predictions = []
        for theta, chosen in zip(thetas, exemplars, strict=True):
            columns = self._columns[:, order[np.searchsorted(ordered, chosen)]]
            width = log_posterior.width(theta)
            predictions.append(
                to_prediction(class_log_joint(columns, log_posterior.prototypes, width))
            )
        return ClassPrediction(
            np.stack([prediction.log_probabilities for prediction in predictions]),
            np.stack([prediction.log_density for prediction in predictions]),
        )


@stored
class FittedExemplars(FittedModel):
    """Fitted exemplars among compared training rows."""

    source: Source  # Compares rows to training rows.
    table: Dissimilarities  # Training rows compared to each other.
    prototypes: Prototypes
    parameters: MedianLVQParameters
    sigma: Sigma | None  # Prior or fixed value of the width; None for GLVQ, which has none.

    @property
    def density(self) -> None:
        """None: no density of the rows is fitted."""
        return None

    @property
    def n_scored(self) -> int:
        """Number of compared training rows."""
        return self.table.n_obs

    def labelled(self, rows: Observations) -> Bool[np.ndarray, " scored"]:
        """Whether a compared row has a label."""
        return self.table.labels >= 0

    def compared(
        self, rows: Observations, chosen: Int[np.ndarray, " chosen"]
    ) -> Float[np.ndarray, "obs chosen"]:
        """Dissimilarities of rows to the ``chosen`` training rows, checked, in float64."""
        values = self.source.to(rows, chosen)
        check_values(values)
        return values.astype(np.float64)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Log joint of RSLVQ or margins of GLVQ."""
        columns = self.compared(rows, self.parameters.exemplars)
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
        """Unconstrained coordinates of the fitted point."""
        return log_posterior.pack(self.parameters)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions under any exemplars and width."""
        return ExemplarPredictor(self, log_posterior, rows)

    def mean_responsibilities(
        self,
        log_posterior: Any,
        columns: Float[np.ndarray, "obs needed"],
        needed: Int[np.ndarray, " needed"],
        points: Float[np.ndarray, "draw coordinate"],
    ) -> Float[np.ndarray, "obs needed label"]:
        """Responsibility of each exemplar for each row, by class, averaged over points.

        ``columns`` are dissimilarities to the ``needed`` rows: the exemplars of all points,
        ascending. NaN where a needed row is no exemplar of the class at any of the points.
        """
        mean = np.zeros((*columns.shape, len(self.prototypes.class_slices)))
        members = np.zeros(mean.shape[1:], dtype=bool)
        for point in points:
            positions = np.searchsorted(needed, log_posterior.exemplars(point))
            of_point = responsibilities(columns[:, positions], log_posterior.width(point))
            for j, label, share in zip(positions, self.prototypes.classes, of_point.T, strict=True):
                mean[:, j, label] += share / len(points)
                members[j, label] = True
        # NaN: no exemplar of the class. 0 would be an exemplar without responsibility.
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
        yield within(point.exemplars, 0, n), "rows of its table"
        classes = self.prototypes.classes[-1] + 1
        yield classes == self.table.n_classes, "prototypes of every class"
        yield self.source.n_rows == n, "as many stored rows as compared ones"
        yield (point.sigma is None) == (self.sigma is None), "one width"
        yield not isinstance(self.sigma, float) or scales(self.sigma), "a positive width"


def candidates_of(
    labels: Int[np.ndarray, " obs"], n_classes: int
) -> tuple[Int[np.ndarray, " candidate"], ...]:
    """Candidate exemplars of each class: the rows with its label."""
    return tuple(np.flatnonzero(labels == label) for label in range(n_classes))


def exemplar_log_joint(
    columns: Real[np.ndarray, "obs prototype"],
    prototypes: Prototypes,
    parameters: MedianLVQParameters,
) -> Float[np.ndarray, "obs label"]:
    """Log joint of RSLVQ or margins of GLVQ, of dissimilarities to every exemplar."""
    if parameters.sigma is None:
        return class_margins(columns, prototypes)
    return class_log_joint(columns, prototypes, parameters.sigma)
