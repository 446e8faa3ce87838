"""Types of what the laws of a mixture's columns take."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters

Point = MixtureParameters
Hyper = MixtureHyperparameters
Rows = Observations
Rng = np.random.Generator
Values = Mapping[str, np.ndarray]
"""Values of free variables by name."""
Assignment = Int[np.ndarray, " row"]
"""The component of every row."""
Memberships = Float[np.ndarray, "row component"]
