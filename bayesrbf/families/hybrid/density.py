"""The mixture density: an estimator of densities of rows with holes."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf.base.priors import Fit, MixturePrior
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import COVARIANCE_TYPES, CovarianceType, MixtureParameters
from bayesrbf.families.hybrid.pool import DensityCandidate, DensityOptions, Settings, find_density
from bayesrbf.fit.arguments import SHARED, Rule, integer, one_of
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.estimator import AnyFit, Estimator
from bayesrbf.fit.model import FittedModel
from bayesrbf.fit.reading import LARGEST_SEED
from bayesrbf.fit.table import FittedTable
from bayesrbf.fit.training import by_blocks, read_training
from bayesrbf.fit.warning import warn
from bayesrbf.mixture.cells import hide_masked
from bayesrbf.mixture.fitted import ColumnMaps, FittedMixture, Solver
from bayesrbf.mixture.missing import sample

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
    def atoms_(self) -> dict[str, dict[float, float]]:
        """Name of every real column with atoms, and of each atom its share of the cells."""
        columns, rows = self._mixture_fit.columns, self._mixture_fit.rows
        shares_of = {}
        for feature, category in columns.atomic.items():
            at, atoms = rows.codes[:, category], columns.atoms[feature]
            observed = at >= 0
            counts = np.bincount(at[observed], rows.weights[observed], len(atoms) + 1)
            shares = (counts / counts.sum()).tolist()
            shares_of[columns.real_names[feature]] = dict(zip(atoms, shares[1:], strict=True))
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
    column_maps : {"power", None}
        ``"power"``: a monotone map towards a normal shape in front of every real column
        (:class:`bayesrbf.base.priors.PowerMaps`). The density stays one of ``X``; prior,
        means and covariances are those of mapped cells.
    atoms : {"auto", None}
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
        Most iterations of a restart.
    tol : float
        EM stops when a step gains at most ``tol`` nats of log posterior per unit of row weight.
    random_state : int, RandomState or None
        Source of restarts and draws; an int makes results repeatable.
    missingness : {"ignorable", "informative"}
        ``"informative"``: whether a cell is missing tells about its component.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
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
    atoms_ : dict
        Name of every real column with atoms, and of each atom its share of the cells.
    n_iter_ : int
        Iterations of the best restart.
    lower_bound_ : float
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

    def __init__(
        self,
        n_components: Stored[int | Literal["cv"]] = 1,
        *,
        covariance_type: Stored[CovarianceType | Literal["cv"]] = "full",
        prior: Stored[MixturePrior | Literal["cv"] | None] = None,
        column_maps: Stored[ColumnMaps] = None,
        atoms: Stored[Literal["auto"] | None] = None,
        trim: Stored[bool] = False,
        pool: Stored[int | None] = None,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = 1e-6,
        random_state: Stored[int | np.random.RandomState | None] = None,
        missingness: Stored[Literal["ignorable", "informative"]] = "ignorable",
        categorical_features: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "gibbs", "nuts", "bootstrap"]] = "map",
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.prior = prior
        self.column_maps = column_maps
        self.atoms = atoms
        self.trim = trim
        self.pool = pool
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.missingness = missingness
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.inference = inference

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

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
        return self._take(lambda: self._fitted_to(X, sample_weight))

    def _fitted_to(self, X: object, sample_weight: object) -> DensityFit:
        """Read the table, choose what is open, and fit."""
        if self.inference != "map":
            self._check_method(self.inference)
        reading = self._reading(labelled=False)
        training, of_blocks = read_training(reading, X, None, sample_weight)
        given: Any = self.prior
        declared: MixturePrior = MixturePrior() if given in ("cv", None) else given
        any_strength = self.prior == "cv"
        options = DensityOptions.of(self.n_components, self.covariance_type, any_strength)
        solver = Solver(self.n_init, self.max_iter, float(self.tol), training.seed)
        settings = Settings(declared, options, solver, self.column_maps, self.trim, self.pool)
        chosen = find_density(training.rows, training.read_columns, settings)
        training, model, fit, way = (
            replace(training, rows=chosen.rows),
            chosen.model,
            chosen.fit,
            "",
        )
        if of_blocks is not None:
            weakened = declared.weakened(chosen.candidates[0].strength, model.specification)
            training, model, fit, way = of_blocks.fit_all(training, model, weakened, solver)
        self._warn_where_singular(fit)
        outcome, sentence = (fit.status, fit.trace), f"{fit.status.sentence} {way}".rstrip()
        return self._ended(training, model, chosen.candidates, outcome, sentence)

    @property
    def candidates_(self) -> tuple[DensityCandidate, ...]:
        """What was compared, the best first; else the one that was used."""
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
