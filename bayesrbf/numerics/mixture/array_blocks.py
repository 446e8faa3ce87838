"""Rows of a table cut into blocks for the E-step in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.categories import one_hot
from bayesrbf.numerics.mixture.gaussian_quadratic import MOST_PRODUCTS, products
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import Observations
from bayesrbf.records.row_blocks import IN_CACHE, in_blocks
from bayesrbf.records.specification import MixtureSpecification

LEAST_ROWS = 64
"""Rows of a block below which matrix products are slow."""


@dataclass(frozen=True)
class Block:
    """Rows that share their admissible components and their number of missing reals."""

    rows: Int[np.ndarray, " row"]
    components: slice
    bordered: Float[np.ndarray, "row bordered"]
    products: Float[np.ndarray, "product row"] | None
    observed: Bool[np.ndarray, "row feature"]
    missing: Int[np.ndarray, "row m"]
    one_hot: Float[np.ndarray, "row level"]
    weights: Float[np.ndarray, " row"]


def cut(
    table: Observations,
    specification: MixtureSpecification,
    rows: Int[np.ndarray, " row"],
    components: slice,
    *,
    by_products: bool = True,
) -> list[Block]:
    """Cut rows of a table in standard units into blocks of equal work that fit the cache.

    Rows of a block may have the same components and lack equally many reals. ``by_products`` says
    whether blocks of complete rows get the products of their cells, where affordable.
    """
    observed = ~np.isnan(table.real[rows])
    bordered = np.column_stack([np.nan_to_num(table.real[rows]), np.ones(rows.size)])
    indicators = one_hot(table.codes[rows], specification.levels)
    law = laws_of(specification).reals
    counts = law.kept_apart(observed)
    k, d = components.stop - components.start, specification.n_features
    n_products = (d + 1) * (d + 2) // 2
    affordable = rows.size * n_products <= MOST_PRODUCTS and specification.shape == "full"
    blocks: list[Block] = []
    for m in np.unique(counts):
        multiplied = by_products and affordable and m == 0
        width = max(k, n_products) if multiplied else k * law.numbers_a_row(int(m))
        width = min(width, IN_CACHE // LEAST_ROWS) if multiplied else width
        same = np.flatnonzero(counts == m)
        for place in in_blocks(same.size, width, cached=True):
            part = same[place]
            places = np.nonzero(~observed[part])[1] if m else np.empty(0, dtype=np.intp)
            blocks.append(
                Block(
                    rows=rows[part],
                    components=components,
                    bordered=bordered[part],
                    products=products(bordered[part]) if multiplied else None,
                    observed=observed[part],
                    missing=places.reshape(part.size, m),
                    one_hot=indicators[part],
                    weights=table.weights[rows[part]],
                )
            )
    return blocks
