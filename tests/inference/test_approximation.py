"""What Laplace and the variational fit share: interrupts, progress, bounded curvature."""

from __future__ import annotations

import numpy as np
import pytest
import rich

from bayesrbf.inference.draws import bounded_curvature
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.variational import advi
from tests.inference.targets import Mixture

METHODS = [laplace, advi]
every_method = pytest.mark.parametrize("method", METHODS)
SIZE = {"draws": 20, "chains": 2, "random_state": 0}


class Interrupted(Mixture):
    """Ctrl-C at one of the evaluations."""

    def __init__(self, at: float = np.inf) -> None:
        super().__init__()
        self.at, self.calls = at, 0

    def value_and_gradient(self, theta, jacobian=True):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return super().value_and_gradient(theta, jacobian)


@every_method
def test_an_interrupt_keeps_what_was_drawn(method):
    whole = Interrupted()
    expected = method(whole, whole.start(), **SIZE)
    assert expected.complete
    # 40 draws come last, and the 14th of them is interrupted: six of each chain are whole.
    target = Interrupted(at=whole.calls - 26)
    draws = method(target, target.start(), **SIZE)
    assert not draws.complete
    np.testing.assert_array_equal(draws.theta, expected.theta[:, :6])
    for name in ("lp", "log_q"):
        np.testing.assert_array_equal(draws.stats[name], expected.stats[name][:, :6])


@every_method
def test_an_interrupt_before_the_first_draw_is_an_interrupt(method):
    whole = Interrupted()
    method(whole, whole.start(), **SIZE)
    for at in (5, whole.calls - 39):
        target = Interrupted(at=at)
        with pytest.raises(KeyboardInterrupt):
            method(target, target.start(), **SIZE)


@every_method
def test_progress_is_shown_when_asked_for_and_changes_no_bit(method, capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")  # rich draws no bar on a terminal that cannot move back,
    # and asks what it is when it first prints, which another test may have made it do
    monkeypatch.setattr(rich.get_console(), "is_interactive", True)
    target = Mixture()
    quiet = method(target, target.start(), **SIZE)
    assert capsys.readouterr().out == ""
    shown = method(target, target.start(), progress_bar=True, **SIZE)
    text = capsys.readouterr().out
    assert "Drawing" in text
    assert ("Linear response" in text) == (method is advi)
    np.testing.assert_array_equal(quiet.theta, shown.theta)


@every_method
def test_resampling_repeats_draws_and_keeps_their_densities(method):
    target = Mixture()
    draws = method(target, target.start(), resample=True, **SIZE)
    thetas = draws.theta.reshape(40, -1)
    assert len(np.unique(thetas, axis=0)) < 40
    expected = [target.value_and_gradient(theta)[0] for theta in thetas]
    np.testing.assert_array_equal(draws.stats["lp"].ravel(), expected)
    assert draws.attributes["resampled"] == 1


@every_method
def test_same_seed_same_bits_and_another_seed_others(method):
    target = Mixture()
    one, two, three = (method(target, target.start(), draws=50, random_state=s) for s in (5, 5, 6))
    np.testing.assert_array_equal(one.theta, two.theta)
    assert not np.array_equal(one.theta, three.theta)


@pytest.mark.parametrize("name", ["draws", "chains"])
@every_method
def test_nothing_to_draw_is_refused(method, name):
    with pytest.raises(ValueError, match=f"{name}=.* at least 1; received 0"):
        method(Mixture(), Mixture().start(), **{**SIZE, name: 0})


def test_bounded_curvature_is_the_inverse_of_a_spread_that_exists():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    given = np.array([-9.0, -0.2, 1e-12, 5.0])
    curvatures, found, indefinite = bounded_curvature((axes * given) @ axes.T)
    np.testing.assert_allclose(curvatures, [9.0, 1.0, 1.0, 5.0], rtol=1e-9)
    np.testing.assert_array_equal(indefinite, [True, True, True, False])
    np.testing.assert_allclose((found * curvatures) @ found.T @ axes[:, 3], 5 * axes[:, 3])
