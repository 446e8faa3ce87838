"""Base class of the classifiers: probabilities, decisions, explanations of rows."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import ClassifierMixin

from bayesrbf.answers.decide import acquire_cells, decide
from bayesrbf.answers.explain import explain
from bayesrbf.answers.probabilities import (
    predict_posterior,
    prior_sensitivity,
    summary_of,
    uncertainty,
)
from bayesrbf.families.estimator import Estimator, fitting
from bayesrbf.fit.arguments import one_of
from bayesrbf.fit.asking import new_rows, requires
from bayesrbf.fit.drawing import Rehearsal
from bayesrbf.fit.held_out import Predict, hold_out, masking_of, split_rows, warn_nothing_held_out
from bayesrbf.fit.reading import Reading
from bayesrbf.fit.stages import NO_CALIBRATION, Calibration
from bayesrbf.fit.table import TrainingTable
from bayesrbf.fit.training import by_blocks
from bayesrbf.fit.updates import Update
from bayesrbf.inference.draws import MEMORY

if TYPE_CHECKING:
    import xarray as xr


LogProbabilities = Float[np.ndarray, "obs label"]
Labels = Shaped[np.ndarray, " obs"]


class Classifier(ClassifierMixin, Estimator):
    """Base of the classifiers."""

    _mean_is_better: ClassVar[bool] = False
    """Whether the mean over draws was better than an uncalibrated point."""

    def __rehearsal__(self) -> Rehearsal:
        """Settings of rehearsals for this kind of classifier."""
        return Rehearsal()

    # ---- fitting

    def _reading(self, **changes: Any) -> Reading:
        """Settings for reading the training table, with the weight of unlabelled rows.

        A weight that is left to the data is 1 at first.
        """
        weight = self.get_params(deep=False).get("unlabelled_weight", 1.0)
        factor = float(weight) if isinstance(weight, Real) else 1.0
        return super()._reading(unlabelled_weight=factor, **changes)

    def _calibration(self, training: TrainingTable, predict: Predict) -> Calibration:
        """Calibration by out-of-fold class log joints, of one draw or of several.

        None without ``calibrate``, nor, with a warning, where no row is held out.
        """
        arguments = self.get_params(deep=False)
        if not arguments["calibrate"]:
            return NO_CALIBRATION
        rows, classes, cv = training.rows, training.class_labels, arguments["cv"]
        # Codes beyond the classes are sets of several: such a row tells of no single class.
        splits = (
            (train, test.take(test.labels < classes.size))
            for train, test in split_rows(cv, rows, training.row_indices, training.seed)
        )
        certain = np.intersect1d(rows.labels, np.arange(classes.size))
        masking = masking_of(rows, training.read_columns, classes.size, training.seed)
        held_out = hold_out(splits, predict, classes, required=certain, masking=masking)
        if held_out is not None:
            return held_out.calibration()
        warn_nothing_held_out(training.owner, cv)
        return NO_CALIBRATION

    @property
    def _reports_mean(self) -> bool:
        """Whether the mean over draws is reported: of some families where nothing calibrates."""
        return self._mean_is_better and not self.get_params(deep=False)["calibrate"]

    # ---- a posterior

    @requires("likelihood", "rows")
    @fitting
    def refine(
        self,
        method: str = "laplace",
        *,
        model_uncertainty: object = None,
        **options: object,
    ) -> Self:
        """Draw from the posterior, and count how wrong the model may be if asked.

        Parameters
        ----------
        method : {"laplace", "advi", "gibbs", "nuts", "bootstrap"}
            How parameters are drawn; see :class:`MixtureDensity`, whose methods these are.
        model_uncertainty : {None, "pool"}
            None: intervals are those of the parameters, if the model is right. ``"pool"``: a
            :class:`StackedClassifier` is fitted to the same rows, and intervals count its error and
            how far the model is from it. Probabilities do not change, their intervals do.
        **options : object
            Passed on, such as ``draws``, ``chains`` and ``random_state``.

        Returns
        -------
        self
            With the draws in ``posterior_``.

        Raises
        ------
        ValueError
            If the method is unknown, or none for this model, or no pool can be fitted to its rows.
        """
        if model_uncertainty not in (None, "pool"):
            raise ValueError(
                f"{type(self).__name__}.refine(model_uncertainty=...) must be None or 'pool'; "
                f"received {model_uncertainty!r}."
            )
        if model_uncertainty is None:
            return super().refine(method, **options)
        from bayesrbf.families.stack.model_uncertainty import (
            model_uncertainty_of,
            require_comparable,
        )

        fit = self.fitted_
        require_comparable(fit)
        arguments = self.get_params(deep=False)
        cv, n_jobs = arguments.get("cv"), arguments.get("n_jobs")
        # First what may be refused, then what takes long.
        self.fitted_ = self._drawn(fit, method, options).replaced(
            model_uncertainty=model_uncertainty_of(fit, cv, n_jobs)
        )
        return self

    # ---- predicting

    @requires("probabilities")
    @by_blocks
    def predict_log_proba(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Log of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Class log probabilities in nats, in the order of ``classes_``.
        """
        return self._log_probabilities(X)

    def _log_probabilities(self, X: object) -> LogProbabilities:
        """Class log probabilities of rows in memory."""
        rows = new_rows(self._fit, X, holes=True).cells
        return self.fitted_.class_log_probabilities(rows)

    @requires("probabilities")
    @by_blocks
    def predict_proba(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Class probabilities of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one. After :meth:`refine`
            they are those of the fit, to which scores and temperatures belong; mixtures and
            exemplars that were not calibrated give the mean over the draws.
            ``class_prior`` moves what they would be without it by Bayes' rule: each times
            ``class_prior`` over the weighted share of its class among the labelled rows.
        """
        return np.exp(self._log_probabilities(X))

    @by_blocks
    def predict(self, X: object) -> Labels:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Class labels.
        """
        codes = self._log_probabilities(X).argmax(axis=1)
        return self.classes_[codes]

    @requires("probabilities")
    def estimate_prior(self, X: object) -> xr.Dataset:
        """Class frequencies of a new population, estimated from unlabelled rows.

        The estimate is right if only the shares of the classes have changed, and not the classes
        themselves. It starts from the shares of training; the estimator stays as it is.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows of the new population, drawn as they come; no labels are needed.

        Returns
        -------
        xarray.Dataset
            ``probability``, its ``standard_error`` and the ``trained`` probability
            over label; attribute ``gain``: how much better the rows are explained, in
            nats (no shift: about half a chi-squared of n_classes - 1).

        References
        ----------
        .. [1] Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a
           classifier to new a priori probabilities, Neural Computation 14, 21-41.
        """
        from bayesrbf.answers.probabilities import adapt_prior

        before = copy(self)
        before.fitted_ = plain = self._fit.at_prevalence(None)
        shift = adapt_prior(before.predict_log_proba(X), plain.shares_of_use)
        return shift.to_dataset(plain.shares_of_use, plain.classes)

    @requires("probabilities")
    def adapt_prior(self, X: object) -> Self:
        """Adapt to the class frequencies of a new population, by :meth:`estimate_prior`.

        Later predictions use these frequencies, as if they had been given as ``class_prior``.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows of the new population, drawn as they come; no labels are needed.

        Returns
        -------
        self
            All later predictions are for these frequencies.
        """
        shares = self.estimate_prior(X)["probability"].to_numpy()
        self.fitted_ = self._fit.at_prevalence(shares)
        return self

    def assume_missingness(self, missingness: Literal["as_trained", "ignorable"]) -> Self:
        """Say why cells of later new rows are missing, or measured; nothing is fitted again.

        Probabilities and intervals are for new rows that come as the training rows came: the same
        population, cells missing for the same reasons. Where cells of new rows are missing, or
        measured, for other reasons, such as a test that is now made of everybody, missing
        indicators tell nothing of the class.

        Parameters
        ----------
        missingness : {"as_trained", "ignorable"}
            Whether cells of new rows are missing for the reasons of training.

        Returns
        -------
        self
            All later answers about rows are for such rows.

        Raises
        ------
        ValueError
            If the estimator makes no use of missing indicators, or the word is another.
        """
        fit = self._fit
        if "missingness" not in self.get_params(deep=False):
            raise ValueError(
                f"{type(self).__name__}.assume_missingness: this estimator makes no use of missing "
                "indicators, so its answers hold for cells missing at random in either case."
            )
        one_of("as_trained", "ignorable").check(
            missingness, f"{type(self).__name__}.assume_missingness(missingness=...)"
        )
        self.fitted_ = fit.replaced(table=replace(fit.table, missingness=missingness))
        return self

    @requires("likelihood")
    def predict_posterior(
        self, X: object, y: object = None, *, memory: int = MEMORY
    ) -> xr.DataTree:
        """Class probabilities of each row under every draw of the posterior.

        Under ``class_prior`` every draw is moved by Bayes' rule for itself.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        y : array-like of shape (n_obs,), optional
            True labels of the rows: labels are drawn beside them, for predictive checks. Rows whose
            label is hidden have none.
        memory : int
            Bytes of the probabilities: beyond, every k-th draw is kept, with a warning.

        Returns
        -------
        xarray.DataTree
            ``predictions`` with ``probability`` over chain, draw, obs and label;
            ``predictions_constant_data`` with the rows. With ``y`` also ``posterior_predictive``
            and ``observed_data``.

        Raises
        ------
        ValueError
            If a label is no class of the fit, or not even one draw of each chain fits into the
            memory.
        """
        return predict_posterior(self._fit, X, y, memory=memory)

    @requires("likelihood", "rows", "draws", "prior")
    def prior_sensitivity(self, X: object) -> xr.Dataset:
        """Change of class probabilities under half and twice the log prior.

        By importance weights of the draws where these have a light tail; else the mode is found
        again. The weights and temperatures of a stack are fitted again. Rates of kernel networks
        and precisions of sparse mixtures stay as fitted, so that the changes are too small there.
        A kernel network is fitted again at half and twice its scale, too.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are treated as in training.

        Returns
        -------
        xarray.Dataset
            ``probability`` over prior (``half``, ``as it is``, ``twice``), obs and label, and the
            largest ``change`` of every row; of a kernel network also ``probability_at_scale`` in
            the same order, and of a stack ``lower`` and ``upper``, ends of 90 % intervals.
            Attributes are ``psense``, ArviZ's sensitivity of the probability that moves most
            (above .05 the prior tells much), ``refitted``, 1 where the mode was found again, and
            ``message``, which says whether the prior has a part.

        Raises
        ------
        ValueError
            If there are no draws of the posterior, or it has no prior that a power weakens: RBF
            networks and exemplars have none.
        """
        return prior_sensitivity(self._fit, X)

    @requires("likelihood")
    @by_blocks
    def uncertainty(
        self, X: object, prob: float = 0.9, *, memory: int = MEMORY, asked_at: object = None
    ) -> xr.Dataset:
        """Class probabilities with intervals, kinds of uncertainty and the novelty of each row.

        Where :meth:`predict_proba` is not the mean of the draws, they are moved so that it is their
        median, or nearly their mean for a stack (:doc:`/uncertainty`).

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        prob : float
            Probability inside the equal-tailed intervals.
        memory : int
            Bytes that arrays over draws may take at once; rows are summarised in blocks.
        asked_at : array-like or frame of shape (n_obs, n_columns), optional
            The same rows before cells were filled in to ask what if: such a cell was not measured
            as those of training were, and moves no missing indicator.

        Returns
        -------
        xarray.Dataset
            ``probability`` (:meth:`predict_proba`), sd and interval per class; entropies in nats;
            ``log_density`` of the cells; :meth:`novelty`. Without draws, intervals and kinds of
            uncertainty are NaN. :func:`bayesrbf.rehearse` tries how often such intervals hold.
            ``attrs["assumes_model"]`` is 1 where they hold only if the model is right.
            ``to_dataframe()`` has one line for every row, as for all answers about rows.
        """
        return uncertainty(self._fit, X, prob, memory=memory, asked_at=asked_at)

    @requires("columns", "probabilities")
    def explain(
        self,
        X: object,
        *,
        exact: int = 12,
        tolerance: float = 0.05,
        max_pairs: int = 256,
        random_state: int | None = None,
    ) -> xr.Dataset:
        """Contribution of each observed cell, and of the pattern, to the log odds of each class.

        The value of some cells of a row is the log odds of each class against the rest that
        :meth:`predict_proba` gives when all other cells are hidden. A Shapley value is what a cell
        adds to it, averaged over the orders in which cells may be revealed. Where missing
        indicators are evidence, the pattern of missing and measured cells is revealed as one cell
        more, and has a Shapley value of its own. All of a row sum to ``log_odds - base``.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells explain nothing and stay missing.
        exact : int
            Most observed cells of a row, at most 20, for which all ``2**m`` coalitions are
            evaluated; a pattern that is evidence counts as one cell.
        tolerance : float
            For rows with more: orders are drawn until every standard error is at most this in nats,
            or this share of ``|log_odds - base|`` where that is more than one nat.
        max_pairs : int
            Most pairs of an order and its reverse that are drawn for such a row.
        random_state : int, optional
            Seed of the orders, the same for every row; None: that of the fit.

        Returns
        -------
        xarray.Dataset
            ``shapley``, ``left_out`` (what is lost without the cell) and ``standard_error`` of the
            Shapley values over obs, column and label, NaN where the cell is missing;
            ``pattern_shapley``, ``pattern_left_out`` and ``pattern_standard_error`` of the pattern
            over obs and label, 0 where missing indicators are no evidence; ``log_odds`` and
            ``base`` (no cell and no pattern) over obs and label. Over obs ``pattern``, which names
            columns with evidence that are missing and measured ones that most training rows lack,
            and ``evaluations``, the rows that were predicted for it.

        Raises
        ------
        ValueError
            If an argument or the table cannot be used.

        Warns
        -----
        UserWarning
            If a standard error is still larger after ``max_pairs``.
        """
        return explain(
            self._fit,
            X,
            exact=exact,
            tolerance=tolerance,
            max_pairs=max_pairs,
            random_state=random_state,
        )

    @requires("probabilities")
    def decide(self, X: object, costs: object, reject: float | None = None) -> xr.Dataset:
        """Take the decision of least expected cost for each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        costs : mapping, frame, nested mapping or array of shape (n_classes, n_decisions)
            ``{class: cost}`` says what it costs to mistake a row of a class, 1 where none is given,
            and the decisions are answers with a class. Else the cost of every decision (column) in
            a row of every class: a pandas frame with the classes as index, ``{class: {decision:
            cost}}``, or an array in the order of ``classes_``, whose decisions are answers with a
            class where there are as many, else numbers. Gains are negative costs.
        reject : float, optional
            Cost of referring a row to somebody else instead.

        Returns
        -------
        xarray.Dataset
            ``expected_cost`` over obs and decision. Over obs: the ``best`` decision, its ``cost``,
            and ``probability_best``, the share of the draws of :meth:`uncertainty` under which it
            costs least (NaN without draws). With ``reject`` also ``refer``: whether referring the
            row is cheaper.

        Raises
        ------
        ValueError
            If costs name what is no class, tables of them do not name every class, or one is
            missing or not finite.
        """
        return decide(self._fit, X, costs, reject)

    @requires("density", "probabilities")
    def acquire_cells(
        self, X: object, costs: object = None, loss: object = None, draws: int = 200
    ) -> xr.Dataset:
        """Value of measuring each missing cell, and the cell to measure next.

        The gain of a cell is the expected fall of the entropy of the class, or of the expected cost
        of the best decision. The expectation is over the values that the density expects in the
        cell. It is exact for levels, by quadrature in every component for real cells, and by 32
        quantiles for counts. For expected costs the quadrature is right to a few per cent. If the
        density is not the classifier's own, as in a stack, a gain can be slightly below 0. Under
        ``missingness="informative"`` a measured cell still counts as one that was missing.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows with missing cells.
        costs : float, mapping of column to float, or array-like of shape (n_columns,), optional
            Prices of the cells, at least 0. Columns that a mapping does not name cannot be
            measured. None: all prices are 0.
        loss : mapping, frame, nested mapping or array of shape (n_classes, n_decisions), optional
            Cost of every decision in a row of every class, as :meth:`decide` takes it, in the units
            of the prices. None: the gain is one of entropy, in nats.
        draws : int
            Number of draws that gains are averaged over, where probabilities are means over the
            draws of :meth:`refine`. The time grows with it.

        Returns
        -------
        xarray.Dataset
            ``gain`` and ``price`` over obs and column, NaN where the cell is observed, cannot be
            measured or was never observed at fit. Over obs ``best``, the column to measure next,
            and ``best_price``, its price. The best column has the largest gain; with prices the
            largest gain per price, and with a ``loss`` the largest gain minus price. It is an empty
            string where no gain is left.

        Raises
        ------
        ValueError
            If the prices, the losses, the number of draws or the table cannot be used.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesrbf import HybridMixtureClassifier
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(["a", "b"], 100)
        >>> X = rng.normal(size=(200, 2)) + 3 * (y == "b")[:, None] * [1.0, 0.0]
        >>> model = HybridMixtureClassifier(random_state=0).fit(X, y)
        >>> worth = model.acquire_cells([[np.nan, np.nan]])
        >>> str(worth["best"][0].item()), bool(worth["gain"][0, 0] > 0.3)
        ('x0', True)
        """
        return acquire_cells(self._fit, X, costs, loss, draws)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Share of the rows whose most probable class is their label.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows.
        y : array-like of shape (n_obs,)
            Labels; ValueError if one is hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights.

        Returns
        -------
        float
            Accuracy.
        """
        unlabelled = self.get_params(deep=False)["unlabelled"]
        from bayesrbf.fit.cross_validation import refuse_unlabelled

        refuse_unlabelled(y, unlabelled, type(self).__name__)
        return float(super().score(X, y, sample_weight))

    def _answers_about(self, X: object) -> dict[str, np.ndarray]:
        """Answers about a row that are tried where a file is read."""
        answers = super()._answers_about(X) | {"predict_proba": self.predict_proba(X)}
        if self.fitted_.draws is None:
            return answers
        # Arrays, because xarray and what it looks for take longer to load than a file.
        summary = summary_of(self.fitted_, new_rows(self.fitted_, X).cells)
        return answers | {"uncertainty": summary.mean}

    # ---- parts of the fit

    @property
    def classes_(self) -> Shaped[np.ndarray, " label"]:
        """Class labels, sorted."""
        return self._fit.classes

    @property
    def updates_(self) -> tuple[Update, ...]:
        """Updates by labelled rows (:func:`bayesrbf.recalibrate`), each with a sentence."""
        return self._fit.updates

    @property
    def temperature_(self) -> float:
        """Factor of the class log probabilities; 1 without calibration."""
        return self._fit.calibration.temperature

    @property
    def calibration_(self) -> Calibration:
        """Calibration by rows held out, also by the missing fraction where that is known."""
        return self._fit.calibration
