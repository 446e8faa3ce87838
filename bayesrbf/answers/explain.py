"""Explanations: contributions of cells to log odds, and components of intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import comb
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import to_log_odds
from bayesrbf.base.rows import AT_ONCE, Observations, in_blocks
from bayesrbf.fit.arguments import Rule, positive
from bayesrbf.fit.asking import Fit, new_rows, refuse
from bayesrbf.reading.notes import listed, warn

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.families.estimator import Estimator


# Shapley values of the cells of rows: what each adds to a value, averaged over all orders.
#
# With m observed cells and v(S) the value when only the cells S are shown,
#
# .. math:: \phi_i = \sum_{S \not\ni i} \frac{|S|! \, (m - |S| - 1)!}{m!}
#     \bigl(v(S \cup i) - v(S)\bigr), \qquad \sum_i \phi_i = v(\text{all}) - v(\text{none}).
#
# Few cells: all :math:`2^m` coalitions. Many: the mean over random orders, each beside its reverse.
# In one of the two a cell comes early and in the other late, so their errors mostly cancel.


Value = Callable[[Int[np.ndarray, " coalition"], Bool[np.ndarray, "coalition column"]], np.ndarray]
"""Maps rows, and the cells that are shown of each, to values: an array of coalition and label."""

NUMBERS: Final = 128
"""Numbers that evaluating one coalition of a row takes."""
ROUND: Final = 16
"""Pairs of orders between two looks at the standard error."""


@dataclass(frozen=True)
class Effort:
    """Limits on the effort for Shapley values."""

    exact: int = 12
    """Most observed cells of a row, the pattern among them, whose coalitions are all evaluated."""
    tolerance: float = 0.05
    """Relative standard error at which sampling of orders stops."""
    max_pairs: int = 256
    """Most pairs of an order and its reverse."""
    seed: int = 0
    """Every row starts from it, so that its values do not depend on the other rows."""


@dataclass(frozen=True)
class Attribution:
    """Shapley values of the observed cells of every row; NaN where the cell is missing."""

    shapley: Float[np.ndarray, "obs column label"]
    left_out: Float[np.ndarray, "obs column label"]
    """``v(all) - v(all without the cell)``."""
    standard_error: Float[np.ndarray, "obs column label"]
    """Standard error of the Shapley value; 0 where all coalitions were evaluated."""
    whole: Float[np.ndarray, "obs label"]
    """Value of all observed cells."""
    base: Float[np.ndarray, "obs label"]
    """Value without a cell."""
    evaluations: Int[np.ndarray, " obs"]
    """Coalitions of each row that were evaluated."""

    @property
    def relative_error(self) -> Float[np.ndarray, "obs column label"]:
        """Standard errors in units of ``|v(all) - v(none)|``, or as they are where that is < 1."""
        return self.standard_error / np.maximum(1.0, np.abs(self.whole - self.base))[:, None]


def attribute(
    value: Value, observed: Bool[np.ndarray, "obs column"], n_labels: int, effort: Effort
) -> Attribution:
    """Shapley values of the observed cells of every row, with standard errors and marginal losses.

    They are exact for rows of at most ``effort.exact`` observed cells, else by sampled orders. The
    value of two cells is 3 with the first, 4 more with both:

    >>> def value(rows, shown):
    ...     return (3.0 * shown[:, 0] + 4.0 * shown.all(axis=1))[:, None]
    >>> attribution = attribute(value, np.array([[True, True], [True, False]]), 1, Effort())
    >>> attribution.shapley[..., 0]
    array([[ 5.,  2.],
           [ 3., nan]])
    """
    by_cell, by_row = (*observed.shape, n_labels), (len(observed), n_labels)
    attribution = Attribution(
        shapley=np.full(by_cell, np.nan),
        left_out=np.full(by_cell, np.nan),
        standard_error=np.full(by_cell, np.nan),
        whole=np.empty(by_row),
        base=np.empty(by_row),
        evaluations=np.zeros(len(observed), dtype=np.intp),
    )
    counts = observed.sum(axis=1)
    for m in np.unique(counts).tolist():
        of_count, few = np.flatnonzero(counts == m), m <= effort.exact
        for block in in_blocks(of_count.size, NUMBERS << m if few else AT_ONCE):
            rows = of_count[block]
            positions = np.nonzero(observed[rows])[1].reshape(rows.size, m)
            shown = partial(_value_of_cells, value, observed.shape[1], rows, positions)
            found = _exact(shown, m) if few else _sampled(shown, m, effort)
            cells = rows[:, None], positions
            attribution.shapley[cells] = found.shapley
            attribution.left_out[cells] = found.left_out
            attribution.standard_error[cells] = found.standard_error
            attribution.whole[rows], attribution.base[rows] = found.whole, found.base
            attribution.evaluations[rows] = found.evaluations
    return attribution


ValueOfCells = Callable[[Bool[np.ndarray, "coalition cell"]], np.ndarray]
"""Maps coalitions of observed cells to values: an array of row, coalition and label."""


def _value_of_cells(
    value: Value,
    n_columns: int,
    rows: Int[np.ndarray, " row"],
    positions: Int[np.ndarray, "row cell"],
    coalitions: Bool[np.ndarray, "coalition cell"],
) -> Float[np.ndarray, "row coalition label"]:
    """Value of every coalition of m observed cells, for rows that have m observed cells each.

    ``positions`` are the columns of these cells. Rows are predicted in blocks of limited memory.
    """
    shown = np.zeros((len(rows), len(coalitions), n_columns), dtype=bool)
    np.put_along_axis(shown, positions[:, None], coalitions[None], axis=2)
    flat, of_row = shown.reshape(-1, n_columns), np.repeat(rows, len(coalitions))
    blocks = in_blocks(of_row.size, NUMBERS)
    values = np.concatenate([value(of_row[block], flat[block]) for block in blocks])
    return values.reshape(len(rows), len(coalitions), -1)


def _exact(value: ValueOfCells, m: int) -> Attribution:
    """Exact attribution of rows with m observed cells each, from all ``2^m`` coalitions.

    Arrays by cell have shape (row, m, label).
    """
    numbers = np.arange(2**m)
    members = (numbers[:, None] >> np.arange(m) & 1).astype(bool)
    values = value(members)
    size = members.sum(axis=1, keepdims=True)
    # A coalition with the cell is S and the cell, and weighs as S does; one without it is S,
    # and is subtracted.
    weights = np.where(members, _weight(size - 1, m), -_weight(size, m))
    shapley = np.einsum("sm,rsl->rml", weights, values, optimize=True)
    # All binary digits but one are everything but that cell.
    left_out = values[:, -1:] - values[:, numbers[-1] - 2 ** np.arange(m)]
    exactly = np.zeros_like(shapley)
    cost = np.full(len(values), 2**m)
    return Attribution(shapley, left_out, exactly, values[:, -1], values[:, 0], cost)


def _weight(size: np.ndarray, m: int) -> np.ndarray:
    """``size! (m - size - 1)! / m!``, the share of orders in which a cell follows that coalition.

    0 where there is no such coalition.
    """
    possible = (size >= 0) & (size < m)
    return np.where(
        possible, 1 / (max(m, 1) * comb(max(m - 1, 0), np.where(possible, size, 0))), 0.0
    )


def _sampled(value: ValueOfCells, m: int, effort: Effort) -> Attribution:
    """Attribution of rows with m observed cells each, by pairs of a random order and its reverse.

    Pairs are added until the relative standard errors are at most ``effort.tolerance``, or there
    are ``effort.max_pairs``. Arrays by cell have shape (row, m, label).
    """
    rng = np.random.default_rng(effort.seed)
    ends = np.ones((m + 2, m), dtype=bool)
    ends[0], ends[2:] = False, ~np.eye(m, dtype=bool)
    values = value(ends)
    base, whole, without = values[:, 0], values[:, 1], values[:, 2:]
    pairs = np.empty((len(base), 0, m, base.shape[1]))
    while True:
        size = min(ROUND, effort.max_pairs - pairs.shape[1])
        orders = rng.permuted(np.tile(np.arange(m), (size, 1)), axis=1)
        added = _of_orders(value, np.stack([orders, orders[:, ::-1]]), base, whole)
        pairs = np.concatenate([pairs, added], axis=1)
        n_pairs = pairs.shape[1]
        # The two orders of a pair depend on each other; pairs do not.
        error = pairs.std(axis=1, ddof=1) / np.sqrt(n_pairs)
        cost = np.full(len(base), m + 2 + 2 * n_pairs * (m - 1))
        left_out = whole[:, None] - without
        attribution = Attribution(pairs.mean(axis=1), left_out, error, whole, base, cost)
        if n_pairs == effort.max_pairs or attribution.relative_error.max() <= effort.tolerance:
            return attribution


def _of_orders(
    value: ValueOfCells,
    orders: Int[np.ndarray, "2 pair cell"],
    base: Float[np.ndarray, "row label"],
    whole: Float[np.ndarray, "row label"],
) -> Float[np.ndarray, "row pair cell label"]:
    """Gain from each cell at its place in an order, averaged over the order and its reverse."""
    m = orders.shape[2]
    ranks = orders.argsort(axis=2)
    # An order begins with no cell and ends with all of them; these values are known already.
    shown = ranks[..., None, :] < np.arange(1, m)[:, None]
    between = value(shown.reshape(-1, m)).reshape(len(base), *orders.shape[:2], m - 1, -1)
    path = np.empty((*between.shape[:3], m + 1, between.shape[-1]))
    path[..., 1:-1, :] = between
    path[..., 0, :], path[..., -1, :] = base[:, None, None], whole[:, None, None]
    added = np.diff(path, axis=3)
    return np.take_along_axis(added, ranks[None, ..., None], axis=3).mean(axis=1)


# Explains rows: the part of each cell in the log odds of the classes, and that of the pattern.
#
# Where missing indicators are evidence, the pattern of missing and measured cells is one more
# player, after the columns. A coalition with the pattern knows all indicators, also those of hidden
# cells; a coalition without it knows none. So no measured cell is given what indicators contribute.


NAMED: Final = 3
"""Missing columns, and measured ones, that the message on a pattern names at most."""
RARELY_MEASURED: Final = 0.5
"""Share of the training rows without a cell from which a measured cell is named."""
RULES: Final = {
    "exact": Rule("an integer from 1 to 20", kind=Integral, low=1.0, high=20.0, closed="both"),
    "tolerance": positive(),
    "max_pairs": Rule("an integer of at least 2", kind=Integral, low=2.0),
}


def explain(
    fit: Fit,
    X: object,
    *,
    exact: int = 12,
    tolerance: float = 0.05,
    max_pairs: int = 256,
    random_state: int | None = None,
) -> xr.Dataset:
    """Contribution of each observed cell, and of the pattern, to the log odds of each class.

    In nats, over obs, column and label: ``shapley``, ``left_out`` (log odds lost without the cell)
    and ``standard_error``, NaN for missing cells; over obs and label ``pattern_`` with each of
    these names for the missing indicators, ``log_odds``, and ``base``, log odds without any cell;
    over obs ``pattern``, a message, and ``evaluations``.
    """
    from bayesrbf.fit.row_answers import RowAnswers, described

    options = {"exact": exact, "tolerance": tolerance, "max_pairs": max_pairs}
    for name, value in options.items():
        RULES[name].check(value, f"explain({name}=...)")
    rows = new_rows(fit, X)
    cells, columns, classes = rows.cells, fit.columns, fit.classes
    observed = table.observed_cells(cells, columns)
    evident = fit.uses_indicators
    players = np.column_stack([observed, np.full(cells.n_obs, evident)])

    def log_odds(
        row_indices: Int[np.ndarray, " coalition"], shown: Bool[np.ndarray, "coalition player"]
    ) -> Float[np.ndarray, "coalition label"]:
        masked = observed[row_indices] & ~shown[:, :-1]
        coalitions = table.hide(cells.take(row_indices), masked, columns, indicators=not evident)
        if evident:
            coalitions = table.without_indicators(coalitions, columns, ~shown[:, -1])
        return to_log_odds(fit.class_log_probabilities(coalitions))

    seed = fit.table.seed if random_state is None else random_state
    effort = Effort(int(exact), float(tolerance), int(max_pairs), seed)
    values = attribute(log_odds, players, classes.size, effort)
    error = np.nanmax(values.relative_error, initial=0.0)
    if error > tolerance:
        warn(
            f"{fit.table.owner}.explain: {max_pairs} pairs of orders leave a relative standard "
            f"error of {error:.3g}, above tolerance={tolerance:g}; raise max_pairs or tolerance."
        )
    by_cell, by_row = (names.OBS, names.COLUMN, names.LABEL), (names.OBS, names.LABEL)
    adds = "what the cell adds to the log odds, averaged over all orders (nats)"
    loses = "what the log odds lose without the cell, given all other observed cells (nats)"
    exactly = "standard error of shapley; 0 where every coalition was evaluated"
    named = "columns with evidence that are missing, and measured ones that training rarely has"
    against = "log odds of the class against the rest, as reported (nats)"
    number = "rows that were predicted to explain this one"
    by_player = {
        "shapley": (values.shapley, adds),
        "left_out": (values.left_out, loses),
        "standard_error": (values.standard_error, exactly),
    }
    variables = {
        **{name: (by_cell, value[:, :-1], text) for name, (value, text) in by_player.items()},
        "pattern": ((names.OBS,), pattern_messages(fit, cells), named),
        **{
            # A pattern that is no evidence is no player: its value is 0.
            f"pattern_{name}": (by_row, np.nan_to_num(value[:, -1]), f"{name} of the pattern")
            for name, (value, _) in by_player.items()
        },
        "log_odds": (by_row, values.whole, against),
        "base": (by_row, values.base, "log odds with no observed cell and no pattern (nats)"),
        "evaluations": ((names.OBS,), values.evaluations, number),
    }
    coords = {names.OBS: rows.names, names.COLUMN: list(columns.names), names.LABEL: classes}
    return RowAnswers(described(variables), coords)


def pattern_messages(fit: Fit, rows: Observations) -> np.ndarray:
    """Message on each row's missing and measured columns whose indicators are evidence.

    Measured columns are named where training rows rarely have them. Without such columns messages
    are empty.
    """
    evident = np.array(fit.evident_columns, dtype=np.intp)
    quoted = np.array([repr(name) for name in fit.columns.names], dtype=object)[evident]
    missing = table.missing_indicators(rows, fit.columns)[:, evident] == 1
    in_training = ~table.observed_cells(fit.rows, fit.columns)[:, evident]
    rare = np.average(in_training, axis=0, weights=fit.rows.weights) >= RARELY_MEASURED
    # Where no column is missing or rare, the pattern is that all columns are measured.
    measured = ~missing & (rare | ~(missing | rare).any(axis=1, keepdims=True))
    messages = [
        "; ".join(
            f"{words}: {listed(quoted[selected].tolist(), NAMED)}"
            for words, selected in (("not measured", absent), ("measured", present))
            if selected.any()
        )
        for absent, present in zip(missing, measured, strict=True)
    ]
    return np.array(messages, dtype=str)


# Components of the uncertainty behind an interval.


def explain_interval(estimator: Estimator, X: object, prob: float = 0.9) -> xr.Dataset:
    """Why the interval of each row is as wide as it is, component by component.

    The components are those of the law in :doc:`/uncertainty`. The interval of a component is what
    it would be if nothing else were uncertain, around the same probability:

    - ``before any label``: the prior of the pool's error, for a complete row;
    - ``missing cells``: the same prior given the cells that are missing, over which it averages;
    - ``labels held out``: the posterior of this error given the labels of held-out rows;
    - ``inducing points``: prior variance that the inducing points of the process do not span;
    - ``rare levels``: what is missing to the variance of a combination of levels that few labelled
      rows have;
    - ``other kinds of models``: the distance of a classifier with ``model_uncertainty="pool"`` from
      the pool, which a stack does not have;
    - ``class shares``: those of training, which are all that is known of a row without a cell;
    - ``label noise``: labels that have nothing to do with their row;
    - ``update``: intercepts and slope of an update by :func:`bayesrbf.recalibrate`.

    Parameters
    ----------
    estimator : classifier
        A :class:`StackedClassifier` with draws (``refine()``), or another classifier after
        ``refine(model_uncertainty="pool")``.
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.
    prob : float
        Probability inside the equal-tailed intervals.

    Returns
    -------
    xarray.Dataset
        ``probability``, ``lower`` and ``upper`` over obs and label as
        :meth:`~bayesrbf.StackedClassifier.uncertainty` has them; ``component_lower`` and
        ``component_upper`` over uncertainty_component, obs and label; ``labels_near``, the number
        of labels of rows exactly like this one that would tell as much of its error as the labels
        held out do (NaN of a row without a cell); ``extrapolation``, the share of the answer that
        is the class shares because a number lies far outside of training.

    Raises
    ------
    ValueError
        If there are no draws, or the intervals have no components because they assume the model.

    Examples
    --------
    >>> import bayesrbf
    >>> y = np.repeat(["a", "b"], 100)
    >>> X = np.random.default_rng(0).normal(size=(200, 1)) + (y == "b")[:, None]
    >>> stack = bayesrbf.StackedClassifier(random_state=0).fit(X, y).refine()
    >>> why = bayesrbf.explain_interval(stack, [[0.5]])
    >>> widths = (why["component_upper"] - why["component_lower"]).sel(label="a", obs=0)
    >>> widths.to_series().round(1).to_dict()
    {'before any label': 0.8, 'missing cells': 0.8, 'labels held out': 0.4, 'inducing points': 0.0,
    'rare levels': 0.0, 'class shares': 0.0, 'label noise': 0.0}
    """
    from bayesrbf.fit.row_answers import RowAnswers

    check_is_fitted(estimator)
    fit = estimator.fitted_
    refuse(fit, f"explain_interval of a {fit.table.owner}", "draws")
    if fit.assumes_model:
        raise ValueError(
            f"explain_interval takes intervals that count the error of a pool; those of this "
            f"{fit.table.owner} assume that it is right: call refine(model_uncertainty='pool'), or "
            "fit a StackedClassifier."
        )
    rows, chain = new_rows(fit, X), fit.interval_chain
    summary = chain.summary(rows.cells, prob)
    components = {
        name: chain.only(name).summary(rows.cells, prob, summary.mean) for name in chain.components
    }
    ends = {
        end: np.stack([getattr(component, end) for component in components.values()])
        for end in ("lower", "upper")
    }
    by_class = (names.OBS, names.LABEL)
    variables = {
        names.PROBABILITY: (by_class, summary.mean),
        "lower": (by_class, summary.lower),
        "upper": (by_class, summary.upper),
        "component_lower": ((names.UNCERTAINTY_COMPONENT, *by_class), ends["lower"]),
        "component_upper": ((names.UNCERTAINTY_COMPONENT, *by_class), ends["upper"]),
        "labels_near": (by_class, chain.labels_near(rows.cells)),
        "extrapolation": ((names.OBS,), fit.extrapolation.unknown(rows.cells)),
    }
    coords = {
        names.UNCERTAINTY_COMPONENT: list(components),
        names.OBS: rows.names,
        names.LABEL: fit.classes,
    }
    return RowAnswers(variables, coords, {"prob": prob})
