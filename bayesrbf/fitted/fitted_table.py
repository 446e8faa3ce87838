"""A fit as one frozen record: table, model, trace, draws, and the answers from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf.fitted.completed_rows import cell_law
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Delivery, Doubt, FittedModel
from bayesrbf.fitted.posterior_tree import posterior_tree
from bayesrbf.fitted.training_table import TrainingTable
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.log_sums import at_prevalence
from bayesrbf.posterior.far_rows import FarRows, far_rows
from bayesrbf.posterior.novelty import novelty
from bayesrbf.posterior.predictive import ClassPosterior
from bayesrbf.posterior.replicates import Replicates, drawn_labels, evenly
from bayesrbf.records.masked_rows import Recalibration
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.results import Trace
from bayesrbf.records.stored import (
    MOST_LOG,
    Requirements,
    field_values,
    named,
    scales,
    within,
)
from bayesrbf.table import Columns

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.judgements import Finding

DIAGNOSED = 200
"""Most training rows whose class probabilities are diagnosed."""


@named
@dataclass(frozen=True, eq=False)
class FittedTable[M: FittedModel, D]:
    """A model fitted to a table: everything that an answer about rows or parameters needs."""

    table: TrainingTable
    model: M
    trace: Trace
    converged: bool
    sentence: str
    """How the fit ended."""
    details: D
    """What else a family tells of its fit."""
    temperature: float = 1.0
    """Factor of the class log probabilities."""
    calibration: Recalibration | None = None
    """What calibrates tempered probabilities where cells are hidden."""
    uncalibrated: Float[np.ndarray, " label"] | None = None
    """What is added to the log joints of classes that no row held out has; NaN for the others."""
    averages: bool = False
    """Whether probabilities are means over draws, where there are draws."""
    draws: Draws | None = None
    """With the components named as in the fit."""
    raw: Draws | None = None
    """The draws as they came."""
    doubt: Doubt | None = None
    """Other kinds of models, where intervals count that this one may be wrong."""

    __getstate__ = field_values

    def __laws__(self) -> Requirements:
        training, model, draws = self.table, self.model, self.draws
        rows, columns, density = training.rows, training.columns, self.mixture
        n_codes = model.n_codes(1 if training.classes is None else training.classes.size)
        yield within(rows.labels, -1, n_codes), "codes of its labels"
        if training.copies is not None:
            placed = within(training.copies[0], 0) and within(training.copies[1], 0, model.n_scored)
            yield placed, "places of the copies of rows"
        if columns is not None and density is not None:
            levels = columns.n_levels
            yield rows.real.shape[1] == len(columns.real_names), "rows of its real columns"
            yield rows.codes.shape[1] == len(levels), "rows of its categorical columns"
            below = rows.codes < np.array([*levels, 1])[: len(levels)]
            yield bool(below.all()), "codes of levels"
            structure = density.specification
            yield structure.levels == levels, "a model of its levels"
            yield structure.n_features == len(columns.real_names), "a model of its columns"
            if self.doubt is not None:
                shape = len(columns.real_names), levels, self.classes.size
                yield self.doubt.table_shape == shape, "a pool of its columns"
        yield scales(self.temperature) and self.temperature < MOST_LOG, "a temperature"
        if (moves := self.uncalibrated) is not None:
            judged = np.isnan(moves)
            yield moves.shape == self.classes.shape and bool(judged.any()), "classes held out"
            yield within(moves[~judged], -MOST_LOG, 1e-9), "moves of classes"
        yield (draws is None) == (self.raw is None), "the draws as they came"
        if draws is not None and self.raw is not None:
            yield self.raw.theta.shape == draws.theta.shape, "the same draws as they came"

    def replaced(self, **changes: Any) -> FittedTable[M, D]:
        """The fit with other fields; the log posterior is prepared again for another model only."""
        changed: FittedTable[M, D] = replace(self, **changes)
        if changed.model is self.model and changed.table.rows is self.table.rows:
            prepared = self.__dict__.get("log_posterior")
            if prepared is not None:
                changed.__dict__["log_posterior"] = prepared
        return changed

    def at_prevalence(self, prevalence: Float[np.ndarray, " label"] | None) -> FittedTable[M, D]:
        """The fit at other class probabilities of use; None: at those of training."""
        return self.replaced(table=replace(self.table, prevalence=prevalence))

    # ---- what was read

    @property
    def rows(self) -> Observations:
        """Training rows as the model takes them."""
        return self.model.training_rows(self.table.rows)

    @property
    def columns(self) -> Columns:
        """Columns of the table: names, kinds, levels."""
        return self.table.read_columns

    @property
    def classes(self) -> Shaped[np.ndarray, " label"]:
        """Class labels."""
        return self.table.class_labels

    @property
    def axes(self) -> Axes:
        """Names of columns, training rows and classes."""
        return Axes(self.table.columns, self.table.kept, self.table.classes)

    def require_all_rows(self, what: str) -> None:
        """ValueError where the training rows are out of memory, which a posterior is asked of."""
        if self.table.sampled:
            raise ValueError(
                f"{self.table.owner}.{what} needs the training rows in memory, and this fit read "
                f"them block by block ({self.table.passes} passes); fit a random sample of the "
                "rows for it."
            )

    def stored_row(self) -> Any:
        """A training row, as new rows come."""
        stored = self.model.stored_row(self.table.n_columns)
        if stored is not None:
            return stored
        first = self.rows.take(np.arange(1))
        return self.table.decoded((first.real, first.codes), self.table.template)

    # ---- posterior

    @cached_property
    def log_posterior(self) -> LogPosterior:
        """The log posterior given the training rows."""
        return self.model.log_posterior(self.rows)

    @property
    def point(self) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of the log posterior."""
        return self.model.point(self.log_posterior)

    def with_draws(self, raw: Draws) -> FittedTable[M, D]:
        """The fit with draws, as they came and with the components named as in the fit.

        Other models beside it were asked for with the draws before.
        """
        from bayesrbf.inference.draws import relabel

        draws = relabel(self.log_posterior, raw, self.point)
        model = self.model.with_draws(draws)
        return self.replaced(draws=draws, raw=raw, model=model, doubt=None)

    @cached_property
    def tree(self) -> xr.DataTree:
        """Posterior, log likelihood, training rows and what is drawn for them, as one tree."""
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
            return drawn_labels(self.class_posterior, self.rows, self.table.seed)
        return self.model.replicates(self.log_posterior, self.rows, self.draws, self.table.seed)

    def findings(self) -> tuple[Finding, ...]:
        """Every figure about the fit and its draws, each with a sentence and a judgement."""
        from bayesrbf.inference.judgements import judge_columns, judge_copies, judge_map

        return (
            judge_map(self.sentence, self.converged),
            *([judge_columns(self.table.doubts)] if self.table.doubts else []),
            *([judge_copies(self.table.repeated)] if self.table.repeated else []),
            *self._findings_of_draws(),
        )

    def _findings_of_draws(self) -> Iterator[Finding]:
        """Findings about draws and their leave-one-out figures; of a point, that it is one."""
        from bayesrbf.inference.diagnose import findings
        from bayesrbf.inference.draws import point
        from bayesrbf.inference.judgements import judge_leave_one_out
        from bayesrbf.inference.leave_one_out import leave_one_out

        draws, log_posterior = self.draws, self.log_posterior
        if draws is None:
            yield from findings(point(log_posterior, self.point))
            return
        yield from findings(draws, raw=self.raw, **self._probabilities_of_training())
        # Without a coordinate every draw is the same, rows left out or not. A draw of the
        # bootstrap is none of the posterior, from which weights could take out a row.
        if log_posterior.dimension and draws.method != "bootstrap":
            yield from judge_leave_one_out(leave_one_out(log_posterior, draws, *self.table.scored))

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of some training rows, under the draws and at the fit."""
        if self.table.classes is None:
            return {}
        posterior = self.class_posterior
        some = self.rows.take(evenly(self.rows.n_obs, DIAGNOSED))
        if self.model.predictors_deliver:  # what they would prepare for draws serves no point
            at_point = np.exp(self.class_log_probabilities(some))
        else:
            at_point = posterior.at_point(some, self.point)
        return {"probabilities": posterior.draws(some)[0], "map_probabilities": at_point}

    # ---- class probabilities

    @property
    def class_shares(self) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for."""
        return self.model.class_shares(self.rows, self.classes.size)

    @property
    def log_ratio(self) -> Float[np.ndarray, " label"]:
        """Log ratio of the prevalences of use to those of training."""
        if self.table.prevalence is None:
            return np.zeros(self.classes.size)
        return np.log(self.table.prevalence) - np.log(self.class_shares)

    def hidden_share(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Share of the cells of every row that are missing."""
        return self.model.hidden_share(rows, self.table.columns)

    def class_log_probabilities(
        self, rows: Observations, draws: int | None = None
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities as they are given out; a mean over draws may be over fewer."""
        if self.averages and self.draws is not None:
            mean = self.class_posterior.thinned(draws).mean(rows)
            with np.errstate(divide="ignore"):
                return np.log(mean)
        log_p = self._calibrated(rows)
        if self.table.prevalence is None:
            return log_p
        return at_prevalence(log_p, self.log_ratio)

    @cached_property
    def doubted_posterior(self) -> ClassPosterior:
        """The posterior of class probabilities that intervals are of."""
        if self.doubt is None or self.draws is None:
            return self.class_posterior
        return self.doubt.around(self.class_posterior, self._calibrated, self.table.seed)

    @property
    def assumes_model(self) -> bool:
        """Whether intervals know of no other kind of model."""
        pools = self.model.predictors_deliver  # a stack, whose refits tell how its kinds differ
        refitted = self.draws is not None and self.draws.method == "bootstrap"
        return self.doubt is None and not (pools and refitted)

    @property
    def centred(self) -> bool:
        """Whether the draws of that posterior are moved to what is given out."""
        return not self.averages or self.doubt is not None

    def _calibrated(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point and the shares of training."""
        log_p = self.model.calibrated_log_probabilities(rows, self._delivery)
        return self._far.mixed(log_p, rows)

    @cached_property
    def _far(self) -> FarRows:
        """What is given out at rows far outside of the training table."""
        return far_rows(self.table.rows, np.log(self.class_shares))

    @cached_property
    def class_posterior(self) -> ClassPosterior:
        """The posterior of class probabilities if the model is right; one draw for a point."""
        rows, draws = self.rows, self.draws
        posterior = self.model.class_posterior(self.log_posterior, rows, draws, self._delivery)
        return self._far.around(posterior)

    @property
    def _delivery(self) -> Delivery:
        """How class probabilities are given out."""
        how = self.temperature, self.log_ratio, self.calibration, self.uncalibrated
        return Delivery(*how, self.hidden_share, self.table.seed, self.details)

    # ---- what the density says

    def in_use(self, parameters: MixtureParameters) -> MixtureParameters:
        """A density at the prevalences of use."""
        if self.table.prevalence is None:
            return parameters
        return self.model.at_prevalence(parameters, self.log_ratio)

    @property
    def mixture(self) -> FittedMixture | None:
        """The mixture that says what rows look like, at the prevalences of training."""
        return cast(FittedMixture | None, self.model.density)

    @property
    def density(self) -> FittedMixture:
        """The mixture that says what rows look like, at the prevalences of use."""
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
        """How unlike the training table rows are, from 0 to 1; NaN without a density."""
        if self.model.density is None:
            return np.full(rows.n_obs, np.nan)
        law = cell_law(self.density, self.columns)
        rng = np.random.default_rng(self.table.seed)
        return novelty(self.density.standardise(rows), law, rng)
