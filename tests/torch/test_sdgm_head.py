"""The head equals densities, is silent about nothing it drops, and survives half precision."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import nn
from torch.nn.functional import cross_entropy

from bayesrbf.torch.sdgm_head import Covariance, SDGMHead, factors, monomials


@pytest.fixture(autouse=True)
def _reproducible() -> Iterator[None]:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(n_threads)


def make_head(covariance: Covariance = "full", dtype: torch.dtype = torch.float64) -> SDGMHead:
    return SDGMHead(3, n_classes=2, n_components=2, covariance=covariance).to(dtype)


def quadratic_weights(mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Of log N(x; mean, precision^-1) in the monomials [1, x, x_i x_j (i <= j)]."""
    dimension = len(mean)
    constant = multivariate_normal(mean, np.linalg.inv(precision)).logpdf(np.zeros(dimension))
    first, second = np.triu_indices(dimension)
    products = -precision[first, second] * np.where(first == second, 0.5, 1.0)
    return np.concatenate([[constant], precision @ mean, products])


def random_mixture(seed: int, *, diagonal: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Means and precisions of 2 classes times 2 components in 3 dimensions."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(4, 3))
    roots = rng.normal(size=(4, 3, 6))
    precisions = np.einsum("kij,klj->kil", roots, roots) / 6 + 0.2 * np.eye(3)
    return list(zip(means, precisions * np.eye(3) if diagonal else precisions, strict=True))


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_posterior_of_normal_components_is_bayes(covariance: Covariance) -> None:
    """Any component may be the reference: its weights are subtracted from all."""
    components = random_mixture(1, diagonal=covariance == "diag")
    prior = np.array([[0.3, 0.7], [0.6, 0.4]])
    weights = np.array([quadratic_weights(*component) for component in components])
    if covariance == "diag":
        weights = weights[:, [0, 1, 2, 3, 4, 7, 9]]
    head = make_head(covariance).eval()
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(weights[:-1] - weights[-1]))
        head.component_logits.copy_(torch.from_numpy(np.log(prior)) + 1.5)  # a shift is no change
    x = np.random.default_rng(2).normal(size=(20, 3))
    densities = [multivariate_normal(m, np.linalg.inv(p)).pdf(x) for m, p in components]
    joint = prior * np.stack(densities, axis=-1).reshape(20, 2, 2)
    joint /= joint.sum(axis=(1, 2), keepdims=True)
    points = torch.from_numpy(x)
    np.testing.assert_allclose(head.log_joint(points).exp().detach(), joint, rtol=1e-10)
    np.testing.assert_allclose(head(points).softmax(dim=-1).detach(), joint.sum(axis=2), rtol=1e-10)


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_monomials_are_the_products(covariance: Covariance) -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    pairs = [(i, i) for i in range(4)]
    if covariance == "full":
        pairs = list(itertools.combinations_with_replacement(range(4), 2))
    expected = [np.ones((2, 5)), *np.moveaxis(x, -1, 0)]
    expected += [x[..., i] * x[..., j] for i, j in pairs]
    found = monomials(torch.from_numpy(x), factors(4, covariance))
    np.testing.assert_array_equal(found, np.stack(expected, axis=-1))


@pytest.mark.parametrize("covariance", ["diag", "full"])
@pytest.mark.parametrize("training", [False, True])
def test_gradients_are_those_of_differences(covariance: Covariance, training: bool) -> None:
    head = make_head(covariance).train(training)
    head.kept[0] = False  # a whole component: its variance is zero
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    parameters = [head.weight, head.log_variance, head.component_logits]

    def objective(*_: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)  # the same noise at every call
        return cross_entropy(head(x), torch.tensor([0, 1, 1, 0])) + 0.1 * head.kl()

    assert torch.autograd.gradcheck(objective, (x, *parameters))


def test_samples_have_the_mean_and_variance_of_the_weights() -> None:
    """Activations sampled row by row are distributed as under sampled weights."""
    head = SDGMHead(2, n_classes=2, n_components=1, covariance="full").double()
    with torch.no_grad():
        head.log_variance.normal_(-1.0, 0.5)
    head.kept[0, 1] = False
    x = torch.tensor([0.7, -1.2], dtype=torch.float64).expand(40_000, 2)
    logits = head(x).detach()
    sampled = logits[:, 0] - logits[:, 1]  # one component each: the free activation itself
    deviation = head.kept * (head.log_variance / 2).exp()
    weights = head.kept * head.weight + deviation * torch.randn(40_000, 6, dtype=torch.float64)
    direct = weights.detach() @ monomials(x[0], head._factors)
    scale = direct.std().item()
    assert abs((sampled.mean() - direct.mean()).item()) < 5 * scale * (2 / 40_000) ** 0.5
    assert sampled.std().item() == pytest.approx(scale, rel=0.03)


def test_evaluation_is_deterministic_and_training_is_not() -> None:
    head, x = make_head(), torch.randn(3, 3, dtype=torch.float64)
    assert not torch.equal(head(x), head(x))
    head.eval()
    assert torch.equal(head(x), head(x))


def test_leading_dimensions_are_kept() -> None:
    head, x = make_head().eval(), torch.randn(2, 5, 3, dtype=torch.float64)
    flat = head.log_joint(x.reshape(10, 3))
    torch.testing.assert_close(head.log_joint(x), flat.reshape(2, 5, 2, 2))
    assert head(x[0, 0]).shape == (2,)
    assert head(x[:0]).shape == (0, 5, 2)


def drown(head: SDGMHead, where: torch.Tensor) -> None:
    """Give some weights a small mean and much noise, the others little."""
    with torch.no_grad():
        head.weight[where] *= 1e-4
        head.log_variance.fill_(-12.0)
        head.log_variance[where] = 0.0


def test_pruning_takes_the_drowned_weights_and_nothing_else() -> None:
    head = make_head()
    where = torch.rand(head.weight.shape) < 0.4
    drown(head, where)
    x = torch.randn(50, 3, dtype=torch.float64)
    head.eval()
    before, n_drowned = head(x).softmax(-1), int(where.sum())
    assert head.nnz() == where.numel() - n_drowned
    assert head.prune() == n_drowned
    torch.testing.assert_close(head(x).softmax(-1), before, rtol=0, atol=2e-3)
    torch.testing.assert_close(head.kept, ~where)
    assert (head.nnz(), head.prune()) == (where.numel() - n_drowned, 0)


def test_pruned_weights_are_zero_have_no_gradient_and_cost_nothing() -> None:
    head = make_head()
    where = torch.zeros(head.weight.shape, dtype=torch.bool)
    where[0], where[1, 2] = True, True
    drown(head, where)
    head.prune()
    alone = make_head()
    alone.load_state_dict(head.state_dict())
    with torch.no_grad():
        alone.weight[where] = 7.0
    x = torch.randn(8, 3, dtype=torch.float64)
    torch.testing.assert_close(alone.eval()(x), head.eval()(x))
    torch.testing.assert_close(alone.kl(), head.kl())
    (cross_entropy(head.train()(x), torch.zeros(8, dtype=torch.long)) + head.kl()).backward()
    assert head.weight.grad is not None
    assert head.log_variance.grad is not None
    assert not head.weight.grad[where].any()
    assert not head.log_variance.grad[where].any()
    assert head.weight.grad[~where].all()


def test_a_head_pruned_to_nothing_predicts_its_component_weights() -> None:
    head = make_head()
    drown(head, torch.ones(head.weight.shape, dtype=torch.bool))
    head.prune()
    loss = cross_entropy(head(torch.zeros(1, 3)), torch.tensor([0])) + head.kl()
    loss.backward()
    assert head.nnz() == 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in head.parameters())
    torch.testing.assert_close(loss.item(), np.log(2.0))


def test_state_dict_carries_the_pruning() -> None:
    head = make_head()
    drown(head, torch.rand(head.weight.shape) < 0.5)
    head.prune()
    other = make_head()
    assert set(head.state_dict()) == {"weight", "log_variance", "component_logits", "kept"}
    other.load_state_dict(head.state_dict())
    x = torch.randn(6, 3, dtype=torch.float64)
    assert torch.equal(other.eval()(x), head.eval()(x))
    assert other.nnz() == head.nnz()
    other.reset_parameters()
    assert other.nnz() == other.weight.numel()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_computes_in_single_precision(dtype: torch.dtype) -> None:
    """Squares of 300 overflow float16; the head's own arithmetic does not."""
    head = make_head(dtype=torch.float32)
    network = nn.Sequential(nn.Linear(4, 3), head)
    x = 300 * torch.randn(5, 4)
    with torch.autocast("cpu", dtype=dtype):
        features = network[0](x)
        logits = network(x)
        joint = head.eval().log_joint(features)
        loss = cross_entropy(logits, torch.tensor([0, 1, 0, 1, 0])) + head.kl()
    assert (features.dtype, logits.dtype, joint.dtype) == (dtype, torch.float32, torch.float32)
    torch.testing.assert_close(joint, head.log_joint(features.float()))
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_lose_nothing_on_the_way(dtype: torch.dtype) -> None:
    head = make_head(dtype=dtype).eval()
    wide = make_head()
    wide.load_state_dict(head.state_dict())
    x = torch.randn(5, 3, dtype=dtype)
    torch.testing.assert_close(head(x), wide.eval()(x.double()).float(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head.kl(), wide.kl().float(), rtol=1e-4, atol=1e-4)


def test_compiled_graph_has_no_break() -> None:
    head, x = make_head().eval(), torch.randn(4, 3, dtype=torch.float64)
    graph = torch.export.export(head, (x,)).module()
    torch.testing.assert_close(graph(x), head(x))


def test_shapes_are_known_without_numbers() -> None:
    """On the device of shape inference, which has no autocast."""
    head = make_head().to("meta")
    assert head(torch.empty(7, 3, device="meta")).shape == (7, 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_gpu_agrees_with_cpu(dtype: torch.dtype) -> None:
    head = make_head(dtype=torch.float32).eval()
    x = torch.randn(64, 3)
    expected, divergence = head.log_joint(x).detach(), head.kl().detach()
    head.cuda()
    with torch.autocast("cuda", dtype=dtype, enabled=dtype != torch.float32):
        found = head.log_joint(x.cuda())
        loss = cross_entropy(head.train()(x.cuda()), torch.zeros(64, dtype=torch.long).cuda())
    loss.backward()
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(head.kl().cpu(), divergence, rtol=1e-4, atol=1e-4)
    assert head.prune() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2), r"in_features=.*at least 1; received 0"),
        ((2, 1), r"n_classes=.*at least 2; received 1"),
        ((2, 2, 0), r"n_components=.*at least 1; received 0"),
    ],
)
def test_numbers_too_small_are_named(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SDGMHead(*arguments)


def test_wrong_width_is_named() -> None:
    with pytest.raises(ValueError, match=r"in_features=3; received x of shape \(5, 4\)"):
        make_head()(torch.zeros(5, 4))


def test_representation_is_the_call() -> None:
    head = make_head("diag")
    assert repr(head) == "SDGMHead(3, n_classes=2, n_components=2, covariance='diag')"
