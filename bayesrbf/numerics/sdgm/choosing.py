r"""Which restart to keep: the one whose precisions, integrated out, explain the labels best.

The evidence at its maximum over many precisions is too high, by more the more weights are
active. With a log-uniform prior between the bounds that the fit keeps them in, and MacKay's
error bars on the logs, :math:`\sigma^2_{\log \alpha} = 2 / \gamma`, every active weight costs

.. math:: \log \frac{\sqrt{4 \pi / \gamma}}{\log \alpha_{\max} - \log \alpha_{\min}}

nats, about two. A weight that was dropped costs nothing: all large precisions are one model.

References
----------
MacKay (1992), Bayesian interpolation, Neural Computation 4, 415-447, section 4.3.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.sdgm.ard import LEAST_PRECISION, Run


def choose(runs: list[Run], alpha_max: float) -> int:
    """The most probable restart.

    Parameters
    ----------
    runs : list of Run
        All restarts.
    alpha_max : float
        Largest precision of an active weight.

    Returns
    -------
    int
        That of the highest evidence and volume together.
    """
    return int(np.argmax([run.evidence + log_volume(run.determined, alpha_max) for run in runs]))


def log_volume(determined: Float[np.ndarray, " weight"], alpha_max: float) -> float:
    """Log share of the precisions' prior that their posterior takes.

    Parameters
    ----------
    determined : ndarray of shape (n_weights,)
        How much of every active weight the rows determine: MacKay's gamma.
    alpha_max : float
        Largest precision of an active weight.

    Returns
    -------
    float
        At most 0.

    Examples
    --------
    >>> round(log_volume(np.array([1.0]), alpha_max=1e5), 2)
    -1.97
    """
    reach = max(float(np.log(alpha_max / LEAST_PRECISION)), 1.0)
    log_widths = 0.5 * np.log(4 * np.pi / np.maximum(determined, 1e-9))
    return float(np.minimum(log_widths - np.log(reach), 0.0).sum())
