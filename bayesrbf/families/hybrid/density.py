"""MixtureDensity: the density of rows, one mixture or a pool of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf.base.priors import Fit, MixturePrior
from bayesrbf.base.records import ANY_NUMBER, Stored, stored
from bayesrbf.base.rows import (
    COVARIANCE_TYPES,
    CovarianceType,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    default_shape,
    joined_points,
)
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.estimator import AnyFit, Estimator, fitting
from bayesrbf.families.hybrid.selection import COMPARED_TYPES, compared_types
from bayesrbf.fit.arguments import SHARED, Rule, integer, one_of
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.calibration import Selection
from bayesrbf.fit.held_out import Fold, HeldOut, hold_out, split_rows
from bayesrbf.fit.model import FittedModel
from bayesrbf.fit.reading import LARGEST_SEED
from bayesrbf.fit.table import FittedTable
from bayesrbf.fit.training import by_blocks, read_training
from bayesrbf.mixture.cells import hide_masked, trimmed
from bayesrbf.mixture.fitted import (
    ROWS_PER_COMPONENT,
    ColumnTransforms,
    FittedMixture,
    Solver,
    fit_mixture_rows,
)
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.missing import sample
from bayesrbf.reading.notes import warn
from bayesrbf.table.columns import Columns
from bayesrbf.table.order import distinct_rows

# A pool of densities: fits of several candidates side by side, which is a mixture again.
#
# .. math:: p(x) = \sum_m s_m \sum_k w_{mk} \, p_{mk}(x), \quad
#    s = \operatorname*{arg\,max}_s \sum_i v_i \log \sum_m s_m \, p_m(x_i)
#
# The rows i of the second sum are held out of the fits, and v are their weights (stacking of
# densities; Smyth and Wolpert, 1999): :func:`stacking_shares`.


Refit = Callable[[int, Observations, int], FittedMixture]
"""Fit a candidate, by its index, to weighted rows, from starts of a seed."""


def members(shares: Float[np.ndarray, " candidate"], size: int) -> list[tuple[int, float]]:
    """Candidate and weight of every fit in a pool of about ``size``; at least one each.

    >>> members(np.array([0.75, 0.0, 0.25]), 4)
    [(0, 0.25), (0, 0.25), (0, 0.25), (2, 0.25)]
    """
    fits = np.where(shares > 0, np.maximum(np.round(size * shares), 1), 0).astype(int)
    return [(m, float(shares[m] / n)) for m, n in enumerate(fits) for _ in range(n)]


def pooled(
    alone: FittedMixture,
    rows: Observations,
    shares: Float[np.ndarray, " candidate"],
    size: int,
    refit: Refit,
    seed: int,
) -> FittedMixture:
    """Pool of fits to rows of random weights, in the units and behind the transforms of ``alone``.

    A row that stands for v rows has a weight of Gamma(v), as in the Bayesian bootstrap.
    """
    rng = np.random.default_rng(seed)
    mapped, tasks = alone.mapped(rows), []
    for number, (candidate, share) in enumerate(members(shares, size)):
        weights = rng.standard_gamma(rows.weights)
        weights *= rows.weights.sum() / weights.sum()
        tasks.append((share, candidate, weights, seed + number))

    def fitted(
        task: tuple[float, int, Float[np.ndarray, " obs"], int],
    ) -> tuple[float, FittedMixture]:
        share, candidate, row_weights, seed = task
        return share, refit(candidate, replace(mapped, weights=row_weights), seed)

    return side_by_side(alone, run_tasks(fitted, tasks, "Fits"))


def side_by_side(
    alone: FittedMixture, densities: Sequence[tuple[float, FittedMixture]]
) -> FittedMixture:
    """Mixture of several densities, in the units and behind the transforms of ``alone``."""
    points = [mixture.start.standardised(alone.units) for _, mixture in densities]
    shapes = {mixture.specification.shape for _, mixture in densities}
    specification = replace(
        alone.specification,
        component_class=(0,) * sum(mixture.specification.n_components for _, mixture in densities),
        covariance_type="full" if len(shapes) > 1 else shapes.pop(),
    )
    scaled_points = [
        replace(
            point,
            weights=share * point.weights,
            precisions_cholesky=_precision_roots(point, mixture.specification, specification),
        )
        for (share, mixture), point in zip(densities, points, strict=True)
    ]
    return replace(alone, specification=specification, parameters=joined_points(scaled_points))


def _precision_roots(
    point: MixtureParameters, structure: MixtureSpecification, joint: MixtureSpecification
) -> Float[np.ndarray, "component *feature"]:
    """Cholesky factor of every component's precision, full where the joint ones are."""
    roots = point.precisions_cholesky[structure.covariance_group]
    if joint.independent == structure.independent:
        return roots
    return laws_of(joint).reals.matrices.of_diagonal(roots)


# Components, covariances and strength of the prior by the density of cells held out.


N_FOLDS: Final = 3
"""Folds of the choice among densities; a candidate is fitted once per fold."""
N_COMPONENTS: Final = (1, 2, 3, 5, 8, 12)
PRIOR_STRENGTHS: Final = (1.0, 0.3, 0.1, 0.02)
"""Factors of the default prior sample size of the covariances: it is far too large where
columns are nearly functions of each other."""
FIRST: Final = 3
"""Components with which shapes and strengths are compared first."""
MAX_SELECTION_ROWS: Final = 2000
"""Rows that the choice looks at; it costs some forty fits to them."""
TOLERANCE, ITERATIONS, STARTS = 1e-4, 100, 2
"""Settings of EM for the compared candidates; the chosen one has the user's."""


@dataclass(frozen=True)
class DensityOptions:
    """Candidates that held-out rows decide between; one entry where nothing is open."""

    n_components: tuple[int, ...] = (1,)
    covariance_type: tuple[CovarianceType, ...] = ("full",)
    prior_strength: tuple[float, ...] = (1.0,)

    @property
    def first(self) -> DensityCandidate:
        """The candidate with which the comparison begins, not judged yet."""
        k = FIRST if FIRST in self.n_components else self.n_components[0]
        shape, prior_strength = self.covariance_type[0], self.prior_strength[0]
        return DensityCandidate(k, shape, prior_strength, NOT_JUDGED)

    @property
    def axes(self) -> tuple[Sequence[Change], ...]:
        """Changes of shape, of strength and of the number of components, in the order of trial."""
        return (
            [partial(replace, covariance_type=shape) for shape in self.covariance_type],
            [
                partial(replace, prior_strength=prior_strength)
                for prior_strength in self.prior_strength
            ],
            [partial(replace, n_components=k) for k in self.n_components],
        )

    @property
    def are_one(self) -> bool:
        """Whether there is nothing to choose."""
        return all(len(changes) == 1 for changes in self.axes)

    def for_rows(self, rows: Observations) -> DensityOptions:
        """Options for these rows: few rows allow few components, and no reals no covariances."""
        most = max(1, rows.n_obs * (N_FOLDS - 1) // (N_FOLDS * ROWS_PER_COMPONENT))
        d = rows.real.shape[1]
        reals = None if d else 1
        shapes = compared_types(d) if len(self.covariance_type) > 1 else self.covariance_type
        return replace(
            self,
            n_components=tuple(
                k for k in self.n_components if k <= most or len(self.n_components) == 1
            ),
            covariance_type=shapes[:reals],
            prior_strength=self.prior_strength[:reals],
        )


@stored
class DensityCandidate:
    """A density, and its log density of held-out rows."""

    n_components: int
    covariance_type: CovarianceType
    prior_strength: float
    """Factor of the default prior sample size of the covariances."""
    log_density: float = field(metadata=ANY_NUMBER)
    """Log density of a held-out row in nats, in the table's units; NaN if nothing was compared."""
    share: float = 0.0
    """Weight of its fits in the pool; 0 without a pool."""

    def specification(self, n_features: int, levels: tuple[int, ...]) -> MixtureSpecification:
        """Structure of the density."""
        classes = (0,) * self.n_components
        return MixtureSpecification(n_features, levels, classes, self.covariance_type)


NOT_JUDGED: Final = -np.inf
"""The log density of a candidate that is still to be judged: unlike NaN it is equal to itself."""


Change = Callable[[DensityCandidate], DensityCandidate]
"""Makes a candidate of another one."""


@dataclass(frozen=True)
class Settings:
    """Settings of the search for a density."""

    prior: MixturePrior
    options: DensityOptions
    solver: Solver
    column_transforms: ColumnTransforms
    trim: bool
    """Whether cells that look wrong are left out."""
    pool: int | None = None
    """Number of fits side by side."""


@dataclass(frozen=True)
class FoundDensity:
    """A density, and the candidates that were compared."""

    rows: Observations
    """Rows of the fit, in the user's units, less the cells that were left out."""
    model: FittedMixture
    fit: Fit
    candidates: tuple[DensityCandidate, ...]


def find_density(rows: Observations, columns: Columns, settings: Settings) -> FoundDensity:
    """Choose the open settings, and fit; two further fits come first where odd cells are trimmed.

    They are judged by one component first, which explains no error, then by the density that is
    chosen without them. A pool stands beside the last fit, behind its transforms.
    """

    def fitted(fit_rows: Observations, candidate: DensityCandidate) -> tuple[FittedMixture, Fit]:
        structure = candidate.specification(fit_rows.real.shape[1], columns.n_levels)
        prior = settings.prior.weakened(candidate.prior_strength, structure)
        return fit_mixture_rows(  # nothing here holds the distinct rows: they are let go in there
            distinct_rows(fit_rows),
            structure,
            prior,
            settings.solver,
            None,
            settings.column_transforms,
        )

    trimmed_rows = rows
    if settings.trim:
        one_component = DensityCandidate(1, default_shape(rows.real.shape[1]), 1.0, np.nan)
        trimmed_rows = trimmed(rows, fitted(rows, one_component)[0], columns)
    candidates = choose_density(trimmed_rows, columns.n_levels, settings)
    if settings.trim:
        trimmed_rows = trimmed(rows, fitted(trimmed_rows, candidates[0])[0], columns)
    alone, fit = fitted(trimmed_rows, candidates[0])
    if settings.pool is None:
        return FoundDensity(trimmed_rows, alone, fit, candidates)

    def refit(index: int, weighted_rows: Observations, seed: int) -> FittedMixture:
        structure = candidates[index].specification(weighted_rows.real.shape[1], columns.n_levels)
        prior = settings.prior.weakened(candidates[index].prior_strength, structure)
        solver = replace(settings.solver, n_init=1, seed=seed)
        return fit_mixture_rows(weighted_rows, structure, prior, solver)[0]

    shares = np.array([candidate.share for candidate in candidates])
    once = distinct_rows(trimmed_rows)
    model = pooled(alone, once, shares, settings.pool, refit, settings.solver.seed)
    return FoundDensity(trimmed_rows, model, replace(fit, parameters=model.parameters), candidates)


def choose_density(
    rows: Observations, levels: tuple[int, ...], settings: Settings
) -> tuple[DensityCandidate, ...]:
    """All compared candidates, the best first; weighted rows need not be distinct."""
    seed, options = settings.solver.seed, settings.options
    folds: list[Fold] = []
    if not options.are_one:
        subsample = distinct_rows(rows)
        if subsample.n_obs > MAX_SELECTION_ROWS:
            chosen = np.random.default_rng(seed).permutation(subsample.n_obs)[:MAX_SELECTION_ROWS]
            subsample = subsample.take(np.sort(chosen))
        options = options.for_rows(subsample)
        folds = list(split_rows(N_FOLDS, subsample, np.arange(subsample.n_obs), seed))
    if not folds or options.are_one:
        return (replace(options.first, log_density=np.nan, share=1.0),)
    solver = Solver(STARTS, ITERATIONS, TOLERANCE, seed)

    def judge(candidates: Sequence[DensityCandidate]) -> HeldOut:
        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            densities = []
            for candidate in candidates:
                structure = candidate.specification(rows.real.shape[1], levels)
                prior = settings.prior.weakened(candidate.prior_strength, structure)
                transforms = settings.column_transforms
                mixture, _ = fit_mixture_rows(train, structure, prior, solver, None, transforms)
                densities.append(mixture.log_density(test))
            return np.stack(densities, axis=1)

        scores = hold_out(folds, predict, None)
        assert scores is not None  # every fold holds a row out
        return scores

    selection = ascend(options.first, options.axes, judge)
    shares = np.zeros(len(selection.candidates))
    order = np.argsort(-selection.scores, kind="stable")
    if settings.pool is not None:
        shares[order] = stacking_shares(selection.row_scores[order], selection.weights)
    return tuple(
        replace(
            selection.candidates[index],
            log_density=float(selection.scores[index]),
            share=float(shares[index]),
        )
        for index in order.tolist()
    )


def ascend(
    first: DensityCandidate,
    axes: Sequence[Sequence[Change]],
    judge: Callable[[Sequence[DensityCandidate]], HeldOut],
) -> Selection[DensityCandidate]:
    """Vary one field at a time, the others as they are best so far, until no change is better."""
    first_scores = judge((first,))
    judged = {first: first_scores.values[:, 0]}
    best, before = first, None
    while best != before:
        before = best
        for changes in axes:
            line = tuple(change(best) for change in changes)
            new = [candidate for candidate in line if candidate not in judged]
            judged |= zip(new, judge(new).values.T, strict=True) if new else ()
            best = Selection(
                line, np.array([judged[candidate] for candidate in line]), first_scores.weights
            ).chosen
    return Selection(tuple(judged), np.array([*judged.values()]), first_scores.weights)


MIN_SHARE: Final = 0.03
"""Densities with less of a pool of densities are left out of it."""
DENSITY_STEPS: Final = 200
"""Iterations of EM for the shares of densities."""


def stacking_shares(
    log_density: Float[np.ndarray, "density obs"], weights: Float[np.ndarray, " obs"]
) -> Float[np.ndarray, " density"]:
    r"""Shares of a linear pool of densities by EM, without a prior; small ones are 0.

    .. math:: s_m \leftarrow \frac{\sum_n v_n r_{mn}}{\sum_n v_n}, \quad
        r_{mn} = \frac{s_m p_m(x_n)}{\sum_i s_i p_i(x_n)}

    ``log_density`` is that of held-out rows.

    >>> stacking_shares(np.log([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]]), np.ones(3)).round(2)
    array([0.71, 0.29])
    """
    shares = np.full(len(log_density), 1 / len(log_density))
    for _ in range(DENSITY_STEPS):
        # A share that vanished stays 0: its logarithm is -inf.
        with np.errstate(divide="ignore"):
            # In logs: densities of one row can be hundreds of nats apart.
            responsibilities = softmax(np.log(shares)[:, None] + log_density, axis=0)
        shares = responsibilities @ weights / weights.sum()
    # The largest stays, even where all are small.
    shares = np.where(shares < min(MIN_SHARE, shares.max()), 0.0, shares)
    return shares / shares.sum()


# What estimators share whose rows come from a mixture: its fit, responsibilities, new rows.


class MixtureMethods(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of estimators whose rows are drawn from a mixture."""

    fitted_: AnyFit
    random_state: Stored[int | np.random.RandomState | None]

    # ---- fitting

    def _warn_where_singular(self, fit: Fit) -> None:
        """Warn if a covariance is singular."""
        if fit.floored:
            warn(
                f"{type(self).__name__}: a covariance is singular to rounding, and its smallest "
                "eigenvalues were raised. Look for columns that are linear functions of others, "
                "or strengthen the prior."
            )

    @property
    def point_masses_(self) -> dict[str, dict[float, float]]:
        """Share of the cells at each point mass, by the name of the real column."""
        columns, rows = self._mixture_fit.columns, self._mixture_fit.rows
        shares_of = {}
        for feature, category in columns.atomic.items():
            at, (_, *point_masses) = rows.codes[:, category], columns.codes[category].levels
            observed = at >= 0
            counts = np.bincount(at[observed], rows.weights[observed], len(point_masses) + 1)
            shares = (counts / counts.sum()).tolist()
            shares_of[columns.real_names[feature]] = dict(
                zip(point_masses, shares[1:], strict=True)
            )
        return shares_of

    @property
    def _mixture_fit(self) -> FittedTable[FittedModel, object]:
        """The fit; NotFittedError where there is none."""
        check_is_fitted(self)
        return self.fitted_

    @property
    def _n_features_out(self) -> int:
        """Number of components."""
        return self._mixture_fit.density.specification.n_components

    # ---- rows

    @by_blocks
    def transform(self, X: object) -> Float[np.ndarray, "obs component"]:
        """Responsibilities: p(component | row), labels not used.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Probabilities at the fitted point; rows sum to one. Components of
            all classes, class by class.
        """
        fit = self._mixture_fit
        return fit.density.responsibilities(new_rows(fit, X).cells)

    def _draw(
        self, n_samples: int, parameters: MixtureParameters, labels: np.ndarray | None = None
    ) -> tuple[Any, Int[np.ndarray, " row"]]:
        """New rows in the container of ``fit``, and their class codes."""
        fit = self._mixture_fit
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"sample(n_samples) must be an integer of at least 1; received {n_samples!r}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(LARGEST_SEED))
        density = fit.density
        rows, _ = sample(parameters, density.specification, int(n_samples), rng, labels)
        real = density.in_users_units(rows.real)
        cells = hide_masked(real, rows.codes, fit.columns)
        return fit.table.decoded(cells, fit.table.template), rows.labels


# The mixture density: densities of rows with holes, and imputations of their missing cells.


DensityFit = FittedTable[FittedMixture, tuple[DensityCandidate, ...]]


class MixtureDensity(DensityMixin, MixtureMethods, Estimator):
    r"""Density of a table of real and categorical columns with missing cells.

    .. math:: p(x_o) = \sum_k w_k \, N(x_o; \mu_k, \Sigma_k) \prod_{j \in o} \theta_{kj}[x_j]

    Missing cells are summed out exactly. The declared priors are the only regularisation.

    Parameters
    ----------
    n_components : int or "cv"
        ``"cv"`` picks 1, 2, 3, 5, 8 or 12 by the log density of cells held out in three folds.
    covariance_type : {"full", "tied", "diag", "spherical", "cv"}
        ``"tied"`` shares one full matrix; ``"cv"`` picks ``"full"`` or ``"diag"`` in the same way.
    prior : MixturePrior or "cv", optional
        ``MixturePrior()`` by default; ``"cv"`` picks the strength of its covariance prior,
        1, 0.3, 0.1 or 0.02 of the default, in the same way.
    column_transforms : {"power", None}
        ``"power"``: a monotone transform towards a normal shape in front of every real column
        (:class:`bayesrbf.base.priors.PowerTransforms`). The density stays one of ``X``; prior,
        means and covariances are those of mapped cells.
    point_masses : {"auto", None}
        ``"auto"``: a value with at least 5 % of a real column's cells (and five rows), three times
        as frequent as both neighbours, is a point mass: whether a cell is there is a category.
    trim : bool
        Leave cells that look wrong out of the fit: those with a tail below .005 given the rest of
        their row, at most 5 % of a column, by one component first, then by the density asked for.
    pool : int, optional
        About this many fits are averaged, which gives a mixture again: :doc:`/mixtures`.
    n_init : int
        Number of restarts of EM.
    max_iter : int
        Maximum number of iterations of a restart.
    tol : float
        EM stops when a step gains at most ``tol`` nats of log posterior per unit of row weight.
    random_state : int, RandomState or None
        Source of restarts and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    missingness : {"ignorable", "informative"}
        ``"informative"``: whether a cell is missing tells about its component.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
    column_kinds : dict of columns and kinds, optional
        What other columns are, by position or name: ``"count"``, ``"ordered"`` or
        ``"ordered:none<mild<severe"``, ``"angle:24"`` (with its period), ``"date"``, ``"real"``.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "advi", "gibbs", "nuts", "bootstrap"}
        Posterior made by ``fit``; :meth:`refine` makes another later.

    Attributes
    ----------
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    status_ : str
        How the fit ended, in a sentence.
    converged_ : bool
        Whether it converged.
    passes_ : int
        Passes over a training table out of memory; 0 for one in memory.
    candidates_ : tuple of DensityCandidate
        What was compared where something was ``"cv"``, the best first, each with its
        held-out ``log_density`` in nats a row; else the one that was used.
    point_masses_ : dict
        Name of every real column with point masses, and of each point mass its share of the cells.
    n_iter_ : int
        Iterations of the best restart.
    objective_ : float
        Log posterior density of the fitted point, columns standardised.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    References
    ----------
    .. [1] Ghahramani, Jordan (1994), Supervised learning from incomplete data via an EM
       approach, NIPS, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 1)) * [1.0, 2.0]
    >>> X[::4, 1] = np.nan
    >>> density = MixtureDensity(random_state=0).fit(X)
    >>> density.impute([[0.5, np.nan]]).round(1)
    array([[0.5, 1. ]])
    """

    fitted_: DensityFit

    _rules = SHARED | {
        "n_components": integer("cv"),
        "covariance_type": one_of(*COVARIANCE_TYPES, "cv"),
        "pool": integer(None),
        "prior": Rule("a MixturePrior, 'cv' or None", ("cv", None), MixturePrior, error=TypeError),
    }
    _by_blocks: ClassVar = {"trim": (False,), "pool": (None,)}

    def __init__(
        self,
        n_components: Stored[int | Literal["cv"]] = 1,
        *,
        covariance_type: Stored[CovarianceType | Literal["cv"]] = "full",
        prior: Stored[MixturePrior | Literal["cv"] | None] = None,
        column_transforms: Stored[ColumnTransforms] = None,
        point_masses: Stored[Literal["auto"] | None] = None,
        trim: Stored[bool] = False,
        pool: Stored[int | None] = None,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = 1e-6,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        missingness: Stored[Literal["ignorable", "informative"]] = "ignorable",
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "gibbs", "nuts", "bootstrap"]] = "map",
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.prior = prior
        self.column_transforms = column_transforms
        self.point_masses = point_masses
        self.trim = trim
        self.pool = pool
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.missingness = missingness
        self.categorical_features = categorical_features
        self.column_kinds = column_kinds
        self.handle_unknown = handle_unknown
        self.inference = inference

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    @fitting
    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Find the mode of the posterior, and draw from it if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells. Or a table out of memory (:doc:`/scale`).
        y : object
            Ignored.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: a row of weight 2 counts twice, and no split parts it.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument, the table or the weights cannot be used.
        """
        if self.inference != "map":
            self._check_method(self.inference)
        reading = self._reading(labelled=False)
        training, of_blocks = read_training(reading, X, None, sample_weight)
        prior: Any = self.prior
        declared: MixturePrior = MixturePrior() if prior in ("cv", None) else prior
        options = DensityOptions(
            N_COMPONENTS if self.n_components == "cv" else (self.n_components,),
            COMPARED_TYPES if self.covariance_type == "cv" else (self.covariance_type,),
            PRIOR_STRENGTHS if self.prior == "cv" else (1.0,),
        )
        solver = Solver(self.n_init, self.max_iter, float(self.tol), training.seed)
        settings = Settings(declared, options, solver, self.column_transforms, self.trim, self.pool)
        chosen = find_density(training.rows, training.read_columns, settings)
        training, note = replace(training, rows=chosen.rows), ""
        model, fit = chosen.model, chosen.fit
        if of_blocks is not None:
            weakened = declared.weakened(chosen.candidates[0].prior_strength, model.specification)
            training, model, fit, note = of_blocks.fit_all(training, model, weakened, solver)
        self._warn_where_singular(fit)
        outcome, message = (fit.status, fit.trace), f"{fit.status.sentence} {note}".rstrip()
        self.fitted_ = self._ended(training, model, chosen.candidates, outcome, message)
        return self

    @property
    def candidates_(self) -> tuple[DensityCandidate, ...]:
        """Candidates that were compared, the best first; else the one that was used."""
        return self._fit.details

    predict_proba = MixtureMethods.transform

    @by_blocks
    def predict(self, X: object) -> Int[np.ndarray, " obs"]:
        """Most probable component of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Component numbers.
        """
        return self.predict_proba(X).argmax(axis=1)

    def score(self, X: object, y: object = None) -> float:
        """Mean log density of the rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows.
        y : object
            Ignored.

        Returns
        -------
        float
            Mean of :meth:`score_samples`, in nats.
        """
        return float(self.score_samples(X).mean())

    def _check_method(self, method: str) -> None:
        """Refuse draws around a pool, which is no mode of its posterior."""
        if self.pool is not None:
            raise ValueError(
                f"MixtureDensity(pool={self.pool}) is an average of fits and no mode of a "
                "posterior: it needs inference='map', and has no refine(). "
                "Use pool=None."
            )

    def sample(self, n_samples: int = 1) -> Any:
        """Draw new rows at the fitted point.

        Parameters
        ----------
        n_samples : int
            Number of rows.

        Returns
        -------
        same container as the ``X`` of ``fit``
            Complete rows; under ``missingness="informative"`` the model draws which are missing.
        """
        return self._draw(n_samples, self._fit.model.parameters)[0]
