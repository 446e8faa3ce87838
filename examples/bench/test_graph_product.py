"""Graph, numerics and brute force over the full product of options.

384 graphs of about 3 s each, compiled anew. The ordinary test-suite has a covering array of
pairs: tests/models/test_graph_equals_numerics.py.
"""

from __future__ import annotations

import pytest

from tests.models.configurations import (
    Configuration,
    assert_close,
    assert_same_density,
    compile_graph,
    name_of,
    product,
)

PRODUCT = tuple(c for c in product() if c.n_features == 3 and c.n_classes == 2)


@pytest.mark.parametrize("configuration", PRODUCT, ids=name_of)
def test_the_three_forms_are_one_density(configuration: Configuration) -> None:
    graph = compile_graph(configuration.declare())
    for seed in (1, 2, 3):
        theta = graph.random_theta(configuration, seed)
        expected = configuration.oracle.log_posterior(graph.constrained(theta))
        assert_close(graph.at(theta).value, expected)
        assert_same_density(graph, configuration.log_posterior, theta)


def test_the_product_is_full() -> None:
    assert len(PRODUCT) == 4 * 3 * 2**5
