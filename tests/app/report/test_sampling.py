"""The method that makes the report's posterior, and what is said about it."""

from __future__ import annotations

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest

from bayesrbf import HybridMixtureClassifier, SDGMClassifier
from bayesrbf.app.report import families as sampling
from bayesrbf.app.report.families import choose_method, draw_posterior
from tests.app.report.test_collect import job
from tests.cases import generative


@pytest.fixture(scope="module")
def model() -> HybridMixtureClassifier:
    small = job()
    classifier = generative(unlabelled_weight=1.0, random_state=0)
    fitted: HybridMixtureClassifier = classifier.fit(small.X, small.y)
    return fitted


def test_a_small_table_is_sampled_exactly_and_a_large_one_is_not(model, monkeypatch):
    mixture = job("auto", family="mixture")
    assert choose_method(mixture, model)[0] == "gibbs"
    monkeypatch.setattr(sampling, "AFFORDABLE", 100)
    method, why = choose_method(mixture, model)
    assert method == "laplace"
    assert "70 rows" in why
    assert "--inference gibbs" in why


def test_a_stack_has_draws_whatever_the_table(model):
    assert choose_method(job("auto", family="stack"), model)[0] == "laplace"


def test_no_method_needs_minutes_without_being_asked(model, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_CURVED", 3)
    monkeypatch.setattr(sampling, "AFFORDABLE", 100)
    method, why = choose_method(job("auto", family="mixture"), model)
    assert method == "map"
    assert "--inference laplace takes them" in why
    in_part = SimpleNamespace(
        model_=model.model_, rows_=dataclasses.replace(model.rows_, weights=model.rows_.weights / 3)
    )
    assert choose_method(job("auto", family="mixture"), in_part)[0] == "map"


def test_rows_that_count_in_part_are_not_sampled_by_gibbs(model):
    weights = np.where(np.arange(model.rows_.n_obs) < 5, 1 / 3, 1.0)
    in_part = SimpleNamespace(
        model_=model.model_, rows_=dataclasses.replace(model.rows_, weights=weights)
    )
    method, _ = choose_method(job("auto", family="mixture"), in_part)
    assert method == "laplace"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "advi", "map"])
def test_the_sentence_names_what_was_done(model, method):
    drawn = draw_posterior(job(method, draws=20, family="mixture"), model)
    done = drawn.refined.posterior_.attrs["inference"]
    assert done == {"auto": "gibbs", "advi": "advi", "map": "map"}[method]
    said = {
        "auto": "Gibbs sampling.*80 draws.*is cheap",
        "advi": "variational.*80 draws.*because it was asked for",
        "map": "no intervals",
    }
    assert re.search(said[method], drawn.message)
    assert drawn.model is model
    assert model.posterior_.attrs["inference"] == "map"


@pytest.mark.slow
def test_a_fit_that_averages_has_intervals_without_draws():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    fitted = SDGMClassifier(1, n_init=1, random_state=0).fit(X, X[:, 0] + rng.normal(size=40) > 0)
    drawn = draw_posterior(job("map", family="sdgm"), fitted)
    assert (drawn.refined.uncertainty(X)["epistemic_entropy"] > 0).all()
