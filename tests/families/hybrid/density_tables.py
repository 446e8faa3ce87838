"""Tables for densities, and what a fit to them holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from bayesrbf import MixtureDensity

UNITS = np.array([1.0, 1e3, 1e-4])


def real_table(n: int = 120, missing: float = 0.0, seed: int = 0) -> np.ndarray:
    """Two clusters in three columns of different units."""
    rng = np.random.default_rng(seed)
    mixing = np.array([[1.0, 0.0, 0.0], [0.6, 1.0, 0.0], [-0.4, 0.3, 1.0]])
    centres = np.where(rng.random(n) < 0.4, 0.0, 4.0)[:, None]
    X = (centres + rng.normal(size=(n, 3)) @ mixing.T) * UNITS + 5 * UNITS
    X[rng.random(X.shape) < missing] = np.nan
    return X


def mixed_frame(n: int = 80, seed: int = 1) -> pd.DataFrame:
    """A frame of reals, strings and booleans with holes."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    frame = pd.DataFrame(
        {
            "height": rng.normal(np.where(group, 0.0, 3.0)),
            "colour": np.where(rng.random(n) < 0.8, np.where(group, "red", "blue"), "green"),
            "weight": rng.normal(np.where(group, 10.0, 20.0)),
            "member": (rng.random(n) < np.where(group, 0.9, 0.2)).astype(object),
        }
    )
    hidden = rng.random(frame.shape) < 0.2
    return frame.mask(hidden, None).astype({"height": float, "weight": float})


def point(density: MixtureDensity) -> dict[str, np.ndarray]:
    """Parameters in the user's units, as the posterior holds them; covariances are matrices."""
    posterior = density.posterior_["posterior"]
    found = {name: posterior[name].to_numpy()[0, 0] for name in posterior.data_vars}
    if "covariances" in found and "feature_bis" not in posterior["covariances"].dims:
        variances = found["covariances"]
        found["covariances"] = variances[..., None] * np.eye(variances.shape[-1])
    return found


def as_numpy(frame: pd.DataFrame) -> np.ndarray:
    return frame.to_numpy(dtype=object)


CONTAINERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "object array": as_numpy,
    "list": lambda frame: as_numpy(frame).tolist(),
    "polars": lambda frame: pl.DataFrame(
        {name: frame[name].replace({np.nan: None}).tolist() for name in frame}
    ),
    "pandas category": lambda frame: frame.astype({"colour": "category"}),
}
