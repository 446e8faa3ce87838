"""The interface of a fitted model of any family, and labels drawn for its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, cast, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesrbf.base import names
from bayesrbf.base.arrays import class_shares, draw_categories
from bayesrbf.base.log_posterior import LogPosterior, Predictor
from bayesrbf.base.priors import PowerTransforms
from bayesrbf.base.rows import MixtureParameters, Observations
from bayesrbf.fit.chain import AnySource, Chain, Source, Stage
from bayesrbf.fit.label_noise import LabelNoise
from bayesrbf.inference.draws import Draws
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    import pymc as pm


# Labels and responses drawn for training rows, beside their own: for predictive checks.


REPLICATES: Final = 1000
"""Labels drawn per row of a point estimate."""
MAX_DRAWN: Final = 2**21
"""Numbers behind the labels drawn for training rows: 16 MiB."""
MIN_TABLES: Final = 50
"""Tables of drawn labels; ArviZ lays as many over the real one."""


@dataclass(frozen=True)
class Replicates:
    """Labels or responses drawn for training rows, with the observed ones."""

    rows: Int[np.ndarray, " row"]  # Places among the training rows.
    drawn: Shaped[np.ndarray, "chain draw row"]
    truth: Shaped[np.ndarray, " row"]
    every: int = 1  # One draw of the posterior in so many has drawn.


def evenly(n: int, most: int) -> Int[np.ndarray, " place"]:
    """At most ``most`` of the first n integers, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def drawn_labels(chain: Chain, rows: Observations, seed: int) -> Replicates:
    """Labels drawn for labelled training rows, at the class shares of training.

    Of large tables some rows and every k-th draw are taken, so that there are at most
    ``MAX_DRAWN`` probabilities.
    """
    labelled = np.flatnonzero(rows.labels >= 0)
    tables = REPLICATES if chain.n_draws == 1 else MIN_TABLES
    most = max(1, MAX_DRAWN // (tables * chain.n_classes))
    row_indices = labelled[evenly(labelled.size, most)]
    sizes = chain.n_draws * row_indices.size * chain.n_classes
    every = min(chain.numbers.shape[1], -(-sizes // MAX_DRAWN))
    thinned = replace(chain, numbers=chain.numbers[:, ::every], use=())
    drawn = draw_labels(thinned.draws(rows.take(row_indices))[0], seed)
    return Replicates(row_indices, drawn, rows.labels[row_indices], every)


def draw_labels(
    probabilities: Float[np.ndarray, "chain draw obs label"], seed: int
) -> Int[np.ndarray, "chain drawn obs"]:
    """A label for every row and draw; several labels for every row of a point estimate."""
    if probabilities.shape[0] * probabilities.shape[1] == 1:
        probabilities = np.repeat(probabilities, REPLICATES, axis=1)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    labels = draw_categories(rows, np.random.default_rng(seed))
    return labels.reshape(probabilities.shape[:-1])


# The interface of a fitted model of any family.


Named = dict[str, tuple[tuple[str, ...], np.ndarray]]
"""Arrays of a group of the DataTree, each with its dims."""


@dataclass(frozen=True)
class Axes:
    """Names along the dims of a fitted table: its columns, its rows and its classes."""

    columns: Columns | None
    obs: Shaped[np.ndarray, " obs"]
    classes: Shaped[np.ndarray, " label"] | None

    @property
    def of_graph(self) -> dict[str, Any]:
        """Keyword arguments with these names for the declaration of a graph of rows."""
        assert self.columns is not None  # rows that are only compared have no such graph
        named = {
            "feature_names": self.columns.real_names,
            "categorical_names": self.columns.categorical_names,
            "level_names": tuple(code.levels for code in self.columns.codes),
            "obs_names": self.obs.tolist(),
        }
        return named if self.classes is None else named | {"class_names": self.classes.tolist()}


@dataclass(frozen=True)
class Description:
    """Coordinates and two groups of data for the DataTree, beside the draws."""

    coords: Mapping[str, Any] = field(default_factory=dict)
    observed: Named = field(default_factory=dict)
    constant: Named = field(default_factory=dict)
    scored: str = names.OBSERVED
    """Subject of the log likelihood of the posterior itself. Two models can be compared by it if
    it is the same; beside it the tree has ``y`` where a label adds log p(y | x)."""


@runtime_checkable
class ModelUncertainty(Protocol):
    """Uncertainty about the model of a classifier, by other models of the same rows."""

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the table."""

    @property
    def copies(self) -> Int[np.ndarray, "2 given"] | None:
        """Names of the labelled rows, and the index of each among the rows held out."""

    def label_noise(self) -> LabelNoise | None:
        """Label noise by the rows held out."""

    def error(self, n_draws: int, seed: int, rows: Observations) -> Stage:
        """The stage that shifts the log odds of each draw by a draw of the model's error."""

    def held_out(self, log_p: Float[np.ndarray, "obs label"], n_draws: int) -> AnySource:
        """A source of rows held out, which were given ``log_p``."""


class FittedModel(ABC):
    """A fitted model: what predicting, drawing and declaring need, and nothing else.

    Rows are in the user's units everywhere. A classifier, a companion that fills cells and a hidden
    layer are all of this kind.
    """

    pools: ClassVar[bool] = False
    """Whether the model is a pool, which has temperatures and an error."""
    comparable: ClassVar[bool] = False
    """Whether a stack of the same rows can be compared with it, for ``model_uncertainty``."""
    transforms: PowerTransforms | None = None
    """Transforms in front of the real columns, of a model that has them."""

    @property
    @abstractmethod
    def density(self) -> FittedModel | None:
        """The fitted density of rows, where the model has one."""

    @abstractmethod
    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log joint or log probabilities at the fitted point, up to a constant a row.

        The temperature matters where a mean over completions is taken of tempered
        probabilities: there, the result is what tempering would turn into that mean.
        """

    @abstractmethod
    def log_posterior(self, rows: Observations) -> LogPosterior:
        """The log posterior given training rows, in the coordinates of the graph.

        A model that is a point estimate only says so in a ValueError.
        """

    @abstractmethod
    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior."""

    @abstractmethod
    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates: classes and density apart."""

    def mixture_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The density under a posterior draw, in standard units; most families hold it fixed."""
        assert self.density is not None  # what asks for a density requires one
        parameters: MixtureParameters = cast(Any, self.density).parameters
        return parameters

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for: those of the labelled rows."""
        return class_shares(rows.labels, rows.weights, n_classes)

    def label_noise(self) -> LabelNoise | None:
        """Label noise by rows held out, of a pool."""
        return None

    def at_prior_power(self, power: float) -> FittedModel:
        """The pool, fitted again with its prior raised to a power; other models unchanged."""
        return self

    def at_scale(self, scale: float, rows: Observations) -> FittedModel:
        """The model, fitted again with a multiple of the scale that draws hold fixed, if any."""
        return self

    def error(self, n_draws: int, seed: int, rows: Observations) -> Stage | None:
        """Stage that shifts draws by the error of a pool; ``rows`` are the training rows."""
        return None

    def chain_source(
        self,
        log_posterior: Callable[[], Any],
        rows: Observations,
        draws: Draws | None,
        temperature: float,
        missing_fraction: Callable[[Observations], np.ndarray],
    ) -> AnySource:
        """Source of the chain of a class probability: the draws, else the point as one draw."""

        def theta() -> np.ndarray:
            return self.point(log_posterior())[None, None] if draws is None else draws.theta

        return Source(
            (1, 1) if draws is None else draws.theta.shape[:2],
            theta,
            lambda new: self.predictor(log_posterior(), new, temperature),
            lambda new: self.class_log_joint(new, temperature),
            missing_fraction,
        )

    def replicates(
        self, log_posterior: Any, rows: Observations, draws: Draws | None, seed: int
    ) -> Replicates | None:
        """Responses drawn for training rows, of a model of numbers."""
        return None

    @property
    def evident_columns(self) -> tuple[int, ...]:
        """Columns whose missing indicators are evidence, where they are no codes of the rows."""
        return ()

    def familiarity(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Probability that cells are missing as in training; NaN without missing indicators."""
        return np.full(rows.n_obs, np.nan)

    def at_prevalence(
        self, parameters: MixtureParameters, log_ratio: Float[np.ndarray, " label"]
    ) -> MixtureParameters:
        """A density at other class shares; a density without classes has none."""
        return parameters

    @property
    def n_scored(self) -> int:
        """Number of labelled rows that the model itself keeps: held out, or distinct."""
        return 0

    def labelled(self, rows: Observations) -> Bool[np.ndarray, " scored"]:
        """Whether a row of the log posterior has a label or a response."""
        return rows.labels >= 0

    def n_codes(self, n_classes: int) -> int:
        """Number of codes that labels of rows may have, in most families one a class."""
        return n_classes

    # ---- graph and tree

    @abstractmethod
    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The PyMC graph on training rows; a family may take more options."""

    @abstractmethod
    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names and training rows, for the DataTree."""


def observed_rows(rows: Observations) -> Named:
    """Observed node of the graph: label, reals and codes of the rows (obs, column), NaN if hidden.

    Empty for rows that are compared whole.
    """
    if rows.whole is not None:
        return {}
    codes = np.column_stack([rows.labels, rows.codes]).astype(float)
    codes[codes < 0] = np.nan
    cells = np.column_stack([codes[:, :1], rows.real, codes[:, 1:]])
    return {names.OBSERVED: ((names.OBS, names.COLUMN), cells)}


def row_weights(rows: Observations) -> Named:
    """Weights of the rows, as constant data of the graph."""
    return {"row_weight": ((names.OBS,), rows.weights)}
