"""The sparse discriminative Gaussian mixture as the last layer of a network."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import nn
from torch.nn import functional

# Quadratic features and the noise that makes their weights sparse.
#
# **Monomials** of degree at most two of a feature vector,
#
# .. math::
#     \phi(x) = [1,\; x_1, \dots, x_D,\; x_i x_j \,(i \le j)]
#
# of size 1 + D (D + 3) / 2, or with the squares :math:`x_i^2` alone, of size 1 + 2 D. The one-half
# of a quadratic form is not in the monomials but in the weights: a normal component with mean mu
# and precision P has, up to a constant, :math:`w_i = (P \mu)_i,\; w_{ii} = -P_{ii}/2,\; w_{ij} =
# -P_{ij}`.
#
# **Variational Gaussian dropout** gives every weight a noise of its own. The approximate posterior
# of a weight is :math:`q(w) = N(\theta, \sigma^2)`, the prior is log-uniform, and the divergence
# between them depends on the ratio :math:`\alpha = \sigma^2 / \theta^2` alone. It falls as alpha
# grows: a weight that the data do not need loses its mean, and at log alpha > 3, where the noise is
# four and a half times the weight, it can be set to zero.
#
# See Hayashi and Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR,
# section 2.1; and Molchanov, Ashukha and Vetrov (2017), Variational dropout sparsifies deep neural
# networks, ICML, sections 4.1 (additive noise) and 4.2 (equation 14).


Covariance = Literal["diag", "full"]
COVARIANCES: Final = ("diag", "full")

K1: Final = 0.63576
K2: Final = 1.87320
K3: Final = 1.48695
"""Coefficients of the approximate divergence: Molchanov et al. (2017), equation 14."""
LOG_ALPHA_LIMIT: Final = 10.0
PRUNING_THRESHOLD: Final = 3.0
"""log alpha above which a weight is noise: it would be dropped 19 times in 20."""


def factors(in_features: int, covariance: Covariance) -> Int[torch.Tensor, "2 product"]:
    """First and second factor of every product: the squares alone ("diag"), or all products.

    >>> factors(2, "full").tolist()
    [[0, 0, 1], [0, 1, 1]]
    >>> factors(2, "diag").tolist()
    [[0, 1], [0, 1]]
    """
    indices = {"diag": torch.arange, "full": lambda n: torch.triu_indices(n, n)}[covariance]
    return indices(in_features).expand(2, -1).clone()


def monomials(
    points: Float[torch.Tensor, "*batch coordinate"], factors: Int[torch.Tensor, "2 product"]
) -> Float[torch.Tensor, "*batch monomial"]:
    """Evaluate 1, every coordinate and the products of the chosen pairs, in this order.

    >>> monomials(torch.tensor([2.0, 3.0]), factors(2, "full")).tolist()
    [1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
    """
    first, second = factors
    ones = torch.ones_like(points[..., :1])
    return torch.cat([ones, points, points[..., first] * points[..., second]], dim=-1)


def log_alpha(
    mean: Float[torch.Tensor, "*weight"], log_variance: Float[torch.Tensor, "*weight"]
) -> Float[torch.Tensor, "*weight"]:
    r"""Ratio of noise to signal, :math:`\log \sigma^2 - 2 \log |\theta|`, within +-10.

    A weight with mean 0 has the largest.

    >>> log_alpha(torch.tensor([1.0, 0.0]), torch.tensor([-4.0, -4.0])).tolist()
    [-4.0, 10.0]
    """
    # Below the floor the limit is long reached; without it a zero has no finite gradient.
    square = mean.square().clamp_min(torch.finfo(mean.dtype).tiny)
    return (log_variance - square.log()).clamp(-LOG_ALPHA_LIMIT, LOG_ALPHA_LIMIT)


def divergence(log_alpha: Float[torch.Tensor, "*weight"]) -> Float[torch.Tensor, "*weight"]:
    r"""Kullback-Leibler divergence of each weight's posterior from the log-uniform prior, in nats.

    .. math:: -\mathrm{KL} \approx k_1 s(k_2 + k_3 \log \alpha)
        - \tfrac12 \log (1 + \alpha^{-1}) - k_1

    with s the logistic function; the additive constant is chosen so that it vanishes
    as alpha grows.

    >>> divergence(torch.tensor([-4.0, 0.0, 10.0])).numpy().round(3)
    array([2.634, 0.431, 0.   ], dtype=float32)
    """
    negative = K1 * torch.sigmoid(K2 + K3 * log_alpha) - 0.5 * functional.softplus(-log_alpha) - K1
    return -negative


# Of the activations on standardised features at the start: components differ, none is sure.
_START_SPREAD: Final = 0.3
_START_LOG_ALPHA: Final = -6.0


class SDGMHead(nn.Module):
    r"""Class logits of a Gaussian mixture per class, trained as a classifier, with few weights.

    .. math::
        p(c, m | x) = \frac{\pi_{cm} \exp(w_{cm}^\top \phi(x))}
            {\sum_{c', m'} \pi_{c'm'} \exp(w_{c'm'}^\top \phi(x))}, \qquad
        \phi(x) = [1,\; x,\; x_i x_j \,(i \le j)]

    It takes the place of a linear layer before :class:`torch.nn.CrossEntropyLoss`. Each
    weight is a normal variable with a variance of its own (variational Gaussian dropout);
    in training mode the activations are sampled (local reparametrisation), in evaluation
    mode the means are used. The objective per row is

    .. code-block:: python

        loss = cross_entropy(head(x), y) + beta * head.kl() / n_training_rows

    with beta risen from 0 to 1 over the first half of the training; then :meth:`prune`.
    A much smaller beta leaves all weights in place.

    Parameters
    ----------
    in_features : int
        Number D of features, best of mean 0 and variance 1, as
        ``nn.BatchNorm1d(D, affine=False)`` makes them: which weights can be zero depends
        on the origin, and the steps of an optimiser on the scale.
    n_classes : int
        Number of classes, at least 2.
    n_components : int
        Components of each class to start with.
    covariance : {"diag", "full"}
        Squares x_i^2 alone, or all products x_i x_j.

    Attributes
    ----------
    weight : Parameter of shape (n_classes n_components - 1, n_monomials)
        Means of the weights, class by class; the last component of the last class has none.
    log_variance : Parameter of shape (n_classes n_components - 1, n_monomials)
        Log variances of the weights.
    component_logits : Parameter of shape (n_classes, n_components)
        Their softmax over the components of a class is pi.
    kept : bool Tensor of shape (n_classes n_components - 1, n_monomials)
        Weights that have not been pruned; a buffer, so that ``state_dict`` carries it.

    Raises
    ------
    ValueError
        If a number is too small or the covariance unknown.

    Notes
    -----
    The density of x is not modelled: one vector added to all :math:`w_{cm}` changes no
    probability. This freedom is fixed by :math:`w = 0` for the last component of the last
    class. For normal components with means mu and precisions P the weights are the
    differences of :math:`(\log N(0; \mu, P^{-1}), P \mu, -P_{ii}/2, -P_{ij})` from those of
    that component; so a component's own quadratic form need not be negative.

    All is computed in single precision at least, under autocast and with half-precision
    weights too: squares of features overflow float16 at 256.

    The penalty also shrinks the weights that stay. Some further steps on the cross-entropy
    alone, in evaluation mode after :meth:`prune`, take this back.

    References
    ----------
    Hayashi and Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR,
    sections 2.1 (model) and 4.2 (as the last layer of a network).
    Molchanov, Ashukha and Vetrov (2017), Variational dropout sparsifies deep neural
    networks, ICML.
    Kingma, Salimans and Welling (2015), Variational dropout and the local
    reparameterization trick, NeurIPS.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> head = SDGMHead(2, n_classes=3, n_components=2, covariance="full")
    >>> head(torch.zeros(5, 2)).shape, head.nnz()
    (torch.Size([5, 3]), 30)
    """

    kept: Bool[torch.Tensor, "component monomial"]
    _factors: torch.Tensor

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        n_components: int = 1,
        covariance: Covariance = "diag",
    ) -> None:
        super().__init__()
        _check(in_features, n_classes, n_components, covariance)
        self.in_features = in_features
        self.n_classes = n_classes
        self.n_components = n_components
        self.covariance = covariance
        pairs = factors(in_features, covariance)
        self.register_buffer("_factors", pairs, persistent=False)
        shape = (n_classes * n_components - 1, 1 + in_features + pairs.shape[1])
        self.weight = nn.Parameter(torch.empty(shape))
        self.log_variance = nn.Parameter(torch.empty(shape))
        self.component_logits = nn.Parameter(torch.empty(n_classes, n_components))
        self.register_buffer("kept", torch.ones(shape, dtype=torch.bool))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew: small random weights with smaller noise, equal components, nothing pruned."""
        deviation = _START_SPREAD / math.sqrt(self.weight.shape[1])
        nn.init.normal_(self.weight, std=deviation)
        nn.init.constant_(self.log_variance, 2 * math.log(deviation) + _START_LOG_ALPHA)
        nn.init.zeros_(self.component_logits)
        self.kept.fill_(True)

    def forward(
        self, x: Float[torch.Tensor, "*batch feature"]
    ) -> Float[torch.Tensor, "*batch label"]:
        r"""Class logits, :math:`\log \sum_m \pi_{cm} \exp(w_{cm}^\top \phi(x))`.

        Parameters
        ----------
        x : Tensor of shape (..., in_features)
            Features, of any floating type.

        Returns
        -------
        Tensor of shape (..., n_classes)
            Logits, float32 at least. In training mode a sample: two calls differ.

        Raises
        ------
        ValueError
            If x has another number of features.
        """
        return self._component_logits(x).logsumexp(dim=-1)

    def log_joint(
        self, x: Float[torch.Tensor, "*batch feature"]
    ) -> Float[torch.Tensor, "*batch label component"]:
        """Log probability of every class and component, log p(c, m | x).

        Parameters
        ----------
        x : Tensor of shape (..., in_features)
            Features, of any floating type.

        Returns
        -------
        Tensor of shape (..., n_classes, n_components)
            The sum of their exponentials is 1; its sum over a class's components is
            the softmax of :meth:`forward`.

        Raises
        ------
        ValueError
            If x has another number of features.
        """
        logits = self._component_logits(x)
        return logits - logits.logsumexp(dim=(-2, -1), keepdim=True)

    def kl(self) -> Float[torch.Tensor, ""]:
        """Divergence of the weights' posterior from their prior, summed over those kept.

        Returns
        -------
        Tensor without dimensions
            Nats. Divide by the number of training rows, not of the batch, to add it to a mean loss.
        """
        return divergence(self._log_alpha())[self.kept].sum()

    def nnz(self, threshold: float = PRUNING_THRESHOLD) -> int:
        """Number of weights that are not zero, or would not be after pruning.

        Parameters
        ----------
        threshold : float
            Largest log alpha of a weight that counts.

        Returns
        -------
        int
            Intercepts included; the component without weights has none.
        """
        return int(self._needed(threshold).sum())

    def prune(self, threshold: float = PRUNING_THRESHOLD) -> int:
        """Set to zero, for good, the weights that are mostly noise.

        Parameters
        ----------
        threshold : float
            Largest log alpha of a weight that stays; 3 is the published one.

        Returns
        -------
        int
            Number of weights that were newly set to zero.
        """
        needed = self._needed(threshold)
        n_pruned = int(self.kept.sum() - needed.sum())
        self.kept.copy_(needed)
        return n_pruned

    def extra_repr(self) -> str:
        """Sizes, as ``print`` shows them.

        Returns
        -------
        str
            The constructor's arguments.
        """
        return (
            f"{self.in_features}, n_classes={self.n_classes}, "
            f"n_components={self.n_components}, covariance={self.covariance!r}"
        )

    def _component_logits(
        self, x: Float[torch.Tensor, "*batch feature"]
    ) -> Float[torch.Tensor, "*batch label component"]:
        """Logit of every component, up to one number per row."""
        if x.shape[-1] != self.in_features:
            raise ValueError(
                f"SDGMHead was made for in_features={self.in_features}; received x of shape "
                f"{tuple(x.shape)}: its last dimension must be {self.in_features}."
            )
        with _without_autocast(x.device.type):
            dtype = torch.promote_types(self.weight.dtype, torch.float32)
            phi = monomials(x.to(dtype), self._factors)
            free = self._activations(phi)
            shape = (*x.shape[:-1], self.n_classes, self.n_components)
            logits = functional.pad(free, (0, 1)).reshape(shape)  # the last component has w = 0
            return logits + self.component_logits.to(dtype).log_softmax(dim=-1)

    def _activations(
        self, phi: Float[torch.Tensor, "*batch monomial"]
    ) -> Float[torch.Tensor, "*batch component"]:
        """Inner products of monomials and weights: sampled in training, else their means."""
        mean = functional.linear(phi, self.weight.to(phi.dtype) * self.kept)
        if not self.training:
            return mean
        noise = self.log_variance.to(phi.dtype).exp() * self.kept
        variance = functional.linear(phi.square(), noise)
        # A component without weights has variance 0, where the root has no finite gradient.
        deviation = (variance + torch.finfo(phi.dtype).tiny).sqrt()
        return mean + deviation * torch.randn_like(mean)

    def _log_alpha(self) -> Float[torch.Tensor, "component monomial"]:
        """Ratio of noise to signal of every weight, pruned ones included."""
        dtype = torch.promote_types(self.weight.dtype, torch.float32)
        return log_alpha(self.weight.to(dtype), self.log_variance.to(dtype))

    def _needed(self, threshold: float) -> Bool[torch.Tensor, "component monomial"]:
        """Weights that are kept and whose noise is not above the threshold."""
        return self.kept & (self._log_alpha() <= threshold)


def _without_autocast(device_type: str) -> AbstractContextManager[object]:
    """Arithmetic in the types of its operands, also on devices without autocast."""
    if not torch.amp.is_autocast_available(device_type):
        return nullcontext()
    return torch.autocast(device_type, enabled=False)


def _check(in_features: int, n_classes: int, n_components: int, covariance: str) -> None:
    """ValueError for sizes or covariances that make no mixture."""
    for name, value, least in (
        ("in_features", in_features, 1),
        ("n_classes", n_classes, 2),
        ("n_components", n_components, 1),
    ):
        if value < least:
            raise ValueError(f"SDGMHead({name}=...) must be at least {least}; received {value!r}.")
    if covariance not in COVARIANCES:
        raise ValueError(
            f"SDGMHead(covariance=...) must be one of {COVARIANCES}; received {covariance!r}."
        )
