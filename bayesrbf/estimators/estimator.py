"""What every estimator shares: tables read, a posterior drawn, shown and judged, a file written."""

from __future__ import annotations

from abc import ABC
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
    validate_data,
)

from bayesrbf import table
from bayesrbf.artefact.estimator_state import works_on
from bayesrbf.estimators.arguments import SHARED, row_weights
from bayesrbf.estimators.column_doubts import column_doubts
from bayesrbf.estimators.column_table import describe_columns, warn_of_columns
from bayesrbf.estimators.conditional import conditional
from bayesrbf.estimators.depending import dependence
from bayesrbf.estimators.out_of_core.answering import (
    by_blocks,
    has_all_rows,
    need_all_rows,
    refuse_collection,
)
from bayesrbf.estimators.posteriors import (
    Replicates,
    check_size,
    datatree,
    drawn_mixtures,
    judged,
    sampler,
    with_replicates,
)
from bayesrbf.estimators.surprise import surprise
from bayesrbf.estimators.trying import try_stored_row
from bayesrbf.estimators.warning import ColumnWarning, warn
from bayesrbf.fitted.completed_rows import Cells, cell_law, drawn, most_likely
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, FittedModel
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.threads import on_one_blas_thread
from bayesrbf.posterior.novelty import novelty
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.results import Status, Trace

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.diagnose import FindingsTable
    from bayesrbf.inference.judgements import Finding

LARGEST_SEED = 2**31 - 1
DRAWS_BY_SUMS = 250
"""Draws of a chain where the density of each is a sum over rows out of memory."""


class Estimator(BaseEstimator, ABC):
    """Base of every estimator. A family writes its constructor, its ``fit`` and its model.

    The annotated attributes are what a fit leaves behind.
    """

    model_: FittedModel
    converged_: bool
    lower_bound_: float
    n_features_in_: int
    n_iter_: int
    status_: str
    columns_: table.Columns
    draws_: Draws | None
    kept_: Int[np.ndarray, " obs"]
    rows_: Observations
    seed_: int
    _column_doubts: str
    _copies: Int[np.ndarray, "two given"]
    """Where the log likelihood is of distinct rows: every row, and its place among those."""
    _raw: Draws | None
    _template: Any
    _trace: Trace

    _models_rows = True
    _of_sample = False  # Whether of a table out of memory a random sample is all that is fitted to.
    _rules = SHARED

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __copy__(self) -> Self:
        # Unlike a pickle, a copy keeps the prepared log posterior: refine() works on a copy.
        beside = type(self).__new__(type(self))
        beside.__dict__ = self.__dict__.copy()
        return beside

    def __getstate__(self) -> dict[str, Any]:
        # A prepared log posterior is made anew where it is needed; a large one holds threads.
        return {name: held for name, held in super().__getstate__().items() if name != "_prepared"}

    # ---- reading tables

    def _check(self, X: object, y: object, sample_weight: object) -> Float[np.ndarray, " obs"]:
        """Check arguments and widths; the row weights."""
        self._check_arguments()
        refuse_collection(self, X)
        table.as_frame(X)  # has the words for frames that are none, before scikit-learn has
        validate_data(self, X, y, skip_check_array=True)
        if _num_samples(X) == 0:
            raise ValueError("X has 0 sample(s), but fit needs at least one row.")
        return row_weights(sample_weight, X)

    def _check_arguments(self) -> None:
        """Check every constructor argument that does not depend on the data."""
        for name, value in self.get_params(deep=False).items():
            if name in self._rules:
                self._rules[name].check(value, f"{type(self).__name__}({name}=...)")

    def _read_rows(
        self, X: Any, labels: Int[np.ndarray, " obs"] | None, weights: Float[np.ndarray, " obs"]
    ) -> None:
        """Learn the columns and read the rows of positive weight: no other row teaches.

        Without labels all rows are of one class.
        """
        labels = np.zeros(weights.size, dtype=int) if labels is None else labels
        self.kept_ = np.flatnonzero(weights > 0)
        if self.kept_.size < weights.size:
            X = _safe_indexing(X, self.kept_)
            labels, weights = labels[self.kept_], weights[self.kept_]
        self.columns_ = table.learn_columns(
            X,
            categorical_features=self.categorical_features,
            missingness=getattr(self, "missingness", "ignorable").replace("cv", "ignorable"),
            count_features=getattr(self, "count_features", None),
            ordinal_features=getattr(self, "ordinal_features", None),
        )
        cells = table.encode(X, self.columns_)
        self._tell_doubts(X)
        if self._models_rows:
            table.check_spreads(cells.real, weights, self.columns_.real_names)
        if getattr(self, "atoms", None) == "auto":
            found = tuple(table.find_atoms(column, weights) for column in cells.real.T)
            self.columns_ = replace(self.columns_, atoms=found)
            cells = table.encode(X, self.columns_)
        self.rows_ = replace(cells, labels=labels, weights=weights)
        none = cells.take(np.arange(0))
        self._template = self._decoded((none.real, none.codes, none.further), X)
        self.seed_ = int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _tell_doubts(self, X: Any) -> None:
        """Keep what is doubtful about the columns of the training table, and warn of it once."""
        named = self.categorical_features
        inferred = named is None or (isinstance(named, str) and named == "from_dtype")
        self._column_doubts = column_doubts(X, self.columns_, named=not inferred)
        if self._column_doubts:
            warn(self._column_doubts, ColumnWarning)

    def _read(self, X: Any, holes: bool = False) -> Observations:
        """New rows as the model takes them, labels hidden; a warning if they have many ``holes``.

        It is for predictions: who asks about missing cells knows of them.
        """
        return self._read_cells(X, holes)

    def _seen(self, cells: Observations) -> Observations:
        """Cells as the model takes them: as they are, unless rows are compared."""
        return cells

    def _read_cells(self, X: Any, holes: bool = False) -> Observations:
        """Cells of new rows in the user's units, labels hidden."""
        check_is_fitted(self)
        if len(getattr(X, "shape", (0, 0))) == 2:  # encode has the words for other shapes
            validate_data(self, X, reset=False, skip_check_array=True)
        cells = table.encode(X, self.columns_, handle_unknown=self.handle_unknown)
        if self.rows_.real.shape[1] == cells.real.shape[1]:  # exemplars keep no cells
            warn_of_columns(self.columns_, self.rows_, cells, X if holes else None)
        return cells

    describe_columns = describe_columns

    @property
    def _axes(self) -> Axes:
        """Names of columns, training rows and classes."""
        return Axes(self.columns_, self.kept_, getattr(self, "classes_", None))

    # ---- a posterior

    def _log_posterior(self) -> LogPosterior:
        """The log posterior given the training rows: prepared once for every fitted model."""
        if self.__dict__.get("_prepared", (None, None))[0] is not self.model_:
            self._prepared = self.model_, self.model_.log_posterior(self.rows_)
        return self._prepared[1]

    def _report(self, status: Status, trace: Trace, way: str = "") -> None:
        """Fitted attributes about the way of the fit, and a warning if it did not end well."""
        self._trace = trace
        self.n_iter_ = trace.n_iter
        self.converged_ = status is Status.CONVERGED
        self.lower_bound_ = float(trace.log_posterior[-1])
        self.status_ = f"{status.sentence} {way}".rstrip()
        if status not in (Status.CONVERGED, Status.STOPPED):
            warn(f"{type(self).__name__}: {self.status_}", ConvergenceWarning)

    def _infer(self, of_all_rows: LogPosterior | None = None) -> Self:
        """Draw what ``inference`` asks for; nothing for a point estimate.

        A log posterior stands for rows that are not in memory.
        """
        self.draws_ = self._raw = None
        for of_earlier_fit in ("posterior_", "rehearsal_"):
            self.__dict__.pop(of_earlier_fit, None)
        if self.inference == "map":
            return self
        if of_all_rows is None:
            return self.refine(self.inference)
        self._check_method(self.inference)
        options = {"random_state": self.seed_, "draws": DRAWS_BY_SUMS}
        return self._keep(of_all_rows, self._drawn(self.inference, of_all_rows, options))

    def _check_method(self, method: str) -> None:
        """Refuse a method that cannot draw from this posterior, or a posterior that is none."""

    @works_on(copy)
    @on_one_blas_thread
    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw from the posterior, starting at the fitted point.

        Parameters
        ----------
        method : {"laplace", "advi", "gibbs", "nuts", "bootstrap"}
            Gaussian approximation at the mode; Gaussian approximation of least
            divergence; data augmentation, for mixtures; the No-U-Turn sampler; modes
            under random weights of the rows, one chain of independent draws.
        **options : object
            Passed on: ``draws``, ``chains``, ``random_state``, ``progress_bar``;
            ``resample`` for the approximations, ``tune`` for the samplers, and
            more; see :func:`bayesrbf.inference.laplace.laplace`,
            :func:`bayesrbf.inference.variational.advi`,
            :func:`bayesrbf.inference.gibbs.gibbs`,
            :func:`bayesrbf.inference.nuts.nuts` and
            :func:`bayesrbf.inference.bootstrap.bootstrap`. Ctrl-C keeps what was drawn.

        Returns
        -------
        self
            With the draws in ``posterior_``.

        Raises
        ------
        ValueError
            If the method is unknown, or none for this model.
        """
        check_is_fitted(self)
        need_all_rows(self, f"refine({method!r})")
        self._check_method(method)
        check_size(method, self.rows_.n_obs)
        log_posterior = self._log_posterior()
        options = {"random_state": self.seed_, **options}
        return self._keep(log_posterior, self._drawn(method, log_posterior, options))

    def _drawn(self, method: str, log_posterior: LogPosterior, options: dict[str, Any]) -> Draws:
        """Draws by a method, from the fitted point."""
        fitted = self.model_.point(log_posterior)
        if method != "bootstrap":
            return sampler(method)(log_posterior, fitted, **options)
        from bayesrbf.inference.bootstrap import bootstrap

        rows, _ = table.distinct(self.rows_)  # of copies, the sum of the weights is drawn

        def reweighted(weights: np.ndarray) -> LogPosterior:
            return self.model_.log_posterior(replace(rows, weights=weights))

        return bootstrap(reweighted, rows.weights, fitted, **options)

    @works_on(copy)
    def use_posterior(self, tree: xr.DataTree) -> Self:
        """Take draws of the declared graph from any sampler.

        Parameters
        ----------
        tree : xarray.DataTree
            With a group ``posterior`` that holds every free variable of
            ``declare()``: what ``pm.sample()``, ``pm.fit().sample()`` or the
            samplers of pymc-extras give for it.

        Returns
        -------
        self
            With the draws, components named as in the fit, in ``posterior_``.

        Raises
        ------
        ValueError
            If a free variable of the graph is missing, or has other dims, names
            along a dim or another shape.
        """
        from bayesrbf.conversion import from_datatree

        check_is_fitted(self)
        need_all_rows(self, "use_posterior()")
        log_posterior = self._log_posterior()
        draws = from_datatree(
            tree, log_posterior, self.model_.description(self.rows_, self._axes).coords
        )
        return self._keep(log_posterior, draws)

    def _keep(self, log_posterior: LogPosterior, raw: Draws) -> Self:
        """Hold draws, as they came and with the components named as in the fit."""
        from bayesrbf.inference.draws import relabel

        self._raw = raw
        self.draws_ = relabel(log_posterior, raw, self.model_.point(log_posterior))
        self.__dict__.pop("posterior_", None)
        return self

    def __getattr__(self, name: str) -> Any:
        # The tree is made when it is first asked for and is then an attribute like any other:
        # a fit costs milliseconds, the tree as many again and an import. A property would be
        # evaluated whenever the estimator is displayed.
        if name == "posterior_" and "_trace" in self.__dict__:
            fitted = self.model_, self._log_posterior(), self.draws_, self.rows_
            copies = self.__dict__.get("_copies")
            tree, drawn = datatree(*fitted, self._axes, self._trace, copies), self._replicates()
            self.posterior_ = tree if drawn is None else with_replicates(tree, drawn, self.kept_)
            return self.posterior_
        return super().__getattribute__(name)  # fails once more, in the words of what is not there

    def _replicates(self) -> Replicates | None:
        """What is drawn for the training rows beside their own; a density has no labels."""
        return None

    def __dir__(self) -> list[str]:
        made = {"posterior_"} if "_trace" in self.__dict__ else set()
        return sorted(made | set(super().__dir__()))

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # scikit-learn displays the value of every name in dir(); the tree is not made for that
        trace = self.__dict__.pop("_trace", None)
        try:
            return super()._get_fitted_attr_html(doc_link)
        finally:
            if trace is not None:
                self._trace = trace

    def diagnose(self) -> FindingsTable:
        """Judge fit and draws by figures, each with a sentence; a warning lists the bad ones.

        Returns
        -------
        DataFrame
            One row a figure, with columns ``row``, ``value``, ``sentence``:
            convergence of the MAP and, where there are draws, Pareto k-hat,
            curvature, R-hat (as drawn, relabelled, and of class probabilities),
            effective draws, divergences, distance from the MAP, leave-one-out;
            whatever the method gives.

        Warns
        -----
        PosteriorWarning
            Once, if figures are bad; it says what to do next.
        """
        from bayesrbf.inference.diagnose import table, warn

        found = self.findings()
        warn(found, stacklevel=3)
        return table(found)

    def findings(self) -> tuple[Finding, ...]:
        """What :meth:`diagnose` shows, with the judgement of every figure.

        Returns
        -------
        tuple of Finding
            Each with ``row``, ``value``, ``sentence`` and whether it is ``good``.
        """
        from bayesrbf.inference.judgements import judge_columns, judge_map

        check_is_fitted(self)
        log_posterior = self._log_posterior()
        drawn = {} if self.draws_ is None else self._probabilities_of_training()
        doubts = self.__dict__.get("_column_doubts", "")  # out of memory no column is looked at
        return (
            judge_map(self.status_, self.converged_),
            *([judge_columns(doubts)] if doubts else []),
            *judged(
                self.model_.point(log_posterior),
                log_posterior,
                self.draws_,
                self._raw,
                drawn,
                leave_out=has_all_rows(self),
                copies=self.__dict__.get("_copies"),
            ),
        )

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of the training rows, for diagnosis; a density has none."""
        return {}

    # ---- what the density says of rows

    def _has_density(self) -> bool:
        """Whether something says what rows look like."""
        if self._models_rows:
            return True
        raise AttributeError(f"{type(self).__name__} compares rows and has no density of them.")

    @available_if(_has_density)  # type: ignore[untyped-decorator]
    @by_blocks
    def score_samples(self, X: object) -> Float[np.ndarray, " obs"]:
        """Log density of the observed cells of each row.

        ``log p(x_o) = log sum_k p(k) p(x_o | k)`` at the fitted point: of the model itself, its
        hidden layer, or the mixture that was fitted beside it.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Log densities in nats, in the units of ``X``. They cannot be compared between rows with
            different cells missing: see :meth:`novelty`.
        """
        return self._log_density(self._read(X))

    def _log_density(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density of rows."""
        return self._density.log_density(rows)

    surprise = available_if(_has_density)(surprise)
    conditional = available_if(_has_density)(conditional)
    dependence = available_if(_has_density)(dependence)

    @available_if(_has_density)  # type: ignore[untyped-decorator]
    @by_blocks
    def novelty(self, X: object) -> Float[np.ndarray, " obs"]:
        """How unlike the training table each row is, from 0 to 1; high is novel.

        It is the share of 500 rows drawn from the density, with the same cells missing, that are
        more probable. Two log densities are combined, that of the whole row and that of its cells
        one by one, as tails among the drawn rows. So rows with different missing cells can be
        compared, and 1 in 100 of the density's own rows has a novelty above .99. Counts and
        ordered levels are not used.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Novelties; .5 for a row without a cell.
        """
        return self._novelty(self._read(X))

    def _novelty(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Novelty of rows, from 0 to 1."""
        mixture = self._density
        law, rng = cell_law(mixture, self.columns_), np.random.default_rng(self.seed_)
        return novelty(mixture.standardise(rows), law, rng)

    @property
    def _density(self) -> FittedMixture:
        """The mixture that says what rows look like."""
        check_is_fitted(self)
        mixture = self.model_.density
        assert mixture is not None  # what calls this is not there for estimators without one
        return mixture

    def _drawn_densities(self, number: int, rng: np.random.Generator) -> list[MixtureParameters]:
        """The density in standard units, at the prevalences of use, under some posterior draws."""
        assert self.draws_ is not None  # what calls this asks first
        drawn = drawn_mixtures(self.model_, self._log_posterior(), self.draws_, number, rng)
        return [self._in_use(one) for one in drawn]

    def _in_use(self, parameters: MixtureParameters) -> MixtureParameters:
        """A draw of the density at the prevalences of use; most have no others than their own."""
        return parameters

    @available_if(_has_density)  # type: ignore[untyped-decorator]
    @by_blocks
    def impute(self, X: object, draws: int | None = None) -> Any:
        """Fill the missing cells; observed cells are returned as they came.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows with missing cells.
        draws : int, optional
            Number of completed tables to draw. None: one table, with the
            conditional mean ``E[x | x_o]`` of real and the most probable level
            of categorical cells, at the fitted point; of counts and ordered
            levels, the one nearest to their mean.

        Returns
        -------
        same container as ``X``, or list of them
            One completed table; with ``draws``, a list of tables whose missing
            cells are joint draws, each under another draw of the posterior if
            there is one for the density.

        Raises
        ------
        ValueError
            If ``draws`` is below 1.
        """
        rows, mixture = self._read(X), self._density
        if draws is None:
            return self._decoded(most_likely(mixture, rows, self.columns_), X)
        if draws < 1:
            raise ValueError(f"impute(draws=...) must be at least 1; received {draws}.")
        rng = np.random.default_rng(self.seed_)
        points = [mixture.parameters] * draws
        if self.draws_ is not None:
            points = self._drawn_densities(draws, rng)
        return [self._decoded(drawn(mixture, rows, one, rng), X) for one in points]

    def _decoded(self, cells: Cells, like: Any) -> Any:
        """Cells as a table of the type of another."""
        real, codes, further = cells
        return table.decode(real, codes, self.columns_, like, further)

    # ---- a file

    __loaded__ = try_stored_row

    def _stored_row(self) -> Any:
        """A training row, as new rows come."""
        first = self.rows_.take(np.arange(1))
        return self._decoded((first.real, first.codes, first.further), self._template)

    def save(self, path: str | PathLike[str]) -> str:
        """Write the fitted estimator to one ``.safetensors`` file, whole or not at all.

        The file holds the training rows too, for :meth:`declare` and :meth:`refine`, and what
        ``set_output`` was told, but no metadata requests such as those of ``set_fit_request``.

        Parameters
        ----------
        path : path-like
            File to write; read it with :func:`bayesrbf.load`.

        Returns
        -------
        str
            SHA-256 of the file in hexadecimal.
        """
        from bayesrbf.artefact.estimator_state import save

        check_is_fitted(self)
        return save(self, path)
