"""Counts and ordered levels from the user's frame to every result of a mixture, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MixtureDensity
from bayesrbf.numerics.mixture.mixture_points import component_covariances
from bayesrbf.records import names
from tests.cases import generative

STAGES = ["I", "II", "III", "IV"]
ASKED = {"count_features": ["visits"], "ordinal_features": ["stage", "pain"]}


def clinic(n_rows: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Counts and levels that differ between two classes, with holes."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n_rows) < 0.5
    stage = rng.binomial(3, np.where(ill, 0.7, 0.3))
    X = pd.DataFrame(
        {
            "age": rng.normal(40 + 10 * ill, 8.0),
            "visits": rng.negative_binomial(1.5, np.where(ill, 0.15, 0.4)).astype(float),
            "stage": pd.Categorical(np.array(STAGES)[stage], STAGES, ordered=True),
            "sex": pd.Categorical(rng.choice(["f", "m"], n_rows)),
            "pain": rng.binomial(4, np.where(ill, 0.6, 0.4)).astype(float),
        }
    )
    X.loc[::5, "visits"] = np.nan
    X.loc[1::6, "stage"] = None
    X.loc[2::7, "pain"] = np.nan
    return X, np.where(ill, "ill", "well")


@pytest.fixture(scope="module")
def density() -> MixtureDensity:
    return MixtureDensity(2, covariance_type="diag", random_state=0, **ASKED).fit(clinic()[0])


def test_log_densities_are_those_of_a_loop_over_the_columns(density):
    X = clinic()[0].iloc[:12]
    mixture = density.model_
    point = mixture.parameters.in_units(mixture.units)
    (counts, levels), values = mixture.specification.further, point.further
    sds = np.sqrt(np.einsum("kii->ki", component_covariances(point, mixture.specification)))
    joint = np.tile(np.log(point.weights), (len(X), 1))
    for n, row in enumerate(X.itertuples(index=False)):
        for k in range(2):
            joint[n, k] += stats.norm(point.means[k, 0], sds[k, 0]).logpdf(row.age)
            joint[n, k] += np.log(point.category_probabilities[0][k, "fm".index(row.sex)])
            if not np.isnan(row.visits):
                mean, spread = (values[key][k, 0] for key in list(values)[:2])
                law = stats.nbinom(1 / spread, 1 / (1 + mean * spread))
                joint[n, k] += law.logpmf(row.visits)
            for j, cell in enumerate((row.stage, row.pain)):
                if cell != cell:
                    continue
                location, slope = (values[key][k, j] for key in list(values)[2:])
                edges = slope * np.array([-np.inf, *levels.cuts[j], np.inf])
                code = STAGES.index(cell) if j == 0 else int(cell)
                joint[n, k] += np.log(np.diff(stats.logistic(location).cdf(edges))[code])
    assert counts.columns == ("visits",)
    np.testing.assert_allclose(density.score_samples(X), logsumexp(joint, axis=1), rtol=1e-9)
    np.testing.assert_allclose(
        density.transform(X), np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-9
    )


def test_filled_and_drawn_tables_can_be_read_again(density):
    X = clinic()[0]
    tables = [density.impute(X), *density.impute(X, draws=2), density.sample(50)]
    for table in tables:
        assert not table.isna().any().any()
        assert (table["visits"] == table["visits"].round()).all()
        assert table["stage"].dtype == X["stage"].dtype
        assert set(table["pain"]) <= {0, 1, 2, 3, 4}
        assert np.isfinite(density.score_samples(table)).all()
    for column in X:
        known = X[column].notna()
        assert (tables[0].loc[known, column] == X.loc[known, column]).all()


def test_masks_take_counts_and_levels_away(density):
    X = clinic()[0]
    masked = MixtureDensity(2, missingness="informative", random_state=0, **ASKED).fit(X)
    drawn = masked.sample(400)
    for name in ("visits", "stage", "pain"):
        assert drawn[name].isna().mean() == pytest.approx(X[name].isna().mean(), abs=0.1)
    assert drawn["age"].notna().all()


def test_a_saved_density_says_the_same(density, tmp_path: Path):
    X = clinic()[0]
    density.save(tmp_path / "density.safetensors")
    loaded = bayesrbf.load(tmp_path / "density.safetensors")
    np.testing.assert_array_equal(loaded.score_samples(X), density.score_samples(X))
    assert loaded.columns_ == density.columns_
    again = loaded.sample(5)
    assert np.isfinite(density.score_samples(again)).all()


def test_weights_rows_and_columns_in_any_order():
    X = clinic()[0]
    options = {"covariance_type": "diag", "random_state": 0, "tol": 1e-9, "n_init": 2} | ASKED
    expected = MixtureDensity(2, **options).fit(X).score_samples(X)
    turned = X.sample(frac=1.0, random_state=0)[["pain", "sex", "stage", "age", "visits"]]
    twice = pd.concat([turned, turned])
    other = MixtureDensity(2, **options).fit(twice, sample_weight=np.full(len(twice), 0.5))
    found = pd.Series(other.score_samples(turned), turned.index)[X.index]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_graph_has_the_columns_and_the_numerics_agree(density):
    model = density.declare()
    assert list(model.coords[names.COUNT_COLUMN]) == ["visits"]
    assert list(model.coords[names.ORDINAL_COLUMN]) == ["stage", "pain"]
    log_posterior = density.model_.log_posterior(density.rows_)
    theta = density.model_.point(log_posterior)
    function = model.compile_fn(
        model.logp(), inputs=model.value_vars, mode="FAST_COMPILE", point_fn=False
    )
    point = model.initial_point(0)
    sizes = [point[value.name].size for value in model.value_vars]
    parts = np.split(theta, np.cumsum(sizes)[:-1])
    shaped = [
        part.reshape(point[value.name].shape)
        for part, value in zip(parts, model.value_vars, strict=True)
    ]
    assert float(function(*shaped)) == pytest.approx(log_posterior.value_and_gradient(theta)[0])


@pytest.mark.parametrize(
    "method", ["laplace", *(pytest.param(m, marks=pytest.mark.slow) for m in ("advi", "nuts"))]
)
def test_posteriors_have_the_variables(method):
    X = clinic(60)[0]
    fitted = MixtureDensity(1, random_state=0, **ASKED).fit(X)
    fitted.refine(method, draws=30, chains=1, **({"tune": 100} if method == "nuts" else {}))
    posterior = fitted.posterior_.posterior
    assert posterior[names.COUNT_MEANS].dims == ("chain", "draw", "component", "count_column")
    assert list(posterior.coords[names.ORDINAL_COLUMN].to_numpy()) == ["stage", "pain"]
    assert (posterior[names.COUNT_DISPERSIONS] > 0).all()
    assert not fitted.impute(X, draws=2)[1].isna().any().any()


def test_gibbs_refuses_in_the_words_of_the_law(density):
    with pytest.raises(ValueError, match="CountLaw does not have: use inference='nuts'"):
        density.refine("gibbs")


def test_candidates_are_compared_on_all_columns():
    X = clinic(80)[0]
    chosen = MixtureDensity("cv", random_state=0, **ASKED).fit(X)
    assert all(np.isfinite(one.log_density) for one in chosen.candidates_)
    assert chosen.model_.specification.further[0].columns == ("visits",)


def test_counts_and_levels_alone_tell_classes_apart():
    X, y = clinic(300)
    X = X[["visits", "stage", "pain"]]
    model = HybridMixtureClassifier(random_state=0, **ASKED).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.75
    assert model.predict_proba(X[200:]).shape == (100, 2)
    drawn, labels = model.sample(20, label="ill")
    assert set(labels) == {"ill"}
    assert np.isfinite(model.score_samples(drawn)).all()


def test_a_classifier_of_the_likelihood_is_bayes_rule_on_two_densities():
    X, y = clinic()
    model = generative(random_state=0, **ASKED).fit(X, y)
    scores = []
    for label in model.classes_:
        mine = MixtureDensity(random_state=0, **ASKED).fit(X[y == label])
        # The priors are centred on all rows: the variables of the parts are not quite the same.
        scores.append(mine.score_samples(X) + np.log((y == label).mean()))
    found = np.array(scores).T
    agree = model.predict(X) == model.classes_[found.argmax(axis=1)]
    assert agree.mean() > 0.95


def test_a_column_that_is_no_count_stops_the_fit():
    X = clinic()[0]
    X.loc[3, "visits"] = -2.0
    with pytest.raises(ValueError, match="'visits' is among count_features"):
        MixtureDensity(**ASKED).fit(X)


def test_cells_beside_counts_are_judged_with_what_these_say() -> None:
    """A count tells of the component, and so of the real cell; hidden, it tells nothing."""
    rng = np.random.default_rng(0)
    group = rng.random(300) < 0.5
    X = np.column_stack([rng.poisson(np.where(group, 20, 1)), rng.normal(8.0 * group, 1.0)])
    model = MixtureDensity(2, count_features=[0], random_state=0, trim=True).fit(X)
    found = model.surprise([[20, 8.0], [20, 0.0], [np.nan, 0.0]])
    assert np.isnan(found["log_tail"].sel(column="x0")).all()
    usual, wrong, alone = np.exp(found["log_tail"].sel(column="x1").to_numpy())
    assert usual > 0.3
    assert wrong < 1e-3
    assert alone > 0.1
    assert ((model.novelty(X) >= 0) & (model.novelty(X) <= 1)).all()
