"""What every estimator with a posterior shares: making one, showing it, judging it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.stored import StoredEstimator
from bayesrbf.estimators.warning import warn
from bayesrbf.inference.draws import Draws, point
from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.on_a_copy import works_on
from bayesrbf.results import Status, Trace

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.findings_table import FindingsTable
    from bayesrbf.inference.judgements import Finding

METHODS: Final = {
    "laplace": "bayesrbf.inference.laplace",
    "advi": "bayesrbf.inference.variational",
    "gibbs": "bayesrbf.inference.gibbs",
    "nuts": "bayesrbf.inference.nuts",
}
"""Where the function lives that draws by each method, under the method's name."""


@dataclass(frozen=True)
class Description:
    """What a posterior's DataTree says beside the draws.

    Attributes
    ----------
    coords : mapping of str to sequence
        Names along the dims.
    observed : mapping of str to (dims, values)
        Group ``observed_data``.
    constant : mapping of str to (dims, values)
        Group ``constant_data``.
    """

    coords: Mapping[str, Any]
    observed: Mapping[str, tuple[tuple[str, ...], Any]]
    constant: Mapping[str, tuple[tuple[str, ...], Any]]


class PosteriorEstimator(StoredEstimator):
    """Base of what has a log posterior; a family writes the three hooks below and no more."""

    posterior_: xr.DataTree
    _draws: Draws | None
    _raw: Draws | None
    _seed: int
    _trace: Trace

    _STATE: ClassVar[dict[str, type | UnionType]] = {
        "_draws": Draws | NoneType,
        "_raw": Draws | NoneType,
        "_trace": Trace,
        "converged_": bool,
        "lower_bound_": float,
        "n_iter_": int,
        "status_": str,
    }

    # ---- what a family writes

    def _log_posterior(self) -> LogPosterior:
        """The log posterior given the training rows, in the graph's coordinates."""
        raise AttributeError(f"{type(self).__name__} declares no posterior.")

    def _map(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior."""
        raise AttributeError(f"{type(self).__name__} declares no posterior.")

    def _description(self) -> Description:
        """Names and training rows, for the DataTree."""
        raise AttributeError(f"{type(self).__name__} declares no posterior.")

    # ---- making it

    def _report(self, status: Status, trace: Trace) -> None:
        """Fitted attributes about the way of the fit, and a warning if it did not end well."""
        self._trace = trace
        self.n_iter_ = trace.n_iter
        self.converged_ = status is Status.CONVERGED
        self.lower_bound_ = float(trace.log_posterior[-1])
        self.status_ = status.sentence
        if status not in (Status.CONVERGED, Status.STOPPED):
            warn(f"{type(self).__name__}: {self.status_}", ConvergenceWarning)

    def _infer(self) -> Self:
        """Draw what ``inference`` asks for; nothing for a point estimate."""
        self._draws = self._raw = None
        self.__dict__.pop("posterior_", None)
        return self if self.inference == "map" else self.refine(self.inference)

    @works_on(copy)
    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw from the posterior, starting at the fitted point.

        Parameters
        ----------
        method : {"laplace", "advi", "gibbs", "nuts"}
            Gaussian approximation at the mode; Gaussian approximation of least
            divergence; data augmentation, for mixtures; the No-U-Turn sampler.
        **options : object
            Passed on: ``draws``, ``chains``, ``random_state``, ``progress_bar``;
            ``resample`` for the approximations, ``tune`` for the samplers, and
            more; see :func:`bayesrbf.inference.laplace.laplace`,
            :func:`bayesrbf.inference.variational.advi`,
            :func:`bayesrbf.inference.gibbs.gibbs` and
            :func:`bayesrbf.inference.nuts.nuts`. Ctrl-C keeps what was drawn.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the method is unknown, or none for this model.
        """
        check_is_fitted(self)
        log_posterior = self._log_posterior()
        options = {"random_state": self._seed, **options}
        raw = _sampler(method)(log_posterior, self._map(log_posterior), **options)
        return self._keep(log_posterior, raw)

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
        log_posterior = self._log_posterior()
        draws = from_datatree(tree, log_posterior, self._description().coords)
        return self._keep(log_posterior, draws)

    def _keep(self, log_posterior: LogPosterior, raw: Draws) -> Self:
        """Hold draws, as they came and with the components named as in the fit."""
        from bayesrbf.inference.relabel import relabel

        self._raw = raw
        self._draws = relabel(log_posterior, raw, self._map(log_posterior))
        self.__dict__.pop("posterior_", None)
        return self

    # ---- showing and judging it

    def __getattr__(self, name: str) -> Any:
        # The tree is made when it is first asked for and is then an attribute like any other:
        # a fit costs milliseconds, the tree as many again and an import. A property would be
        # evaluated whenever the estimator is displayed.
        if name == "posterior_" and "_trace" in self.__dict__:
            self.posterior_ = self._datatree()
            return self.posterior_
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _datatree(self) -> xr.DataTree:
        """Posterior, log likelihood and training rows; a point is one draw of one chain."""
        from bayesrbf.conversion import to_datatree

        log_posterior, description = self._log_posterior(), self._description()
        return to_datatree(
            log_posterior,
            self._draws or point(log_posterior, self._map(log_posterior)),
            coords=description.coords,
            observed=description.observed,
            constant=description.constant,
            trace=self._trace,
        )

    def diagnose(self) -> FindingsTable:
        """Figures about fit and draws, each with its sentence; a warning lists the bad ones.

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

        check_is_fitted(self)
        found = self._findings()
        warn(found, stacklevel=3)
        return table(found)

    def _findings(self) -> tuple[Finding, ...]:
        """What :meth:`diagnose` shows, with its judgement of every figure."""
        from bayesrbf.inference.diagnose import findings
        from bayesrbf.inference.judgements import judge_leave_one_out, judge_map
        from bayesrbf.inference.leave_one_out import leave_one_out

        log_posterior = self._log_posterior()
        found = [judge_map(self.status_, self.converged_)]
        if self._draws is None:
            found.extend(findings(point(log_posterior, self._map(log_posterior))))
        else:
            found.extend(findings(self._draws, raw=self._raw, **self._probabilities_of_training()))
            if log_posterior.dimension:  # else every draw is the same, rows left out or not
                found.extend(judge_leave_one_out(leave_one_out(log_posterior, self._draws)))
        return tuple(found)

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of the training rows, for diagnosis; a density has none."""
        return {}


def _sampler(method: str) -> Callable[..., Draws]:
    """The function that draws by a method; imported here so that a MAP fit never does."""
    if method not in METHODS:
        allowed = " or ".join(repr(name) for name in METHODS)
        raise ValueError(f"refine(method) must be {allowed}; received {method!r}.")
    drawn_by: Callable[..., Draws] = getattr(import_module(METHODS[method]), method)
    return drawn_by
