"""Calibrated classifiers for small, messy, high-stakes tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesrbf.estimators.hybrid_mixture import HybridMixtureClassifier
    from bayesrbf.estimators.mixture_density import MixtureDensity
    from bayesrbf.persistence import load
    from bayesrbf.priors import MixturePrior

__version__ = "0.1.0"

__all__ = ["HybridMixtureClassifier", "MixtureDensity", "MixturePrior", "load"]

# Where each public name lives. It is imported when first used, so that importing
# bayesrbf costs nothing and a fit pays only for what it touches.
_HOMES = {
    "HybridMixtureClassifier": "bayesrbf.estimators.hybrid_mixture",
    "MixtureDensity": "bayesrbf.estimators.mixture_density",
    "MixturePrior": "bayesrbf.priors",
    "load": "bayesrbf.persistence",
}

if not TYPE_CHECKING:  # a type checker must still see a name that does not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
