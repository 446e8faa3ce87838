"""A density that goes on learning from blocks of rows, each seen once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bayesrbf.estimators.arguments import row_weights
from bayesrbf.fitted.mixture_fitting import begin_stream, step


def partial_fit(self: Any, X: object, y: object = None, sample_weight: object = None) -> Any:
    r"""Update the fit with one more block of rows: a step of stepwise EM.

    The first block, or the table of an earlier :meth:`fit`, is fitted as a whole. Its columns,
    levels, units and prior stay. For the t-th block after it, the sufficient statistics per unit of
    weight are mixed with the earlier ones,

    .. math:: s \leftarrow (1 - \gamma_t) s + \gamma_t \hat s_t, \qquad \gamma_t = (t + 1)^{-0.6},

    and the parameters are the mode given as much weight as was seen. Blocks should be drawn at
    random, and the first one large enough to have all levels: others count as missing.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; NaN, None and NA are missing cells.
    y : object
        Ignored.
    sample_weight : array-like of shape (n_obs,), optional
        Row weights, at least 0: weight 2 is the row twice.

    Returns
    -------
    self
        The estimator.

    Raises
    ------
    ValueError
        If the table or the weights cannot be used.

    References
    ----------
    .. [1] Cappé, Moulines (2009), On-line expectation-maximization algorithm for latent data
       models, JRSS B 71, 593-613.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesrbf import MixtureDensity
    >>> density, rng = MixtureDensity(random_state=0), np.random.default_rng(0)
    >>> for _ in range(50):
    ...     density = density.partial_fit(rng.normal(3.0, 2.0, size=(200, 1)))
    >>> density.passes_, density.model_.start.means.round(1)
    (50, array([[3.]]))
    """
    if "model_" not in self.__dict__:
        self.fit(X, sample_weight=sample_weight)
        self._stream, self.passes_ = begin_stream(self.model_, self.rows_), 1
        return self
    stream = self.__dict__.get("_stream")
    if stream is None:
        stream = begin_stream(self.model_, self.rows_)
    rows = self._read(X)
    weights = row_weights(sample_weight, X)
    rows = replace(rows, labels=0 * rows.labels, weights=weights).take(weights > 0)
    self.passes_ = max(1, self.passes_)
    if rows.n_obs:
        self._sampled = True
        self.model_, self._stream = step(self.model_, stream, rows)
        self.passes_ += 1
    self.draws_ = self._raw = None
    self.__dict__.pop("posterior_", None)
    return self
