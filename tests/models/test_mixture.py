"""The declared density."""

from __future__ import annotations

from dataclasses import replace

import jaxtyping
import numpy as np
import pymc as pm
import pytest
from scipy import stats

from bayesrbf import MixtureDensity, MixturePrior
from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.models.mixture import declare_hybrid_mixture, declare_mixture, observe_mixture
from tests.families.hybrid.density_tables import point, real_table
from tests.models.configurations import Configuration, compile_graph
from tests.oracles import MixtureOracle

DENSITY = Configuration("tied", "two", False, True, True, False, False, 3, 1)


def declare(**options: object) -> pm.Model:
    return declare_mixture(
        DENSITY.observations, DENSITY.specification, DENSITY.hyperparameters, **options
    )


@pytest.mark.slow
def test_a_density_is_the_hybrid_of_one_class() -> None:
    density, hybrid = declare(), DENSITY.declare()
    assert [v.name for v in density.free_RVs] == [v.name for v in hybrid.free_RVs]
    assert density.named_vars_to_dims == hybrid.named_vars_to_dims
    point = density.initial_point(0)
    values = [m.compile_logp(mode="FAST_COMPILE")(point) for m in (density, hybrid)]
    assert values[0] == values[1]


def test_names_become_coordinates() -> None:
    model = declare(
        feature_names=["age", "weight", "height"],
        categorical_names=["sex", "smoker"],
        level_names=[["f", "m", "x"], [False, True]],
        obs_names=[f"row {n}" for n in range(12)],
    )
    coords = {dim: list(values) for dim, values in model.coords.items()}
    assert coords["feature"] == coords["feature_bis"] == ["age", "weight", "height"]
    assert coords["precision_entry"] == ["weight,age", "height,age", "height,weight"]
    assert coords["column"] == ["label", "age", "weight", "height", "sex", "smoker"]
    assert coords["level_0"] == ["f", "m", "x"]
    assert coords["level_1"] == [False, True]
    assert coords["obs"][3] == "row 3"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a"]}, "feature_names must have 3 entries; received 1"),
        ({"obs_names": ["a"]}, "obs_names must have 12 entries; received 1"),
        ({"level_names": [["a"], ["b"]]}, r"level_names\[0\] must have 3 entries; received 1"),
        ({"level_names": [["a"]]}, "level_names must list the levels of 2 .* received 1"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare(**options)


def test_an_unknown_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # The checked annotations of the test-suite would refuse it before the function does.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"latent must be one of .* received 'hidden'"):
        declare(latent="hidden")


def test_several_classes_are_sent_to_the_hybrid() -> None:
    several = Configuration("full", "one", False, False, False, False, False, 3, 2)
    with pytest.raises(ValueError, match="use declare_hybrid_mixture"):
        declare_mixture(several.observations, several.specification, several.hyperparameters)


def test_rows_of_another_structure_are_refused() -> None:
    other = Configuration("tied", "two", False, True, False, False, False, 3, 1)
    labelled = replace(DENSITY.observations, labels=np.ones(12, int))
    for rows, prior, message in (
        (other.observations, DENSITY.hyperparameters, "observations must have 3 real and 2 cat"),
        (labelled, DENSITY.hyperparameters, "labels must be below n_classes = 1; received 1"),
        (DENSITY.observations, other.hyperparameters, "hyperparameters must be resolved for 3"),
    ):
        with pytest.raises(ValueError, match=message):
            declare_hybrid_mixture(rows, DENSITY.specification, prior)


@pytest.mark.slow
# A simplex of one level has no coordinate, which PyTensor warns of when it differentiates.
@pytest.mark.filterwarnings("ignore:grad method was asked:UserWarning")
def test_a_column_of_one_level_and_a_column_without_a_cell_are_sound() -> None:
    rows = Observations(
        real=np.column_stack([np.arange(4.0), np.full(4, np.nan)]),
        codes=np.array([[0], [0], [-1], [0]]),
        labels=np.zeros(4, int),
        weights=np.ones(4),
    )
    specification = MixtureSpecification(2, (1,), (0,), "full")
    units = Standardisation(np.array([1.5, 0.0]), np.ones(2))
    prior = MixturePrior().resolve(specification, units, (np.ones(1),))
    graph = compile_graph(declare_mixture(rows, specification, prior))
    theta = np.linspace(-1, 1, sum(int(np.prod(shape)) for shape in graph.shapes.values()))
    found = graph.at(theta)
    expected = MixtureOracle(rows, specification, prior).log_posterior(graph.constrained(theta))
    assert float(found.value) == pytest.approx(expected, rel=1e-10)
    assert np.all(np.isfinite(found.gradient))


def pointwise(cells: np.ndarray, *parameters: object) -> np.ndarray:
    """Log densities of rows that are observed in a model of one's own."""
    with pm.Model() as model:
        rows = observe_mixture("rows", cells, *parameters)
    return model.compile_fn(model.logp(rows, sum=False), mode="FAST_COMPILE")({})[0]


@pytest.mark.parametrize("shape", ["full", "diag"])
def test_rows_in_a_model_of_ones_own_have_the_density_of_the_numerics(shape):
    cells = real_table(missing=0.3)
    cells[3] = np.nan
    density = MixtureDensity(
        2, covariance_type=shape, column_transforms=None, point_masses=None, random_state=0
    )
    fitted = point(density.fit(cells))
    parameters = fitted["weights"], fitted["means"], fitted["covariances"]
    expected = density.score_samples(cells)
    np.testing.assert_allclose(pointwise(cells, *parameters), expected, rtol=1e-9, atol=1e-9)
    # Rows of two centres, the second of which has the components in another order.
    centre = np.arange(len(cells)) % 2
    each = [np.stack([one, one[::-1]])[centre] for one in parameters]
    np.testing.assert_allclose(pointwise(cells, *each), expected, rtol=1e-9, atol=1e-9)


def test_rows_of_centres_under_a_hierarchical_prior_have_the_density_of_brute_force():
    rng = np.random.default_rng(3)
    centre, cells = np.arange(12) % 3, rng.normal(size=(12, 3))
    cells[rng.random(cells.shape) < 0.4] = np.nan
    cells[5] = np.nan
    weights, kinds = np.array([0.4, 0.6]), np.array([[-1.0], [1.0]])
    with pm.Model() as model:
        common = pm.Normal("common", kinds, 1.0, shape=(2, 3))
        spread = pm.HalfNormal("spread", 1.0)
        means = pm.Normal("means", common, spread, shape=(3, 2, 3))
        scale = pm.HalfNormal("scale", 1.0, shape=(2, 3))
        covariances = (0.5 + 0.5 * np.eye(3)) * scale[:, :, None] * scale[:, None]
        observe_mixture("rows", cells, weights, means[centre], covariances)
    density = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    for _ in range(2):
        at = {"common": rng.normal(size=(2, 3)), "means": rng.normal(size=(3, 2, 3))}
        scales = {"spread": rng.uniform(0.5, 2.0), "scale": rng.uniform(0.5, 2.0, (2, 3))}
        expected = stats.norm.logpdf(at["common"], kinds).sum()
        expected += stats.norm.logpdf(at["means"], at["common"], scales["spread"]).sum()
        expected += sum(stats.halfnorm.logpdf(one).sum() for one in scales.values())
        for row, own in zip(cells, at["means"][centre], strict=True):
            seen, p = np.flatnonzero(~np.isnan(row)), 1.0
            if seen.size:
                outer = scales["scale"][:, :, None] * scales["scale"][:, None]
                parts = zip(own, (0.5 + 0.5 * np.eye(3)) * outer, strict=True)
                normals = [
                    stats.multivariate_normal(m[seen], s[np.ix_(seen, seen)]) for m, s in parts
                ]
                p = weights @ [normal.pdf(row[seen]) for normal in normals]
            expected += np.log(p)
        logs = {f"{name}_log__": np.log(value) for name, value in scales.items()}
        assert float(density(at | logs)) == pytest.approx(expected, rel=1e-10)


def test_rows_in_a_model_of_ones_own_draw_what_is_observed():
    cells = np.tile([[0.0, 0.0], [0.0, np.nan]], (500, 1))
    weights, means = np.array([0.3, 0.7]), np.array([[0.0, 1.0], [4.0, -1.0]])
    covariances = np.array([[[1.0, 0.5], [0.5, 2.0]], [[0.5, 0.0], [0.0, 0.5]]])
    with pm.Model():
        rows = observe_mixture("rows", cells, weights, means, covariances)
    drawn = pm.draw(rows, 4, random_seed=0, mode="FAST_COMPILE")
    assert (drawn[:, 1::2, 1] == 0).all()
    whole = drawn[:, ::2].reshape(-1, 2)
    mean = weights @ means
    second = np.einsum("k,kij->ij", weights, covariances + means[:, :, None] * means[:, None])
    spread = np.sqrt(np.diag(second - np.outer(mean, mean)) / len(whole))
    assert (np.abs(whole.mean(axis=0) - mean) < 4.9 * spread).all()
    np.testing.assert_allclose(whole.T @ whole / len(whole), second, rtol=0.15)


@pytest.mark.parametrize("cells", [np.zeros(3), np.array([[np.inf, 0.0]])])
def test_rows_in_a_model_of_ones_own_are_a_table_of_numbers(cells):
    with (
        pm.Model(),
        pytest.raises(ValueError, match=r"observe_mixture\('rows', cells, ...\) needs"),
    ):
        observe_mixture("rows", cells, [1.0], np.zeros((1, 2)), np.eye(2)[None])


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("weights", np.array(1.0)),
        ("means", np.zeros(2)),
        ("means", np.zeros((5, 2, 2))),  # of a centre that was not looked up for every row
        ("covariances", np.ones((2, 2))),
        ("covariances", np.ones((2, 2, 3))),
    ],
)
def test_parameters_of_another_shape_are_refused_by_name(argument, value):
    given = {"weights": [0.5, 0.5], "means": np.zeros((2, 2)), "covariances": np.eye(2)[None]}
    with pm.Model(), pytest.raises(ValueError, match=rf"{argument}=\.\.\.\) must have shape"):
        observe_mixture("rows", np.zeros((3, 2)), **given | {argument: value})
