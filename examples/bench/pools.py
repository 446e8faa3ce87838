"""Pools of some of the members of a stack that is fitted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesrbf import StackedClassifier
from bayesrbf.base.arrays import log_loss
from bayesrbf.base.hidden_share import missing_share
from bayesrbf.families.stack.posterior import StackLogPosterior, fit_pools
from bayesrbf.fit.asking import new_rows
from bench.stack_tables import Split


class Pools:
    """Log losses on new rows of pools of a fitted stack's members.

    No member knows of another, so a pool of some is the stack that has those alone.
    """

    def __init__(self, model: StackedClassifier, data: Split) -> None:
        rows = new_rows(model.fitted_, data.X_new).cells
        self.names, self.held = model.members_, model.model_.held
        self.new, self.hidden = model.model_.members.log_probabilities(rows), missing_share(rows)
        self.labels = data.y_new

    def loss(self, members: Sequence[str]) -> float:
        """Log loss of the pool of members, by name."""
        places = [self.names.index(name) for name in members]
        held = replace(self.held, values=self.held.values[:, places])
        if held.masked is not None:
            masked = replace(held.masked, values=held.masked.values[:, :, places])
            held = replace(held, masked=masked)
        pool = StackLogPosterior(held.values, held.labels, held.weights, held.masked)
        log_p = pool.pooled(self.new[:, places], self.hidden, pool.pack(fit_pools(held)))
        return float(log_loss(np.exp(log_p), self.labels).mean())
