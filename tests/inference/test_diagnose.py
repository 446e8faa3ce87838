from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.inference.diagnose import (
    Finding,
    PosteriorWarning,
    effective_draws,
    findings,
    judge_approximation,
    judge_map,
    rhat,
    table,
    warn,
)
from bayesrbf.inference.draws import Draws, point, relabel
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.variational import advi
from tests.inference.targets import Gaussian, HeavyTailed, Mixture, Saddle
from tests.inference.test_relabel import permuted


def by_row(found: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.row: finding for finding in found}


def sampled(seed: int = 0, *, shift: float = 0.0, **stats: np.ndarray) -> Draws:
    """Independent normal draws of four chains, the last of them shifted."""
    theta = np.random.default_rng(seed).normal(size=(4, 500, 2))
    theta[3] += shift
    return Draws(theta, {"lp": -0.5 * (theta**2).sum(axis=2), **stats}, "nuts")


def test_independent_draws_are_good():
    found = by_row(findings(sampled()))
    assert all(finding.good for finding in found.values())
    assert found["rhat_parameters"].value < 1.01
    assert found["ess_parameters"].value > 1000


def test_a_chain_of_its_own_is_bad():
    found = by_row(findings(sampled(shift=3.0)))
    assert not found["rhat_parameters"].good
    assert not found["rhat_log_posterior"].good
    assert "disagree" in found["rhat_parameters"].sentence


def test_correlated_draws_are_few():
    theta = np.cumsum(np.random.default_rng(0).normal(size=(4, 500, 1)), axis=1)
    found = by_row(findings(Draws(theta, {"lp": theta[..., 0]}, "nuts")))
    assert not found["ess_parameters"].good
    assert found["ess_parameters"].value < 100


def test_divergences_and_cut_trajectories_are_counted():
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[0, :3] = True
    found = by_row(findings(sampled(diverging=diverging, reached_max_treedepth=~diverging)))
    assert found["divergences"].value == 3
    assert not found["divergences"].good
    assert found["cut_trajectories"].value == 1997


def test_an_approximation_reports_its_trust():
    good = by_row(findings(laplace(Gaussian(), np.zeros(5), random_state=0)))
    bad = by_row(findings(laplace(HeavyTailed(freedom=1.0), np.zeros(5), random_state=0)))
    assert good["pareto_k"].good
    assert not bad["pareto_k"].good
    assert "refine('nuts')" in bad["pareto_k"].sentence


@pytest.mark.parametrize("method", [laplace, advi])
@pytest.mark.parametrize("freedom", [2.0, 10.0])
def test_copies_in_a_resample_are_one_draw(method, freedom):
    target = HeavyTailed(freedom=freedom, dimension=8)
    draws = method(target, np.zeros(8), draws=500, resample=True, random_state=0)
    worth = draws.attributes["importance_share"] * draws.n_draws
    assert worth < draws.n_draws
    found = by_row(findings(draws))
    for row in ("ess_log_posterior", "ess_parameters"):
        assert found[row].value <= worth
        assert f"worth {worth:.0f}" in found[row].sentence


def test_draws_without_copies_are_counted_as_they_are():
    draws = laplace(HeavyTailed(freedom=2.0), np.zeros(5), draws=500, random_state=0)
    found = by_row(findings(draws))
    assert draws.worth == draws.n_draws
    assert found["ess_parameters"].value > draws.attributes["importance_share"] * draws.n_draws
    assert "Copies" not in found["ess_parameters"].sentence


def test_indefinite_directions_are_reported():
    found = by_row(findings(laplace(Saddle(), np.array([0.0, 1.0]), random_state=0)))
    assert found["indefinite_directions"].value == 1
    assert not found["indefinite_directions"].good


def test_label_switching_shows_before_relabelling_only():
    target = Mixture()
    draws = laplace(target, target.start(), draws=200, random_state=0)
    theta = draws.theta.copy()
    for draw in range(200):
        theta[0, draw] = target.permute(theta[0, draw], np.array([2, 0, 1, 4, 3]))
    raw = Draws(theta, draws.stats, "nuts")
    found = by_row(findings(relabel(target, raw, target.start()), raw=raw))
    assert found["rhat_parameters_raw"].value > 1.3
    assert found["rhat_parameters"].value < 1.02


def test_class_probabilities_are_compared_with_the_map():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(2), size=(4, 500, 6))
    reference = probabilities.mean(axis=(0, 1))
    reference[2] += 0.1, -0.1
    draws = sampled()
    found = by_row(findings(draws, probabilities=probabilities, map_probabilities=reference))
    assert found["map_difference"].value == pytest.approx(0.1)
    assert found["map_difference"].good
    both = {"probabilities": probabilities, "map_probabilities": reference.copy()}
    both["map_probabilities"][2] += 0.02, -0.02
    bad = by_row(findings(draws, **both))["map_difference"]
    assert not bad.good
    assert "More than 0.1" in bad.sentence
    assert by_row(findings(draws, **both, reports_mean=True))["map_difference"].good
    assert found["rhat_class_probabilities"].good
    probabilities[1, :, 4] = 1, 0
    assert not by_row(findings(draws, probabilities=probabilities))["rhat_class_probabilities"].good


def test_an_interrupted_run_is_said_to_be_one():
    draws = sampled()
    found = by_row(findings(Draws(draws.theta, draws.stats, "nuts", complete=False)))
    assert not found["draws"].good
    assert "Interrupted" in found["draws"].sentence


def test_a_point_has_no_r_hat():
    target = Mixture()
    found = findings(point(target, target.start()))
    assert [finding.row for finding in found] == ["draws"]


def test_table_has_one_sentence_a_row():
    found = findings(sampled())
    frame = table(found)
    assert list(frame.columns) == ["row", "value", "good", "sentence"]
    assert frame["good"].tolist() == [one.good for one in found]
    assert frame["row"].is_unique
    assert frame["value"].dtype == float
    assert frame["sentence"].str.endswith(".").all()


def test_what_never_moves_has_no_r_hat():
    assert np.isnan(rhat(np.ones((4, 100, 3))))
    assert np.isnan(effective_draws(np.ones((4, 100, 3)), "bulk"))


def test_figures_do_not_depend_on_labels():
    target = Mixture()
    draws = laplace(target, target.start(), draws=50, random_state=0)
    figures = [
        [f.value for f in findings(relabel(target, one, target.start()))]
        for one in (draws, permuted(target, draws, 3))
    ]
    np.testing.assert_array_equal(*figures)


def test_a_map_that_did_not_converge_is_bad():
    assert judge_map("It stopped rising.", True) == Finding(
        "map_converged", 1, "It stopped rising.", True
    )
    assert not judge_map("max_iter was reached.", False).good


def test_a_variational_search_is_reported():
    target = Mixture()
    short = by_row(findings(advi(target, target.start(), draws=50, max_iter=1, random_state=0)))
    assert not short["variational_slope"].good
    assert "still rises" in short["variational_slope"].sentence
    whole = by_row(findings(advi(target, target.start(), draws=50, random_state=0)))
    assert whole["variational_slope"].good
    assert 0 < whole["variational_error"].value < 1


@pytest.mark.parametrize(
    ("figures", "good", "words"),
    [
        ((0.5, 0.3), True, "light tail"),
        ((1.2, 0.97), True, "97.0% of as many"),
        ((1.2, 0.5), False, "refine('nuts')"),
        ((np.inf, 0.5), False, "refine('nuts')"),
        ((-np.inf, 1.0), True, "light tail"),
        ((np.nan, 0.9), False, "25 or more"),
    ],
)
def test_a_heavy_tail_is_bad_unless_the_weights_hardly_differ(figures, good, words):
    [found] = judge_approximation(dict(zip(("pareto_k", "importance_share"), figures, strict=True)))
    assert found.good is good
    assert words in found.sentence


def test_one_warning_lists_what_is_bad_and_what_to_do():
    diverging = np.ones((4, 500), dtype=bool)
    found = findings(sampled(shift=3.0, diverging=diverging))
    with pytest.warns(PosteriorWarning) as caught:
        warn(found)
    [warning] = caught
    text = str(warning.message)
    assert [line.split(" = ")[0] for line in text.splitlines()[1:]] == [
        one.row for one in found if not one.good
    ]
    assert "raise target_accept" in text


def test_good_findings_do_not_warn():
    warn(findings(sampled()))


def test_sentences_are_shown_whole():
    frame = table(findings(sampled(shift=3.0)))
    for text in (repr(frame), frame._repr_html_(), repr(frame[frame["value"] > 1])):
        words = " ".join(text.split())
        assert "The chains disagree on parameters, relabelled (more than 1.02): draw" in words
        assert "..." not in text
    assert max(map(len, repr(frame).splitlines())) <= 100
    assert repr(frame[["row", "value"]]).startswith("    ")  # any other table is pandas' own
