"""A fit as one frozen record: table, model, trace, draws; and rows out of its distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.base import BaseEstimator

from bayesrbf import table
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.missing_fraction import missing_fraction_of
from bayesrbf.base.priors import Trace
from bayesrbf.base.records import (
    Requirements,
    field_values,
    named,
    simplex,
    within,
)
from bayesrbf.base.rows import MixtureParameters, Observations
from bayesrbf.fit.chain import Chain, Stage
from bayesrbf.fit.model import Axes, FittedModel, ModelUncertainty, Replicates, drawn_labels, evenly
from bayesrbf.fit.probabilities import PredictiveSummary
from bayesrbf.fit.stages import (
    NO_CALIBRATION,
    Calibration,
    ClassShares,
    Extrapolation,
    Prevalence,
    fit_extrapolation,
)
from bayesrbf.fit.updates import Update
from bayesrbf.inference.draws import Draws
from bayesrbf.mixture.cells import Cells, cell_law, novelty
from bayesrbf.mixture.fitted import FittedMixture
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.diagnose import Finding


# The training table as it was read.


@runtime_checkable
class RowReader(Protocol):
    """A reader of rows that are compared whole."""

    def read(self, X: Any, shell: BaseEstimator, *, reset: bool) -> Observations:
        """Rows without cells, of the columns that scikit-learn keeps in an estimator.

        ``reset`` takes the columns of X in their place.
        """


@named
@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A training table as it was read: columns, rows and, for a classifier, classes."""

    owner: str
    """Name of the estimator, for messages."""
    columns: Columns | None
    """None where rows are compared whole."""
    rows: Observations
    """Rows of positive weight, in the user's units."""
    row_indices: Int[np.ndarray, " obs"]
    """Position of each row in the table."""
    seed: int
    n_columns: int
    names: Shaped[np.ndarray, " column"] | None = None
    """Names of the columns, where the table had names."""
    template: Any = None
    """A table without a row, of the user's type; None where rows are not given back."""
    classes: Shaped[np.ndarray, " label"] | None = None
    """Class labels in the order of their codes."""
    prevalence: Float[np.ndarray, " label"] | None = None
    """Class probabilities of use; None: those of training."""
    handle_unknown: Literal["missing", "error"] = "missing"
    """Treatment of a level that no training row had."""
    missingness: Literal["as_trained", "ignorable"] = "as_trained"
    """Reasons for which cells of new rows are missing: those of training, or others."""
    doubts: str = ""
    """Message on columns that may not be what they seem; empty where none is doubtful."""
    copies: Int[np.ndarray, "2 given"] | None = None
    """Every row and its index among distinct rows, if the log likelihood is of distinct rows."""
    unlabelled_weight: float = 1.0
    """Factor of the weight of rows without a label."""
    passes: int = 0
    """Passes over a table out of memory; 0 for one in memory."""
    sampled: bool = False
    """Whether the rows are a sample of a table out of memory, all of which was fitted to."""
    repeated: int = 0
    """Rows that are copies of an earlier one beyond chance."""
    whole: RowReader | None = None
    """Reader of rows that are compared whole; None: rows are read column by column."""

    @property
    def read_columns(self) -> Columns:
        """The columns of a table that was read column by column."""
        if self.columns is None:
            raise AttributeError(
                f"This {self.owner} compares rows and knows no columns of a table."
            )
        return self.columns

    @cached_property
    def absent(self) -> Bool[np.ndarray, "obs column"]:
        """Which cells of the rows are missing."""
        return ~table.observed_cells(self.rows, self.read_columns)

    @property
    def class_labels(self) -> Shaped[np.ndarray, " label"]:
        """The classes of a classifier."""
        assert self.classes is not None  # what asks for classes is a classifier
        return self.classes

    def indices_of(self, positions: Int[np.ndarray, " some"]) -> Int[np.ndarray, " some"]:
        """Indices of the rows at these positions of the table; arbitrary for rows left out."""
        sorter = np.argsort(self.row_indices)
        at = np.searchsorted(self.row_indices, positions, sorter=sorter)
        indices: np.ndarray = sorter[at.clip(max=sorter.size - 1)]
        return indices

    def held_rows(
        self, positions: Int[np.ndarray, " row"], index: Int[np.ndarray, " row"]
    ) -> Observations:
        """Rows of the table as held-out rows of a pool, with their index among these."""
        rows = self.rows.take(self.indices_of(positions)).unlabelled()
        return replace(rows, subjects=None, whole=np.column_stack([index, positions]))

    @property
    def scored(
        self,
    ) -> tuple[Int[np.ndarray, " row"] | None, Int[np.ndarray, " row"] | None]:
        """Index of every row among the distinct rows of the log likelihood, and its subject.

        The first is None if the log likelihood is row by row, the second if every row is a subject.
        A merged row of several subjects counts as a new subject for each of its rows.
        """
        subjects, indices, of_rows = self.rows.subjects, None, np.arange(self.row_indices.size)
        if self.copies is not None:
            names, indices = self.copies
            at = self.indices_of(names)
            # Rows that were merged into distinct ones are not all kept.
            of_rows = np.where(self.row_indices[at] == names, at, indices)
        if subjects is None:
            return indices, None
        alone = subjects.counts[of_rows] > 1  # equal people, merged into one row
        merged_subjects = subjects.numbers.max() + 1 + np.arange(of_rows.size)
        return indices, np.where(alone, merged_subjects, subjects.numbers[of_rows])

    def __laws__(self) -> Requirements:
        columns, rows = self.columns, self.rows
        yield 0 <= self.seed < 2**31, "a seed"
        yield within(self.row_indices, 0) and rows.n_obs > 0, "positions of its rows"
        yield rows.n_obs == self.row_indices.size, "a position of every row"
        yield self.n_columns > 0 and self.passes >= 0, "columns, and passes over them"
        yield 0 <= self.repeated < max(rows.n_obs, 1) or columns is None, "fewer copies than rows"
        yield within(self.unlabelled_weight, 0), "a weight of rows without a label"
        yield columns is not None or self.template is None, "the columns of its frame"
        yield (columns is None) == (self.whole is not None), "one way to read its rows"
        if columns is not None:
            yield self.n_columns == len(columns.names), "as many columns as it was fitted to"
            texts = self.names is None or all(isinstance(name, str) for name in self.names)
            named = self.names is None or list(self.names) == list(columns.names)
            yield texts and named, "its columns' names"
            frame = getattr(self.template, "columns", columns.names)
            yield len(frame) == len(columns.names), "a frame of its columns"
            dtypes = [getattr(dtype, "kind", "f") for dtype in getattr(self.template, "dtypes", ())]
            of_texts = {n for n, of in zip(columns.names, dtypes, strict=False) if of == "O"}
            numbers = {n for n in columns.number_names if not columns.kind_of[n].of_texts}
            yield of_texts.isdisjoint(numbers), "numbers in its columns of numbers"
        if self.classes is not None:
            n, labels = self.classes.size, self.classes.tolist()
            plain = all(isinstance(label, str | int | float) for label in labels)
            yield plain and self.classes.ndim == 1 and n == len(set(labels)), "classes that differ"
            p = self.prevalence
            yield p is None or (p.size == n and simplex(p)), "prevalences that sum to one"
            yield p is None or bool((p > 0).all()), "positive prevalences"

    def decoded(self, cells: Cells, like: Any) -> Any:
        """Cells as a table of the type of another."""
        return table.decode(*cells, self.read_columns, like)

    def with_template(self, like: Any) -> TrainingTable:
        """The record with an empty table of the user's type."""
        none = self.rows.take(np.arange(0))
        return replace(self, template=self.decoded((none.real, none.codes), like))


# A fit as one frozen record: table, model, trace, draws, and the answers from them.


DIAGNOSED = 200
"""Most training rows whose class probabilities are diagnosed."""


def before_updates(chain: Chain) -> Chain:
    """The chain without updates, for held-out rows of the training population."""
    return replace(chain, use=tuple(stage for stage in chain.use if isinstance(stage, Prevalence)))


@named
@dataclass(frozen=True, eq=False)
class FittedTable[M: FittedModel, D]:
    """A model fitted to a table: everything that an answer about rows or parameters needs."""

    table: TrainingTable
    model: M
    trace: Trace
    converged: bool
    sentence: str
    """Message on the end of the fit."""
    details: D
    """Details of the fit, of the family."""
    calibration: Calibration = NO_CALIBRATION
    """Calibration by held-out rows; the identity for a pool, which is calibrated already."""
    reports_mean: bool = False
    """Whether probabilities are means over draws, where there are draws."""
    draws: Draws | None = None
    """Draws, with the components named as in the fit."""
    raw: Draws | None = None
    """The draws before relabelling of components."""
    model_uncertainty: ModelUncertainty | None = None
    """Stack of the same rows, where intervals include the model uncertainty; else None."""
    updates: tuple[Update, ...] = ()
    """Updates by labelled rows of other populations, in their order."""

    __getstate__ = field_values

    def __laws__(self) -> Requirements:
        training, model, draws = self.table, self.model, self.draws
        rows, columns, density = training.rows, training.columns, self.mixture
        n_codes = model.n_codes(1 if training.classes is None else training.classes.size)
        yield within(rows.labels, -1, n_codes), "codes of its labels"
        if training.copies is not None:
            placed = within(training.copies[0], 0) and within(training.copies[1], 0, model.n_scored)
            yield placed, "places of the copies of rows"
        if columns is not None:
            levels = columns.n_levels
            yield rows.real.shape[1] == len(columns.real_names), "rows of its real columns"
            yield rows.codes.shape[1] == len(levels), "rows of its categorical columns"
            below = rows.codes < np.array([*levels, 1])[: len(levels)]
            yield bool(below.all()), "codes of levels"
        if columns is not None and density is not None:
            structure = density.specification
            yield structure.levels == columns.n_levels, "a model of its levels"
            yield structure.n_features == len(columns.real_names), "a model of its columns"
            if self.model_uncertainty is not None:
                shape = len(columns.real_names), columns.n_levels, self.classes.size
                yield self.model_uncertainty.table_shape == shape, "a pool of its columns"
        sizes = {update.shares.size for update in self.updates}
        offsets = self.calibration.offsets
        sizes |= set() if offsets is None else {offsets.size}
        yield not sizes or sizes == {self.classes.size}, "offsets and updates of its classes"
        yield (draws is None) == (self.raw is None), "the draws as they came"
        if draws is not None and self.raw is not None:
            yield self.raw.theta.shape == draws.theta.shape, "the same draws as they came"

    @property
    def comparable(self) -> bool:
        """Whether ``model_uncertainty="pool"`` can fit other kinds of models to its rows."""
        single = self.table.rows.labels.max() < self.table.class_labels.size
        return bool(self.model.comparable and single and not self.table.read_columns.masked)

    def replaced(self, **changes: Any) -> FittedTable[M, D]:
        """A copy of the fit with other fields.

        The copy shares the prepared log posterior if the model and the training rows are the same
        objects. Otherwise the copy prepares a new one at first use.
        """
        changed: FittedTable[M, D] = replace(self, **changes)
        if changed.model is self.model and changed.table.rows is self.table.rows:
            prepared = self.__dict__.get("log_posterior")
            if prepared is not None:
                changed.__dict__["log_posterior"] = prepared
        return changed

    def at_prevalence(self, prevalence: Float[np.ndarray, " label"] | None) -> FittedTable[M, D]:
        """The fit at other class shares of use; None: those of training or of the last update.

        An update moves with them; without one they are kept beside the class shares of training.
        """
        if not self.updates:
            return self.replaced(table=replace(self.table, prevalence=prevalence))
        *before, last = self.updates
        return self if prevalence is None else self.replaced(updates=(*before, last.at(prevalence)))

    # ---- what was read

    @property
    def rows(self) -> Observations:
        """Training rows, of positive weight, in the user's units."""
        return self.table.rows

    @property
    def columns(self) -> Columns:
        """Columns of the table: names, kinds, levels."""
        return self.table.read_columns

    @property
    def classes(self) -> Shaped[np.ndarray, " label"]:
        """Class labels in the order of their codes."""
        return self.table.class_labels

    @property
    def axes(self) -> Axes:
        """Names of columns, training rows and classes."""
        return Axes(self.table.columns, self.table.row_indices, self.table.classes)

    def __lacks__(self, need: str) -> str:
        """Why the fit lacks what an answer needs; empty where it has it."""
        match need:
            case "rows" if self.table.sampled:
                blocks = f"this fit read them block by block ({self.table.passes} passes)"
                return f"{blocks}; fit a random sample of the rows for it"
            case "draws" | "prior" if self.draws is None:
                return "the model was fitted to a point: call its refine() first"
            case "prior" if self.log_posterior.no_prior:
                return self.log_posterior.no_prior
            case "prior" if self.draws is not None and self.draws.method == "bootstrap":
                return "draws of the bootstrap are none of its posterior: use refine('laplace')"
            case _:
                return ""

    def stored_row(self) -> Any:
        """A training row, as new rows come."""
        first = self.rows.take(np.arange(1))
        if first.whole is not None:
            return first.whole
        return self.table.decoded((first.real, first.codes), self.table.template)

    # ---- posterior

    @cached_property
    def log_posterior(self) -> LogPosterior:
        """The log posterior given the training rows."""
        return self.model.log_posterior(self.rows)

    @property
    def status(self) -> str:
        """Message on the end of the fit, and on the diagnostics of its draws."""
        if self.draws is None:
            return self.sentence
        from bayesrbf.inference.diagnose import in_short

        return f"{self.sentence} {in_short(self.draws)}"

    @property
    def point(self) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of the log posterior."""
        return self.model.point(self.log_posterior)

    def with_draws(self, raw: Draws) -> FittedTable[M, D]:
        """The fit with draws, whose components are relabelled as in the fit.

        Other models beside it were asked for with the draws before.
        """
        from bayesrbf.inference.draws import relabel

        draws = relabel(self.log_posterior, raw, self.point)
        return self.replaced(draws=draws, raw=raw, model_uncertainty=None)

    @cached_property
    def tree(self) -> xr.DataTree:
        """Posterior, log likelihood, training rows and what is drawn for them, as one tree."""
        from bayesrbf.fit.trees import posterior_tree

        return posterior_tree(
            self.model,
            self.log_posterior,
            self.draws,
            self.rows,
            self.axes,
            self.trace,
            self.table.copies,
            self._replicates(),
        )

    def _replicates(self) -> Replicates | None:
        """Labels or responses drawn for the training rows; None for a density."""
        if self.table.classes is not None:
            return drawn_labels(self.chain, self.rows, self.table.seed)
        return self.model.replicates(self.log_posterior, self.rows, self.draws, self.table.seed)

    def findings(self) -> tuple[Finding, ...]:
        """Diagnostics of the fit and its draws, each with a message and a verdict."""
        from bayesrbf.inference.diagnose import judge_columns, judge_copies, judge_map

        return (
            judge_map(self.sentence, self.converged),
            *([judge_columns(self.table.doubts)] if self.table.doubts else []),
            *([judge_copies(self.table.repeated)] if self.table.repeated else []),
            *self._findings_of_draws(),
        )

    def _findings_of_draws(self) -> Iterator[Finding]:
        """Diagnostics of draws and leave-one-out figures; a point has a single finding."""
        from bayesrbf.inference.diagnose import findings, judge_leave_one_out, leave_one_out
        from bayesrbf.inference.draws import point

        draws, log_posterior = self.draws, self.log_posterior
        if draws is None:
            yield from findings(point(log_posterior, self.point))
            return
        probabilities = self._probabilities_of_training()
        yield from findings(draws, raw=self.raw, reports_mean=self.reports_mean, **probabilities)
        # Without a coordinate every draw is the same, rows left out or not. A draw of the
        # bootstrap is none of the posterior, from which weights could take out a row.
        if log_posterior.dimension and draws.method != "bootstrap":
            scored = self.model.description(self.rows, self.axes).scored
            loo = leave_one_out(log_posterior, draws, *self.table.scored)
            yield from judge_leave_one_out(loo, scored)

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of some training rows, under the draws and at the fit, as arguments.

        Empty without classes, and for a stack, whose probabilities move with draws of its error,
        and not of its posterior.
        """
        if self.table.classes is None or self.model.pools:
            return {}
        chain = before_updates(self.chain)
        sample = self.rows.take(evenly(self.rows.n_obs, DIAGNOSED))
        at_point = np.exp(chain.point(sample))
        return {"probabilities": chain.draws(sample)[0], "map_probabilities": at_point}

    # ---- class probabilities

    @property
    def class_shares(self) -> Float[np.ndarray, " label"]:
        """Shares of the classes in training, which the model stands for."""
        return self.model.class_shares(self.rows, self.classes.size)

    @property
    def shares_of_use(self) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for."""
        if self.updates:
            return self.updates[-1].shares
        of_use = self.table.prevalence
        return self.class_shares if of_use is None else of_use

    @property
    def log_ratio(self) -> Float[np.ndarray, " label"]:
        """Log ratio of the prevalences of use, before any update, to those of training."""
        if self.table.prevalence is None:
            return np.zeros(self.classes.size)
        return np.log(self.table.prevalence) - np.log(self.class_shares)

    @property
    def evident_columns(self) -> tuple[int, ...]:
        """Columns whose missing indicators of new rows are evidence about the classes."""
        if self.table.columns is None or self.table.missingness == "ignorable":
            return ()
        return self.columns.masked or self.model.evident_columns

    @property
    def uses_indicators(self) -> bool:
        """Whether missing indicators of new rows are evidence about the classes."""
        return bool(self.evident_columns)

    def familiarity(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Probability that cells are missing as in training; NaN without missing indicators."""
        if self.table.missingness == "ignorable":
            return np.full(rows.n_obs, np.nan)
        return self.model.familiarity(rows)

    def missing_fraction(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Share of the cells of every row that are missing; 0 where rows are compared whole."""
        if rows.whole is not None:
            return np.zeros(rows.n_obs)
        return missing_fraction_of(rows, self.columns.column_of)

    def class_log_probabilities(
        self, rows: Observations, draws: int | None = None
    ) -> Float[np.ndarray, "obs label"]:
        """Reported class log probabilities; a mean over draws may be over ``draws`` of them."""
        return self.chain.thinned(draws).reported(rows)

    @cached_property
    def chain(self) -> Chain:
        """Chain of a class probability: the model, then the stages in their order."""
        return self._chain(None)

    @cached_property
    def interval_chain(self) -> Chain:
        """Chain of an interval: with the uncertainty about the model, where it was asked for."""
        without = self.model_uncertainty is None or self.draws is None
        return self.chain if without else self._chain(self.model_uncertainty)

    def _chain(self, model_uncertainty: ModelUncertainty | None) -> Chain:
        """Chain of a class probability: the fitted model as source, then its stages in order.

        The stages are the calibration (not of a stack), the error of the model, the class shares,
        the extrapolation, the prevalence and the updates; stages that do not apply are left out.
        ``model_uncertainty`` gives the error of other models. With None only a stack has an error
        stage, that of its pool. An error stage needs draws.
        """
        model, seed, prevalence = self.model, self.table.seed, self.table.prevalence
        source = model.chain_source(
            lambda: self.log_posterior,
            self.rows,
            self.draws,
            self.calibration.temperature,
            self.missing_fraction,
        )
        numbers = np.arange(np.prod(source.shape)).reshape(source.shape)
        drawn = self.draws is not None
        stages = list[Stage]()
        if not model.pools:
            stages.append(self.calibration)
        pool = model if model_uncertainty is None else model_uncertainty
        if drawn and (error := pool.error(numbers.size, seed, self.rows)) is not None:
            stages.append(error)
        log_shares = self.calibration.log_shares
        if log_shares is not None and numbers.size > 1:
            counts = self.rows.n_labelled * np.exp(log_shares)
            stages.append(ClassShares(self.calibration, counts, numbers.size, seed))
        updates = [
            update.stage(numbers.size, seed) for update in self.updates if not update.is_identity
        ]
        return Chain(
            source,
            (*stages, self.extrapolation),
            (*([] if prevalence is None else [Prevalence(self.log_ratio)]), *updates),
            numbers,
            self.classes.size,
            is_mean=self.reports_mean and drawn,
            is_centred=not self.reports_mean or model_uncertainty is not None or bool(updates),
            label_noise=cache(pool.label_noise)
            if drawn and (model_uncertainty or model.pools)
            else None,
        )

    @property
    def assumes_model(self) -> bool:
        """Whether intervals leave out the model uncertainty."""
        return self.model_uncertainty is None and not self.model.pools

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """The stage of out-of-distribution rows."""
        shares = np.ones(1) if self.table.classes is None else self.class_shares
        return fit_extrapolation(self.table.rows, np.log(shares))

    def held_out_summary(
        self, p: Float[np.ndarray, "obs label"], prob: float = 0.9
    ) -> tuple[Int[np.ndarray, " row"], PredictiveSummary] | None:
        """Positions of held-out training rows, and the summary of their class probabilities.

        ``p`` are the probabilities that a fit without them gave them, NaN of a row without any.
        None where no pool has held the rows out, or the fit is a point.
        """
        copies = self.table.copies if self.model.pools else None
        copies = copies if self.model_uncertainty is None else self.model_uncertainty.copies
        if self.draws is None or copies is None:
            return None
        positions, index = copies[:, np.isfinite(p[copies[0]]).all(axis=1)]
        rows = self.table.held_rows(positions, index)
        chain = before_updates(self.interval_chain)
        if self.model_uncertainty is not None:
            # Held-out probabilities may be 0.
            with np.errstate(divide="ignore"):
                source = self.model_uncertainty.held_out(np.log(p), chain.n_draws)
            stages = tuple(stage for stage in chain.stages if not isinstance(stage, Calibration))
            chain = replace(chain, source=source, stages=stages, use=())
        return positions, chain.summary(rows, prob, p[positions])

    # ---- what the density says

    def in_use(self, parameters: MixtureParameters) -> MixtureParameters:
        """A density at the prevalences of use."""
        if self.table.prevalence is None:
            return parameters
        return self.model.at_prevalence(parameters, self.log_ratio)

    @property
    def mixture(self) -> FittedMixture | None:
        """Density of the rows, at the prevalences of training; None without one."""
        return cast(FittedMixture | None, self.model.density)

    @property
    def density(self) -> FittedMixture:
        """Density of the rows, at the prevalences of use."""
        mixture = self.mixture
        assert mixture is not None  # what asks for a density is not there without one
        parameters = self.in_use(mixture.parameters)
        return mixture if self.table.prevalence is None else replace(mixture, parameters=parameters)

    def drawn_densities(self, number: int, rng: np.random.Generator) -> list[MixtureParameters]:
        """The density in standard units, at the prevalences of use, under some posterior draws."""
        assert self.draws is not None  # what asks for draws asks first whether there are any
        thetas = self.draws.theta.reshape(-1, self.draws.theta.shape[-1])
        chosen = rng.choice(len(thetas), size=number, replace=number > len(thetas))
        return [self.in_use(self.model.mixture_at(self.log_posterior, thetas[i])) for i in chosen]

    def novelty(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Novelty of rows compared with the training table, 0 to 1; NaN without a density."""
        if self.model.density is None:
            return np.full(rows.n_obs, np.nan)
        law = cell_law(self.density, self.columns)
        rng = np.random.default_rng(self.table.seed)
        return novelty(self.density.standardise(rows), law, rng)
