r"""The output layer of a kernel network: multinomial logistic under a Gaussian prior.

.. math::
   \log p(\theta | y) = \sum_n v_n \log \mathrm{softmax}(W f(x_n) + b)[y_n]
       + \sum \log N(W; 0, 1/\lambda) + \sum \log N(b; 0, \sigma_b^2)

with row weights v, hidden layer f and precision :math:`\lambda`. Two classes have one row of
weights, for the second class over the first. Everything is free of bounds: there is no
Jacobian.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayesrbf import names
from bayesrbf.numerics import coordinates
from bayesrbf.specification import Variable

INTERCEPT_SD = 10.0
"""Of the normal prior of the intercepts: e^10 to one is as good as free."""
LOG_2PI = float(np.log(2 * np.pi))


class KernelNetworkLogPosterior:
    """Log posterior of the output weights given a hidden layer.

    Parameters
    ----------
    features : ndarray of shape (n_obs, n_basis)
        Hidden layer of the training rows.
    labels : ndarray of shape (n_obs,)
        Class codes, -1 where hidden: such a row says nothing about the weights.
    weights : ndarray of shape (n_obs,)
        Row weights, at least 0.
    n_classes : int
        Number of classes.
    weight_precision : float
        Precision of the normal prior of the output weights, positive.
    """

    def __init__(
        self,
        features: Float[np.ndarray, "obs basis"],
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        n_classes: int,
        weight_precision: float,
    ) -> None:
        n_outputs = 1 if n_classes == 2 else n_classes
        shape = (n_outputs, features.shape[1])
        self.variables: tuple[Variable, ...] = (
            Variable(names.COEFFICIENTS, (names.OUTPUT, names.BASIS), shape, "identity"),
            Variable(names.INTERCEPTS, (names.OUTPUT,), shape[:1], "identity"),
        )
        self.deterministic_variables: tuple[Variable, ...] = ()
        self.dimension = sum(variable.size for variable in self.variables)
        self.component_class: Int[np.ndarray, " component"] = np.zeros(0, dtype=np.intp)
        self.n_classes, self.weight_precision = n_classes, weight_precision
        self._features, self._labels, self._weights = features, labels, weights
        labelled = np.flatnonzero(labels >= 0)
        self._rows = features[labelled]
        self._row_weights = weights[labelled]
        self._target = np.eye(n_classes)[labels[labelled]] * self._row_weights[:, None]

    @cached_property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Posterior spread of each coordinate if the classes were told apart by nothing."""
        shares = self._target.sum(axis=0) / self._row_weights.sum()
        variances = (shares * (1 - shares))[-self.variables[0].shape[0] :]
        squares = self._row_weights @ self._rows**2
        weights = np.outer(variances, squares) + self.weight_precision
        intercepts = variances * self._row_weights.sum() + INTERCEPT_SD**-2
        return np.concatenate([weights.ravel(), intercepts]) ** -0.5

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Output weights, then intercepts.
        jacobian : bool
            Of no effect: nothing is transformed.

        Returns
        -------
        value : float
            Log density in nats.
        gradient : ndarray of shape (dimension,)
            Gradient in the coordinates.
        """
        weights, intercepts = output_layer(theta, self._rows.shape[1])
        log_p = class_log_probabilities(self._rows, theta, self.n_classes)
        value = float((self._target * log_p).sum()) + self.log_prior(theta)
        slopes = self._target - self._row_weights[:, None] * np.exp(log_p)
        slopes = slopes[:, -intercepts.size :]
        by_weight = slopes.T @ self._rows - self.weight_precision * weights
        by_intercept = slopes.sum(axis=0) - intercepts / INTERCEPT_SD**2
        return value, np.concatenate([by_weight.ravel(), by_intercept])

    def log_prior(self, theta: Float[np.ndarray, " coordinate"]) -> float:
        """Log prior density of the output weights and intercepts.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Output weights, then intercepts.

        Returns
        -------
        float
            Log density in nats.
        """
        weights, intercepts = output_layer(theta, self._rows.shape[1])
        sd = self.weight_precision**-0.5
        return _log_normal(weights, sd) + _log_normal(intercepts, INTERCEPT_SD)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Log probability of every row's label, not weighted; 0 where it is hidden.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Output weights, then intercepts.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(y_n | x_n)`` in nats.
        """
        log_p = class_log_probabilities(self._features, theta, self.n_classes)
        own = log_p[np.arange(self._labels.size), self._labels]
        return np.where(self._labels >= 0, own, 0.0)

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "obs component"]:
        """Nothing: a network has no components that could trade places.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Output weights, then intercepts.

        Returns
        -------
        ndarray of shape (n_obs, 0)
            Empty.
        """
        return np.zeros((self._labels.size, 0))

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """The same point: there are no components to reorder.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Output weights, then intercepts.
        order : ndarray of shape (0,)
            Empty.

        Returns
        -------
        ndarray of shape (dimension,)
            ``theta``.
        """
        return theta

    def constrained(self, thetas: Float[np.ndarray, "*batch coordinate"]) -> dict[str, np.ndarray]:
        """Values of the free variables at one point or many.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Output weights, then intercepts.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            ``coefficients`` and ``intercepts``.
        """
        return coordinates.to_constrained(self.variables, thetas)

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Nothing is reported beside the free variables.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Output weights, then intercepts.

        Returns
        -------
        dict
            Empty.
        """
        return {}


def class_log_probabilities(
    features: Float[np.ndarray, "row basis"],
    theta: Float[np.ndarray, " coordinate"],
    n_classes: int,
) -> Float[np.ndarray, "row label"]:
    """Log of ``softmax(W f + b)``; of two classes, the first has the logit 0.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_basis)
        Hidden layer of the rows.
    theta : ndarray of shape (dimension,)
        Output weights, then intercepts.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Log probabilities in nats.

    Examples
    --------
    >>> class_log_probabilities(np.ones((1, 1)), np.log([3.0, 1.0]), 2)
    array([[-1.38629436, -0.28768207]])
    """
    weights, intercepts = output_layer(theta, features.shape[1])
    logits = features @ weights.T + intercepts
    if n_classes == 2:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    return log_softmax(logits, axis=1)


def output_layer(
    theta: Float[np.ndarray, " coordinate"], n_basis: int
) -> tuple[Float[np.ndarray, "output basis"], Float[np.ndarray, " output"]]:
    """Output weights and intercepts at given coordinates.

    Parameters
    ----------
    theta : ndarray of shape (dimension,)
        Output weights, then intercepts.
    n_basis : int
        Width of the hidden layer.

    Returns
    -------
    weights : ndarray of shape (n_outputs, n_basis)
        Output weights.
    intercepts : ndarray of shape (n_outputs,)
        Intercepts.
    """
    n_outputs = theta.size // (n_basis + 1)
    return theta[:-n_outputs].reshape(n_outputs, n_basis), theta[-n_outputs:]


def _log_normal(values: np.ndarray, sd: float) -> float:
    """Log density of independent normal values around 0."""
    squares = float((values**2).sum()) / sd**2
    return -0.5 * squares - values.size * (np.log(sd) + 0.5 * LOG_2PI)
