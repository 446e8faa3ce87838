"""Tables of three classes with holes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

CLASSES = np.array(["calm", "gale", "storm"], dtype=object)


def table(n: int = 90, missing: float = 0.25, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three classes over reals in different units and a string column, with holes."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "wind": rng.normal(codes * 2.0, 1.0),
            "pressure": 1e5 + 300 * rng.normal(-codes),
            "sky": np.where(rng.random(n) < 0.7, np.array(["a", "b", "c"])[codes], "b"),
        }
    )
    hidden = rng.random(frame.shape) < missing
    return frame.mask(hidden, None).astype({"wind": float, "pressure": float}), CLASSES[codes]


def iris(missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    return X, y
