"""The law of observed labels given their class logits, rows weighted."""

from __future__ import annotations

from typing import Any

import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable


def label_logp(
    value: TensorVariable, logits: TensorVariable, row_weight: TensorVariable
) -> TensorVariable:
    """Weighted log probability of every label; 0 where it is hidden.

    Parameters
    ----------
    value : TensorVariable of shape (obs,)
        Class codes, -1 where hidden.
    logits : TensorVariable of shape (obs, label)
        Log probabilities, up to a constant per row.
    row_weight : TensorVariable of shape (obs,)
        Factors of the rows' log probabilities.

    Returns
    -------
    TensorVariable of shape (obs,)
        Weighted log probabilities in nats.
    """
    log_p = logits - pm.math.logsumexp(logits, axis=1, keepdims=True)
    own = log_p[pt.arange(log_p.shape[0]), value]
    return pt.switch(pt.ge(value, 0), row_weight * own, 0.0)


def label_draw(logits: TensorVariable, row_weight: TensorVariable, size: Any) -> TensorVariable:
    """A label for every row; a weight has no generative story.

    Parameters
    ----------
    logits : TensorVariable of shape (obs, label)
        Log probabilities, up to a constant per row.
    row_weight : TensorVariable of shape (obs,)
        Without a part in the draw.
    size : object
        Appended by PyMC; a whole table needs none.

    Returns
    -------
    TensorVariable of shape (obs,)
        Class codes.
    """
    return pm.Categorical.dist(logit_p=logits)
