"""Pools of some of the members of a stack that is fitted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesrbf import StackedClassifier
from bayesrbf.estimators.answers.asking import new_rows
from bayesrbf.fitted.holding_out import HeldOut
from bayesrbf.fitted.stack.pool import fit_pool
from bayesrbf.numerics.stack.pooling import pooled
from bayesrbf.posterior.recalibration import tempered
from bayesrbf.posterior.scores import log_loss
from tests.benchmarks.stack_tables import Split


class Pools:
    """Log losses on new rows of pools of a fitted stack's members.

    No member knows of another, so a pool of some is the stack that has those alone.
    """

    def __init__(self, model: StackedClassifier, data: Split) -> None:
        rows = new_rows(model.fitted_, data.X_new).cells
        self.names, self.held = model.members_, model.model_.held
        self.new = model.model_.members.log_probabilities(rows)
        self.labels = data.y_new

    def loss(self, members: Sequence[str]) -> float:
        """Log loss of the pool of members, by name."""
        places = [self.names.index(name) for name in members]
        pool = fit_pool(HeldOut(self.held.values[:, places], self.held.labels, self.held.weights))
        joint = pooled(self.new[:, places], pool.weights, pool.member_temperatures)
        return float(log_loss(np.exp(tempered(joint, pool.temperature)), self.labels).mean())
