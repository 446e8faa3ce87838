"""Base class of the estimators: the fit as one record, its draws, its file."""

from __future__ import annotations

import os
import warnings
from abc import ABC
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache, wraps
from importlib import import_module
from inspect import get_annotations, signature
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast, get_args

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesrbf.answers.conditional import (
    ConditionalDistribution,
    conditional,
    dependence,
    impute,
    novelty,
    score_samples,
    surprise,
)
from bayesrbf.answers.probabilities import declare, diagnose
from bayesrbf.base.arrays import one_blas_thread
from bayesrbf.base.artefact import (
    ArtefactError,
    OtherVersionError,
    conforms,
    load_state,
    of_other_version,
    save_state,
    shown,
)
from bayesrbf.base.priors import Status, Trace
from bayesrbf.base.rows import Observations, copies_sentence
from bayesrbf.base.tasks import progress, showing
from bayesrbf.fit.arguments import SHARED, Rule
from bayesrbf.fit.asking import Fit, requires
from bayesrbf.fit.drawing import drawn
from bayesrbf.fit.model import FittedModel
from bayesrbf.fit.reading import Reading
from bayesrbf.fit.stages import NO_CALIBRATION, Calibration
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.fit.training import by_blocks
from bayesrbf.inference.draws import Draws
from bayesrbf.public import ESTIMATORS
from bayesrbf.reading.notes import warn
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesrbf.inference.diagnose import FindingsTable


# What every estimator shares: arguments checked, a fit taken at once, a posterior, a file.


AnyFit = FittedTable[Any, Any]
"""A fit of any family."""


def fitting[F: Callable[..., object]](method: F) -> F:
    """Run a method that fits or draws on one BLAS thread, and see its interrupts as such.

    Its stages are shown where the estimator is ``verbose``.

    Threads that wait for each other spin: beside other work a fit of hundreds of small products
    took fifty times as long.
    """

    @wraps(method)
    def run(*args: object, **options: object) -> object:
        try:
            verbose = bool(getattr(args[0], "verbose", False))
            with one_blas_thread(), progress(verbose) as track, showing(track):
                return method(*args, **options)
        except Exception as error:
            # Compilers of kernels wrap an interrupt in an error of their own.
            if _interrupted(error):
                raise KeyboardInterrupt from error
            raise

    return cast(F, run)


def _interrupted(error: BaseException | None) -> bool:
    """Whether an error came of an interrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


class Estimator(BaseEstimator, ABC):
    """Base of every estimator. A family writes its constructor, its ``fit`` and its model.

    A fit leaves one value behind, ``fitted_``; all other fitted attributes are parts of it. ``fit``
    assigns it last, so an error or an interrupt leaves the fit before.
    """

    fitted_: AnyFit

    _rules: ClassVar[dict[str, Rule]] = SHARED
    _by_blocks: ClassVar[dict[str, tuple[object, ...]]] = {}
    """Arguments that need all rows in memory unless they have one of these values."""
    _is_shown = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __dir__(self) -> list[str]:
        # the tree is listed without its value, which takes long to make
        attributes = [name for name in object.__dir__(self) if name != "posterior_"]
        tree = ["posterior_"] if "fitted_" in vars(self) and not self._is_shown else []
        return [name for name in attributes if hasattr(self, name)] + tree

    def _get_fitted_attr_html(self, doc_link: str = "") -> object:
        # scikit-learn shows the value of every name in dir(), so it is asked of a copy without it
        if self._is_shown:
            return super()._get_fitted_attr_html(doc_link)
        shown = copy(self)
        shown._is_shown = True
        return shown._get_fitted_attr_html(doc_link)

    # ---- fitting

    def _check_arguments(self) -> None:
        """Check every constructor argument that does not depend on the data."""
        for name, value in self.get_params(deep=False).items():
            if name in self._rules:
                self._rules[name].check(value, f"{type(self).__name__}({name}=...)")

    def _reading(self, **changes: Any) -> Reading:
        """Settings for reading the training table, after a check of the arguments."""
        self._check_arguments()
        arguments = self.get_params(deep=False)
        return Reading(type(self).__name__, arguments, by_blocks=self._by_blocks, **changes)

    def _ended(
        self,
        training: TrainingTable,
        model: FittedModel,
        details: object,
        outcome: tuple[Status, Trace],
        message: str = "",
        calibration: Calibration = NO_CALIBRATION,
    ) -> AnyFit:
        """A fit that ended, with draws if ``inference`` asks; a warning if it did not end well."""
        status, trace = outcome
        message = message or status.sentence
        converged = status is Status.CONVERGED
        if status not in (Status.CONVERGED, Status.STOPPED):
            warn(f"{type(self).__name__}: {message}", ConvergenceWarning)
        if training.repeated:
            message = f"{message} {copies_sentence(training.repeated)}"
        if training.columns is not None and training.columns.message:
            message = f"{message} {training.columns.message}"
        fit: AnyFit = FittedTable(
            training,
            model,
            trace,
            converged,
            message,
            details,
            calibration,
            self._reports_mean,
        )
        inference = vars(self)["inference"]
        return fit if inference == "map" else self._drawn(fit, inference, {})

    @property
    def _reports_mean(self) -> bool:
        """Whether class probabilities are means over draws, where there are draws."""
        return False

    def _check_method(self, method: str) -> None:
        """Refuse a method that cannot draw from this posterior, or a posterior that is none."""

    def __lacks__(self, need: str) -> str:
        """Why an estimator of these arguments lacks what an answer needs; empty where it has it."""
        return ""

    # ---- a posterior

    @requires("likelihood", "rows")
    @fitting
    def refine(self, method: str = "laplace", **options: object) -> Self:
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
            :func:`bayesrbf.inference.nuts.gibbs`,
            :func:`bayesrbf.inference.nuts.nuts` and
            :func:`bayesrbf.inference.laplace.bootstrap`. Ctrl-C keeps what was drawn.

        Returns
        -------
        self
            With the draws in ``posterior_``.

        Raises
        ------
        ValueError
            If the method is unknown, or none for this model.
        """
        self.fitted_ = self._drawn(self.fitted_, method, options)
        return self

    def _drawn(self, fit: AnyFit, method: str, options: dict[str, object]) -> AnyFit:
        """The fit with draws by a method."""
        self._check_method(method)
        return fit.with_draws(drawn(fit, method, options))

    @requires("likelihood", "rows")
    @fitting
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
        from bayesrbf.fit.trees import from_datatree

        fit = self.fitted_
        coords = fit.model.description(fit.rows, fit.axes).coords
        draws = from_datatree(tree, fit.log_posterior, coords)
        self.fitted_ = fit.with_draws(draws)
        return self

    # ---- questions

    @requires("likelihood", "rows")
    def declare(self, **options: Any) -> pm.Model:
        """Declare the graph of this model on its training rows.

        Calibration and ``class_prior`` are not part of the graph. It is made to be read, checked
        against and extended. To draw from this posterior, ``refine("nuts")`` takes seconds where
        ``pm.sample`` of the graph takes minutes.

        Parameters
        ----------
        **options : object
            ``latent``, of mixtures: ``"marginal"`` sums hidden labels and components out,
            ``"explicit"`` makes them nodes. ``coefficients``, of RBF networks: ``"signed"`` as
            posteriors have output weights, or in two bounded ``"halves"``, as the mode is found.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``.

        Raises
        ------
        ValueError
            If the model has no declared joint, or its training rows are out of memory.

        Notes
        -----
        ``pm.sample_prior_predictive`` needs a graph without potentials. Every objective of
        mixtures but the likelihood is declared by potentials, the default blend of
        :class:`bayesrbf.HybridMixtureClassifier` included: draws from the prior ignore these, PyMC
        warns, and the tables are none of this model. ``objective="likelihood"`` has a prior
        predictive distribution.

        ``pm.model_to_mermaid`` draws the graph without Graphviz.

        Examples
        --------
        >>> import numpy as np
        >>> import pymc as pm
        >>> from bayesrbf import HybridMixtureClassifier
        >>> X, y = np.array([[0.0], [0.5], [2.0], [2.5]]), ["no", "no", "yes", "yes"]
        >>> model = HybridMixtureClassifier(objective="likelihood", calibrate=False)
        >>> graph = model.fit(X, y).declare()
        >>> pm.sample_prior_predictive(3, graph, random_seed=0)["prior_predictive"]["x"].shape
        (1, 3, 4, 2)
        >>> pm.model_to_mermaid(graph).splitlines()[0]
        'graph TD'
        """
        return declare(self._fit, **options)

    @requires("likelihood")
    def diagnose(self) -> FindingsTable:
        """Judge fit and draws by figures, each with a sentence; a warning lists the bad ones.

        Returns
        -------
        DataFrame
            One row a figure, with columns ``row``, ``value``, ``good`` (on the right side of its
            bound) and ``sentence``: convergence of the MAP and, where there are draws, Pareto
            k-hat, curvature, R-hat (as drawn, relabelled, and of class probabilities), effective
            draws, divergences, distance from the MAP, leave-one-out; whatever the method gives.

        Warns
        -----
        PosteriorWarning
            Once, if figures are bad; it says what to do next.
        """
        return diagnose(self._fit)

    @requires("density")
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
        return score_samples(self._fit, X)

    @requires("density")
    @by_blocks
    def novelty(self, X: object) -> Float[np.ndarray, " obs"]:
        """Novelty of each row compared with the training table, from 0 to 1.

        It is the share of 500 rows drawn from the density, with the same cells missing, that are
        more probable. Two log densities are combined, that of the whole row and that of its cells
        one by one, as tails among the drawn rows. So rows with different missing cells can be
        compared, and 1 in 100 of the density's own rows has a novelty above .99.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Novelties; .5 for a row without a cell.
        """
        return novelty(self._fit, X)

    @requires("density")
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
            levels, the one nearest to their mean; of angles, the mean direction.

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
        return impute(self._fit, X, draws)

    @requires("density")
    def surprise(
        self, X: object, *, prob: float = 0.9, false_discoveries: float = 0.1
    ) -> xr.Dataset:
        r"""Tail probability of each observed cell given the rest of its row.

        The tail of a real cell is :math:`2 \min(P(X \le x), P(X \ge x))`, that of a level the
        probability of all levels at most as probable. A row whose cells look odd (a tail below
        .005) is judged again without them, so that an error does not spoil the verdict on its
        neighbours. Labels have no part in it.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        prob : float
            Probability inside ``lower`` and ``upper``.
        false_discoveries : float
            Rate at which ``stands_out`` may be wrong, by Benjamini and Hochberg over all cells.

        Returns
        -------
        xarray.Dataset
            ``log_tail`` (nats), ``expected``, ``lower``, ``upper`` and ``stands_out`` over obs and
            column; NaN or None where the cell is missing or not judged, and intervals of real
            cells only.

        Raises
        ------
        ValueError
            If an argument or the table cannot be used.

        References
        ----------
        .. [1] Benjamini, Hochberg (1995), Controlling the false discovery rate, JRSS B 57.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesrbf import MixtureDensity
        >>> x = np.random.default_rng(0).normal(size=(200, 1))
        >>> density = MixtureDensity(random_state=0).fit(np.hstack([x, 2 * x + 0.1 * x**2]))
        >>> density.surprise([[1.0, 2.1], [1.0, -5.0]])["stands_out"].to_numpy()
        array([[False, False],
               [False,  True]])
        """
        return surprise(self._fit, X, prob=prob, false_discoveries=false_discoveries)

    @requires("density")
    def conditional(
        self, X: object, columns: Any = None, *, draws: int | None = None
    ) -> ConditionalDistribution:
        """Distribution of some cells of each row, given the others.

        It is the exact conditional distribution of the density, for any pattern of missing cells.
        Its mean fills a table as :meth:`impute` does, its quantiles are prediction intervals, its
        draws multiple imputations. Columns that are named are predicted from the others in every
        row; their own cells and the labels are not used.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows with missing cells.
        columns : str, int or list of them, optional
            Names or positions of columns that are unknown in every row. None: the missing cells of
            each row.
        draws : int, optional
            Number of posterior draws whose distributions are averaged, at that many times the cost.
            None: the distribution at the fitted point.

        Returns
        -------
        ConditionalDistribution
            With ``mean()``, ``sd()``, ``quantile(q)``, ``probabilities(column)``,
            ``log_density(values)`` and ``sample(n)``.

        Raises
        ------
        ValueError
            If the table has no such column, an argument cannot be used, or there are no draws.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesrbf import MixtureDensity
        >>> x = np.random.default_rng(0).normal(size=(500, 1))
        >>> noise = np.random.default_rng(1).normal(size=(500, 1))
        >>> density = MixtureDensity(random_state=0).fit(np.hstack([x, 10 * x + noise]))
        >>> given = density.conditional([[1.0, np.nan], [np.nan, 20.0]])
        >>> given
        ConditionalDistribution of 2 cells in 2 of 2 rows, at the fitted point
          0: x1 9.894 ± 1.4
          1: x0 1.977 ± 0.14
        >>> given.mean().round(1)
            x0   x1
        0  NaN  9.9
        1  2.0  NaN
        >>> without_last = density.conditional([[1.0, 3.0]], "x1")
        >>> [round(float(without_last.quantile(q).iloc[0, 0]), 1) for q in (0.05, 0.95)]
        [7.5, 12.3]
        """
        return conditional(self._fit, X, columns, draws=draws)

    @requires("density")
    def dependence(self, prob: float = 0.9, draws: int = 50) -> xr.Dataset:
        """Mutual information of the columns, and of columns and class, under the density.

        Mutual information includes every kind of dependence and does not depend on units. A column
        has information on the class even if it depends on the class only through other columns.

        Parameters
        ----------
        prob : float
            Probability inside the equal-tailed intervals.
        draws : int
            Number of posterior draws, where there are any, that the intervals are of.

        Returns
        -------
        xarray.Dataset
            ``information`` over column and column_bis in nats, NaN of a column with itself; its
            ``coefficient`` from 0 to 1, which of two normal columns is the size of their
            correlation; the interval ``lower`` to ``upper``, which holds the fitted information.
            The interval is NaN for a point, and where draws leave the density as it is, as those of
            stacks and kernel networks do. The columns are the ``label``, the real ones, the
            categorical ones, missingness indicators, and for a real column with point masses an
            indicator of which point mass the cell is; an angle has two, its cosine and its sine.
            There is no label where the density was fitted without it, as in RBF networks and sparse
            mixtures.

        Raises
        ------
        ValueError
            If an argument cannot be used.
        """
        return dependence(self._fit, prob, draws)

    # ---- parts of the fit

    @property
    def _fit(self) -> AnyFit:
        """The fit; NotFittedError where there is none."""
        check_is_fitted(self)
        return self.fitted_

    @property
    def model_(self) -> FittedModel:
        """The fitted model."""
        return self._fit.model

    @property
    def columns_(self) -> Columns:
        """Names and kinds of the columns."""
        return self._fit.columns

    @property
    def rows_(self) -> Observations:
        """Training rows of positive weight, as the model takes them."""
        return self._fit.rows

    @property
    def row_indices_(self) -> Int[np.ndarray, " obs"]:
        """Position of each of :attr:`rows_` in the table."""
        return self._fit.table.row_indices

    @property
    def seed_(self) -> int:
        """Seed of the fit."""
        return self._fit.table.seed

    @property
    def passes_(self) -> int:
        """Passes over a training table out of memory; 0 for one in memory."""
        return self._fit.table.passes

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self._fit.table.n_columns

    @property
    def feature_names_in_(self) -> Shaped[np.ndarray, " column"]:
        """Names of the columns, where the table had names."""
        names = self._fit.table.names
        if names is None:
            raise AttributeError("The table of the fit had no names of columns.")
        return names

    @property
    def draws_(self) -> Draws | None:
        """Draws of the posterior, components named as in the fit."""
        return self._fit.draws

    @property
    def posterior_(self) -> xr.DataTree:
        """Posterior of the declared graph; one draw after ``inference="map"``."""
        return self._fit.tree

    @property
    def status_(self) -> str:
        """Message on the end of the fit, and on the diagnostics of the draws."""
        return self._fit.status

    @property
    def converged_(self) -> bool:
        """Whether the fit converged."""
        return self._fit.converged

    @property
    def n_iter_(self) -> int:
        """Iterations of the fit."""
        return self._fit.trace.n_iter

    @property
    def objective_(self) -> float:
        """Log posterior density of the fitted point."""
        return float(self._fit.trace.log_posterior[-1])

    # ---- a file

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
        check_is_fitted(self)
        return save(self, self.fitted_, path)

    def __loaded__(self) -> None:
        """Check what was read: arguments, and answers about a training row, which are shared later.

        ValueError where a number is none, or class probabilities do not sum to one.
        """
        # What is wrong with the numbers of a file is an error below, and no warning.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self._check_arguments()
            answers = self._answers_about(self.fitted_.stored_row())
        for name, values in answers.items():
            if not np.isfinite(values).all():
                raise ValueError(f"{name} of a stored row gives {values.ravel()[0]}")
            total = values.sum()
            if name == "predict_proba" and abs(total - 1) > 1e-6:
                raise ValueError(f"the class probabilities of a stored row sum to {total}")

    def _answers_about(self, X: object) -> dict[str, np.ndarray]:
        """Answers about a row that are tried where a file is read."""
        has_density = self.fitted_.model.density is not None
        return {"score_samples": self.score_samples(X)} if has_density else {}


# Fitted estimators in files: arguments and the fit, written whole and read without trust.


CONTAINER: Final = "_sklearn_output_config"
"""Attribute in which scikit-learn keeps the container of ``set_output``."""


def save(estimator: BaseEstimator, fit: Fit, path: str | os.PathLike[str]) -> str:
    """Write an estimator and its fit to one file, whole or not at all, and return its SHA-256.

    The digest is in hexadecimal, for ``load(path, digest=...)``. TypeError for a foreign class,
    ValueError for state that a file cannot hold (such as a RandomState), OSError where the file
    cannot be written; an older file then stays.
    """
    kind = type(estimator)
    if ESTIMATORS.get(kind.__name__) != kind.__module__:
        raise TypeError(
            f"save() writes {' and '.join(ESTIMATORS)}; received a {kind.__name__}. "
            "Save the estimator inside a pipeline, or the class it derives from."
        )
    record = {
        "arguments": estimator.get_params(deep=False),
        "fitted": fit,
        "container": vars(estimator).get(CONTAINER),
    }
    return save_state(path, kind.__name__, record)


def load(path: str | os.PathLike[str], digest: str | None = None) -> Any:
    """Read a fitted estimator that ``save`` wrote; no code in the file is run.

    The types and conditions of every record are checked, and one stored row is predicted.

    Parameters
    ----------
    path : path-like
        File to read.
    digest : str, optional
        SHA-256 that the file must have, in hexadecimal, as ``save`` returned it.

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    ArtefactError
        If the file is damaged, is no artefact, or has another digest.
    OSError
        If the file cannot be read.
    """
    kind, record = load_state(path, digest)
    if kind not in ESTIMATORS:
        raise of_other_version(path, f"holds the unknown estimator {kind!r}")
    try:
        estimator = _from_record(getattr(import_module(ESTIMATORS[kind]), kind), record)
        estimator.__loaded__()
    except OtherVersionError as error:
        raise of_other_version(path, error) from error
    except Exception as error:  # whatever a state that no fit leaves behind makes of predicting
        raise ArtefactError(f"{path} is no state of a {kind}: {shown(error)}.") from error
    return estimator


def _from_record(kind: type, record: Mapping[str, Any]) -> BaseEstimator:
    """The estimator that a file describes; the record is not trusted."""
    if set(record) != {"arguments", "fitted", "container"}:
        raise ValueError(f"unknown or missing entries: {', '.join(sorted(record))}")
    if unknown := set(record["arguments"]) - set(signature(kind).parameters):
        raise OtherVersionError(f"has unknown arguments: {', '.join(sorted(unknown))}")
    estimator = kind(**record["arguments"])
    fit = record["fitted"]
    if type(fit) is not FittedTable or not all(
        map(conforms, (fit.model, fit.details), _parts(kind))
    ):
        raise TypeError(f"its fit is none of a {kind.__name__}")
    if fit.table.owner != kind.__name__:
        raise ValueError(f"its fit is one of a {fit.table.owner}")
    estimator.fitted_ = fit
    if record["container"] is not None:
        if not isinstance(record["container"], dict):
            raise TypeError("the container of set_output must be dict")
        setattr(estimator, CONTAINER, record["container"])
    return estimator


@cache
def _parts(kind: type[BaseEstimator]) -> tuple[object, object]:
    """Types of the model and of the details that a family's fit has."""
    model, details = get_args(get_annotations(kind, eval_str=True)["fitted_"])
    return model, details
