"""Label noise: the rate of labels that are uniform over the classes, whatever their row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

# Label noise: of any class alike, whatever their row. Rule 7 of the intervals of a stack.
#
# Of n rows held out, the label of row i had the probability :math:`p_i`, among C classes. Rows
# weigh :math:`v_i`. If the rate of label noise is :math:`\epsilon`,
#
# .. math:: p(\epsilon \mid y) \propto (1 - \epsilon)^{19} \prod_i
#     \Bigl((1 - \epsilon) \, p_i + \frac{\epsilon}{C}\Bigr)^{v_i}.
#
# So before the rows the rate is Beta(1, 20): one label in 21 is expected to be one. Labels of
# probability 1 leave about Beta(1, n (C - 1) / C + 20), and labels that surprise leave more.
# Whether there are any has even odds, before the rows and after: this is a choice, not a posterior.


GOLDEN: Final = (np.sqrt(5) - 1) / 2
"""Step of the quantiles of the draws, modulo 1: any number of draws is spread evenly."""
LABELS_BEFORE: Final = 20
"""Prior sample size: labels without noise."""
RATES: Final = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 500)])
"""Grid of the posterior: geometric, for rates of different tables span orders of magnitude."""


@dataclass(frozen=True)
class LabelNoise:
    """Posterior of the rate of label noise, given held-out rows, at even odds of no noise."""

    cumulative: Float[np.ndarray, " rate"]
    """Probability that the rate is at most each of ``RATES``."""

    def rates(self, n_draws: int) -> Float[np.ndarray, " draw"]:
        """Rate of every draw: 0 in half of them.

        They fill their distribution evenly, by multiples of the golden ratio.
        """
        quantiles = (0.5 + np.arange(n_draws) * GOLDEN) % 1
        rates = np.interp(2 * quantiles - 1, self.cumulative, RATES)
        return np.where(quantiles < 0.5, 0.0, rates)


def fit_label_noise(
    p: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"], n_classes: int
) -> LabelNoise:
    """Posterior of the rate on the grid ``RATES``, from probabilities p of held-out labels."""
    with np.errstate(divide="ignore"):  # the density is 0 at a rate of 1
        log_density = (LABELS_BEFORE - 1) * np.log1p(-RATES)
        p, weights = p[weights > 0], weights[weights > 0]
        log_density += [weights @ np.log(p + rate * (1 / n_classes - p)) for rate in RATES]
    density = np.exp(log_density - log_density.max())
    between = np.diff(RATES) * (density[1:] + density[:-1])
    cumulative = np.append(0.0, between.cumsum())
    return LabelNoise(cumulative / cumulative[-1])
