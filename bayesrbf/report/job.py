"""One table and what was asked about it: the input of every section of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Int

from bayesrbf.table import encode_labels

FamilyName = Literal["stack", "mixture", "rbf", "sdgm", "median_lvq"]
Inference = Literal["auto", "laplace", "advi", "gibbs", "nuts", "map"]


@dataclass(frozen=True)
class Truth:
    """The table before cells and labels were hidden.

    Attributes
    ----------
    X : DataFrame of shape (n_obs, n_columns)
        Complete rows.
    y : Series of shape (n_obs,)
        Complete labels.
    """

    X: pd.DataFrame
    y: pd.Series


@dataclass(frozen=True)
class Job:
    """A table, its labels, and how it shall be looked at.

    Attributes
    ----------
    title : str
        Name of the table.
    target : str
        Name of the label column.
    X : DataFrame of shape (n_obs, n_columns)
        Rows without the label column; a plain index from 0.
    y : Series of shape (n_obs,)
        Labels, missing where hidden.
    kinds : mapping of str to {"real", "categorical"}
        Kind of every column of ``X``.
    inference : {"auto", "laplace", "advi", "gibbs", "nuts", "map"}
        How the posterior is made; ``"auto"``: by what takes about a minute.
    seed : int
        Seed of everything random.
    notes : tuple of str
        What was noticed when the table was read.
    facts : tuple of (str, str)
        Command, versions, digest of the data.
    truth : Truth, optional
        What was hidden, where it is known.
    family : {"stack", "mixture", "rbf", "sdgm", "median_lvq"}
        What is fitted.
    costs : mapping of str to float
        What a mistaken row of a class costs; 1 for classes that are not named, and
        nothing is said about costs where none is.
    draws : int, optional
        Posterior draws per chain; by default what the family takes.
    folds : int
        Most folds of the cross-validation.
    """

    title: str
    target: str
    X: pd.DataFrame
    y: pd.Series
    kinds: Mapping[str, str]
    inference: Inference
    seed: int
    notes: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    truth: Truth | None = None
    family: FamilyName = "stack"
    costs: Mapping[str, float] = field(default_factory=dict)
    draws: int | None = None
    folds: int = 5

    @property
    def categorical(self) -> list[str]:
        """Names of the categorical columns."""
        return [name for name in self.X.columns if self.kinds[name] == "categorical"]

    @property
    def knows_holes(self) -> bool:
        """Whether cells are missing and their truth is known."""
        return self.truth is not None and bool(self.X.isna().to_numpy().any())

    @property
    def labels(self) -> Int[np.ndarray, " obs"]:
        """Class codes, -1 where hidden."""
        return encode_labels(self.y)[1]
