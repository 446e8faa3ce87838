"""Names of earlier versions: what to write in place of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Final, NoReturn

ACCELERATION: Final = "nothing, as EM is always accelerated"
ARGUMENTS: Final[dict[str, dict[str, str]]] = {
    "HybridMixtureClassifier": {
        "kappa": "objective=Blend(kappa)",
        "hinge_weight": "objective=Hinge(weight=...)",
        "margin": "objective=Hinge(margin=...) or Margin(margin=...)",
        "smoothing": "objective=Hinge(smoothing=...) or Margin(smoothing=...)",
        "sharpness": "objective=Hinge(sharpness=...) or Margin(sharpness=...)",
        "ramp_cap": "objective=Hinge(ramp_cap=...) or Margin(ramp_cap=...)",
        "objective_iter": "objective=Blend(max_iter=...)",
        "batch_size": "objective=Blend(batch_size=...)",
        "early_stopping": "objective=Blend(validation_fraction=0.1)",
        "validation_fraction": "objective=Blend(validation_fraction=...)",
        "acceleration": ACCELERATION,
    },
    "MixtureDensity": {"acceleration": ACCELERATION},
    "SDGMClassifier": {"alpha_max": "nothing, as weights beyond a precision of 1e5 are dropped"},
}
"""Constructor arguments by the name of their estimator."""
NAMES: Final[dict[str, str]] = {
    "acquire_labels": "bayesrbf.acquire_labels(estimator, X)",
    "aic": "n_components='cv', which chooses on rows held out",
    "bic": "n_components='cv', which chooses on rows held out",
    "component_classes": "component_classes_",
    "declare_rates": "bayesrbf.models.declare_kernel_rates",
    "describe_columns": "columns_.table()",
    "findings": "diagnose(), whose column 'good' has the judgement",
    "predict_component": "transform(X).argmax(axis=1)",
    "predictive_check": "bayesrbf.predictive_check(estimator)",
    "rehearse": "bayesrbf.rehearse(estimator, X, y)",
    "to_datatree": "predict_posterior(X, y)",
}
"""Methods of any estimator."""


def with_moved_arguments[**P, R](method: Callable[P, R]) -> Callable[P, R]:
    """A method that refuses arguments of earlier versions with a TypeError that names the new."""

    @wraps(method)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        kinds = [kind.__name__ for kind in type(args[0]).__mro__]
        for kind in ARGUMENTS.keys() & set(kinds):
            for name in ARGUMENTS[kind].keys() & options.keys():
                raise TypeError(f"{kind} has no argument {name!r}: use {ARGUMENTS[kind][name]}.")
        return method(*args, **options)

    return checked


@dataclass(frozen=True)
class MovedName:
    """A method of earlier versions: asking for it says what took its place."""

    name: str
    instead: str

    def __get__(self, estimator: object, kind: type) -> NoReturn:
        raise AttributeError(f"{kind.__name__} has no {self.name!r}: use {self.instead}.")
