"""The declared exemplar classifier equals the numerics at every state."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes, Sigma, SigmaPrior
from bayesrbf.families.median_lvq.search import MedianLVQLogPosterior
from bayesrbf.models.median_lvq import declare_median_lvq

PROTOTYPES = Prototypes((0, 1, 1))
PRIOR = SigmaPrior(-0.4, 0.6)


def table() -> Dissimilarities:
    """Asymmetric; one row has no label and may be an exemplar of either class."""
    values = np.random.default_rng(0).gamma(2.0, size=(6, 6))
    return Dissimilarities(
        values - np.diag(np.diag(values)),
        np.array([0, 0, 1, 1, -1, 1]),
        np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0]),
        (np.array([0, 1, 4]), np.array([2, 3, 4, 5])),
    )


@pytest.mark.parametrize("sigma", [PRIOR, 0.8], ids=["sampled", "fixed"])
def test_graph_equals_numerics_at_every_state(sigma: Sigma) -> None:
    rows = table()
    numerics = MedianLVQLogPosterior(rows, PROTOTYPES, sigma)
    model = declare_median_lvq(rows, PROTOTYPES, sigma)
    assert [v.name for v in model.free_RVs] == [v.name for v in numerics.variables]
    rng = np.random.default_rng(1)
    for jacobian in (True, False):
        graph = model.compile_logp(mode="FAST_COMPILE", jacobian=jacobian)
        for exemplars in itertools.product(*[rows.candidates[c] for c in PROTOTYPES.classes]):
            point, theta = {"exemplars": np.array(exemplars)}, np.array(exemplars, float)
            if isinstance(sigma, SigmaPrior):
                theta = np.append(theta, rng.normal())
                point["sigma_log__"] = theta[-1]
            value, _ = numerics.value_and_gradient(theta, jacobian)
            assert float(graph(point)) == pytest.approx(value, rel=1e-10)


def test_no_exemplar_but_a_candidate_has_a_density() -> None:
    model = declare_median_lvq(table(), PROTOTYPES, 0.8)
    logp = model.compile_logp(mode="FAST_COMPILE")
    assert logp({"exemplars": np.array([2, 2, 3])}) == -np.inf


@pytest.mark.slow
def test_labels_are_drawn_with_the_probabilities_of_their_rows() -> None:
    rows = replace(table(), candidates=(np.array([0]), np.array([3])))
    prototypes = Prototypes((0, 1))
    model = declare_median_lvq(
        rows, prototypes, 1.2, class_names=["ill", "well"], obs_names=list("abcdef")
    )
    assert list(model.coords["label"]) == ["ill", "well"]
    assert list(model.coords["obs"]) == list(model.coords["row"]) == list("abcdef")
    with model:
        drawn = pm.sample_prior_predictive(
            4000, random_seed=0, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    share = drawn.prior_predictive["y"].to_numpy()[0].mean(axis=0)
    kernel = np.exp(-rows.values[:, [0, 3]] / 1.2**2)
    expected = kernel[:, 1] / kernel.sum(axis=1)
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert np.all(np.abs(share - expected) < 4.9 * error)


def test_names_must_fit() -> None:
    with pytest.raises(ValueError, match="obs_names must have 6 entries; received 1"):
        declare_median_lvq(table(), PROTOTYPES, 0.8, obs_names=["a"])
