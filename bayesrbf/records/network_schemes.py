"""Schemes by which RBF networks are fitted, each with what belongs to it alone."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import ClassVar, Final, Literal, get_args

import numpy as np

from bayesrbf.records.stored import ANY_NUMBER, Stored, short_repr, stored

PublishedName = Literal["em_lr", "em_lr_link", "em_lr_link_k", "caetano"]
SchemeName = Literal["joint"] | PublishedName

PUBLISHED_LINKS: Final[dict[PublishedName, float]] = {
    "em_lr": 0.0,
    "em_lr_link": np.inf,
    "em_lr_link_k": np.inf,
    "caetano": 100.0,
}
"""gamma of each published scheme where none is given."""


def _is_number(value: object) -> bool:
    """Whether something is a real number, and no bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


@stored
class JointScheme:
    r"""The mode of one declared joint of labels and rows.

    .. math:: \log p(y | f(x), w) + \kappa \log p(x | \theta) + \log p(w, \theta)

    Attributes
    ----------
    link : float
        Strength :math:`\gamma` of the Dirichlet link of the weights of the components,
        :math:`\pi | w \sim \mathrm{Dirichlet}(a + \gamma |w| / \sum |w|)`; 0 is no link.
    kappa : float or None
        Power :math:`\kappa` of p(x). None: 1 / n_columns, and at least 0.3 where cells are missing.
    """

    link: Stored[float] = 0.0
    kappa: Stored[float | None] = None

    name: ClassVar[SchemeName] = "joint"
    shared: ClassVar[bool] = True
    grow: ClassVar[tuple[int, int] | None] = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not (_is_number(self.link) and 0 <= self.link < np.inf):
            raise ValueError(
                "JointScheme.link must be a finite number of at least 0 (inf is the hard link of "
                f"PublishedScheme('em_lr_link')); received {self.link!r}."
            )
        if self.kappa is not None and not (_is_number(self.kappa) and 0 < self.kappa < np.inf):
            raise ValueError(
                f"JointScheme.kappa must be a finite positive number, or None; "
                f"received {self.kappa!r}."
            )

    @property
    def gamma(self) -> float:
        """Strength of the link."""
        return float(self.link)


@stored
class PublishedScheme:
    r"""A published alternation of EM and logistic regression, which maximises no single objective.

    ``"em_lr"`` does both in turn [1]_. ``"em_lr_link"`` ties the weights of the components to the
    output weights, :math:`\pi = |w| / \sum |w|`. ``"em_lr_link_k"`` does so while components join.
    ``"caetano"`` has the link of :class:`bayesrbf.JointScheme`, and components whose output weights
    are zero leave [2]_.

    Attributes
    ----------
    name : {"em_lr", "em_lr_link", "em_lr_link_k", "caetano"}
        Which one.
    link : float or None
        Strength :math:`\gamma` of the link; ``inf`` is the hard one. None: 0, inf, inf or 100, in
        the order of the names.
    shared : bool
        One mixture for all classes, or one a class.
    grow : tuple of int, or None
        ``(step, maximum)`` of the components under ``"em_lr_link_k"``, (1, 10) by default; Akaike's
        criterion chooses.

    References
    ----------
    .. [1] Ferreira, Figueiredo (2006), Hybrid generative/discriminative training of
       radial basis function networks, ESANN.
    .. [2] Caetano (2018): responsibilities as features (eq. 20), the Dirichlet link (eq. 21),
       imputation (eqs. 12-13).
    """

    name: Stored[PublishedName]
    link: Stored[float | None] = field(default=None, metadata=ANY_NUMBER)
    shared: Stored[bool] = True
    grow: Stored[tuple[int, int] | None] = None

    kappa: ClassVar[float | None] = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.name not in get_args(PublishedName):
            raise ValueError(
                f"PublishedScheme.name must be one of {get_args(PublishedName)}; "
                f"received {self.name!r}."
            )
        if self.link is not None and not (_is_number(self.link) and self.link >= 0):
            raise ValueError(
                f"PublishedScheme.link must be None, a number of at least 0, or inf; "
                f"received {self.link!r}."
            )
        if self.name == "em_lr" and self.link not in (None, 0):
            raise ValueError(
                "PublishedScheme('em_lr') has no link; use PublishedScheme('em_lr_link') for "
                f"link={self.link!r}."
            )
        if not isinstance(self.shared, bool | np.bool_):
            raise ValueError(f"PublishedScheme.shared must be a bool; received {self.shared!r}.")
        if self.grow is not None:
            self._check_growth(self.grow)

    def _check_growth(self, grow: object) -> None:
        """ValueError where components cannot join as asked."""
        if self.name != "em_lr_link_k":
            raise ValueError(
                f"PublishedScheme.grow belongs to name='em_lr_link_k'; received name={self.name!r}."
            )
        pair = isinstance(grow, tuple | list) and len(grow) == 2
        if not (pair and all(isinstance(n, Integral) and int(n) >= 1 for n in grow)):  # type: ignore[attr-defined]
            raise ValueError(
                "PublishedScheme.grow must be (step, maximum), both integers of at least 1; "
                f"received {grow!r}."
            )

    @property
    def gamma(self) -> float:
        """Strength of the link."""
        return PUBLISHED_LINKS[self.name] if self.link is None else float(self.link)


NetworkScheme = JointScheme | PublishedScheme
SCHEMES: Final[dict[str, NetworkScheme]] = {
    "joint": JointScheme(),
    "em_lr": PublishedScheme("em_lr"),
    "em_lr_link": PublishedScheme("em_lr_link"),
    "em_lr_link_k": PublishedScheme("em_lr_link_k"),
    "caetano": PublishedScheme("caetano"),
}
"""Words that stand for a scheme with its defaults."""


def scheme_of(asked: str | NetworkScheme) -> NetworkScheme:
    """The scheme that a word stands for, or the scheme itself."""
    return SCHEMES[asked] if isinstance(asked, str) else asked
