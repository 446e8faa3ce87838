"""What both mixture estimators share, second half: the posterior, and cells it fills in."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.estimators.completing import drawn, hide_masked, most_likely
from bayesrbf.estimators.describing import constant_data, coordinates, draws_of, observed_data
from bayesrbf.estimators.table_estimator import LARGEST_SEED, TableEstimator
from bayesrbf.inference.draws import Draws, point
from bayesrbf.numerics.log_posterior import MixtureLogPosterior
from bayesrbf.numerics.sampling import sample
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class MixtureEstimator(TableEstimator):
    """Base of the estimators whose density is a mixture; see the subclasses."""

    posterior_: xr.DataTree

    # ---- posterior

    def _infer(self) -> Self:
        """Draw what ``inference`` asks for; nothing for a point estimate."""
        self._draws = self._raw = None
        self.__dict__.pop("posterior_", None)
        return self if self.inference == "map" else self.refine(self.inference)

    def __getattr__(self, name: str) -> Any:
        # The tree is made when it is first asked for and is then an attribute like any other:
        # a fit costs milliseconds, the tree as many again and an import. A property would be
        # evaluated whenever the estimator is displayed.
        if name == "posterior_" and "_mixture" in self.__dict__:
            self.posterior_ = self._datatree()
            return self.posterior_
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw from the posterior, starting at the fitted point.

        Parameters
        ----------
        method : {"laplace", "nuts"}
            Gaussian approximation at the mode, or the No-U-Turn sampler.
        **options : object
            Passed on: ``draws``, ``chains``, and for NUTS ``tune`` and more; see
            :func:`bayesrbf.inference.laplace.laplace` and
            :func:`bayesrbf.inference.nuts.nuts`.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the method is unknown.
        """
        check_is_fitted(self)
        log_posterior = self._log_posterior()
        options = {"random_state": self._seed, **options}
        raw = _sampler(method)(log_posterior, self._map(log_posterior), **options)
        return self._keep(log_posterior, raw)

    def use_posterior(self, tree: xr.DataTree) -> Self:
        """Take draws of the declared graph from any sampler.

        Parameters
        ----------
        tree : xarray.DataTree
            What ``pm.sample()`` gives inside ``declare()``.

        Returns
        -------
        self
            With the draws, components named as in the fit, in ``posterior_``.

        Raises
        ------
        ValueError
            If a free variable of the graph is missing or has another shape.
        """
        check_is_fitted(self)
        log_posterior = self._log_posterior()
        return self._keep(log_posterior, draws_of(tree, log_posterior))

    def _keep(self, log_posterior: MixtureLogPosterior, raw: Draws) -> Self:
        """Hold draws, as they came and with the components named as in the fit."""
        from bayesrbf.inference.relabel import relabel

        self._raw = raw
        self._draws = relabel(log_posterior, raw, self._map(log_posterior))
        self.__dict__.pop("posterior_", None)
        return self

    def _datatree(self) -> xr.DataTree:
        """Posterior, log likelihood and training rows; a point is one draw of one chain."""
        from bayesrbf.conversion import to_datatree

        log_posterior = self._log_posterior()
        structure = self._mixture.specification
        return to_datatree(
            log_posterior,
            self._draws or point(log_posterior, self._map(log_posterior)),
            coords=coordinates(self._columns, structure, self._kept, self._class_names()),
            observed=observed_data(self._rows),
            constant=constant_data(self._rows),
            trace=self._trace,
        )

    def diagnose(self) -> pd.DataFrame:
        """Figures about the posterior draws, each with its sentence.

        Returns
        -------
        pandas.DataFrame
            One row a figure: R-hat, effective draws, Pareto k-hat, divergences,
            whatever the method gives.
        """
        from bayesrbf.inference.diagnose import findings, table

        check_is_fitted(self)
        log_posterior = self._log_posterior()
        if self._draws is None:
            return table(findings(point(log_posterior, self._map(log_posterior))))
        return table(findings(self._draws, raw=self._raw, **self._probabilities_of_training()))

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of the training rows, for diagnosis; a density has none."""
        return {}

    def _class_names(self) -> np.ndarray | None:
        """Class labels; None for a density."""
        return None

    def _log_posterior(self) -> MixtureLogPosterior:
        """The log posterior given the training rows, in the graph's coordinates."""
        mixture = self._mixture
        return MixtureLogPosterior(
            mixture.standardise(self._rows), mixture.specification, mixture.hyperparameters
        )

    def _map(self, log_posterior: MixtureLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the graph's coordinates."""
        mixture = self._mixture
        return log_posterior.pack(mixture.parameters.in_units(mixture.units))

    def impute(self, X: object, draws: int | None = None) -> Any:
        """Fill the missing cells; observed cells are returned as they came.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows with missing cells.
        draws : int, optional
            Number of completed tables to draw. None: one table, with the
            conditional mean ``E[x | x_o]`` of real and the most probable level
            of categorical cells, at the fitted point.

        Returns
        -------
        same container as ``X``, or list of them
            One completed table; with ``draws``, a list of tables whose missing
            cells are joint draws, each under another draw of the posterior if
            there is one.

        Raises
        ------
        ValueError
            If ``draws`` is below 1.
        """
        rows = self._read(X)
        if draws is None:
            return table.decode(*most_likely(self._mixture, rows), self._columns, X)
        if draws < 1:
            raise ValueError(f"impute(draws=...) must be at least 1; received {draws}.")
        rng = np.random.default_rng(self._seed)
        return [
            table.decode(*drawn(self._mixture, rows, point, rng), self._columns, X)
            for point in self._points(draws, rng)
        ]

    def _points(self, number: int, rng: np.random.Generator) -> list[MixtureParameters]:
        """Points of the posterior in standard units: draws, or the fitted point again."""
        if self._draws is None:
            return [self._mixture.parameters] * number
        log_posterior = self._log_posterior()
        thetas = self._draws.theta.reshape(-1, log_posterior.dimension)
        chosen = rng.choice(len(thetas), size=number, replace=number > len(thetas))
        units = self._mixture.units
        return [log_posterior.unpack(thetas[i]).standardised(units) for i in chosen]

    def _draw(
        self, n_samples: int, parameters: MixtureParameters, labels: np.ndarray | None = None
    ) -> tuple[Any, Int[np.ndarray, " row"]]:
        """New rows in the container of ``fit``, and their class codes."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"sample(n_samples) must be an integer of at least 1; received {n_samples!r}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(LARGEST_SEED))
        real, codes, classes, _ = sample(
            parameters, self._mixture.specification, int(n_samples), rng, labels
        )
        real, codes = hide_masked(self._mixture.units.backward(real), codes, self._columns)
        return table.decode(real, codes, self._columns, self._template), classes

    # ---- the graph

    def _declaration(self) -> tuple[Observations, MixtureSpecification, MixtureHyperparameters]:
        """What is declared: training rows and prior in the user's units."""
        check_is_fitted(self)
        return self._rows, self._mixture.specification, self._mixture.hyperparameters

    def _axes(self) -> dict[str, Any]:
        """Names along the axes of graph and DataTree."""
        columns = self._columns
        return {
            "feature_names": columns.real_names,
            "categorical_names": columns.categorical_names,
            "level_names": columns.all_levels,
            "obs_names": self._kept.tolist(),
        }


def _sampler(method: str) -> Callable[..., Draws]:
    """The function that draws by a method; imported here so that a MAP fit never does."""
    if method == "laplace":
        from bayesrbf.inference.laplace import laplace

        return laplace
    if method == "nuts":
        from bayesrbf.inference.nuts import nuts

        return nuts
    raise ValueError(f"refine(method) must be 'laplace' or 'nuts'; received {method!r}.")
