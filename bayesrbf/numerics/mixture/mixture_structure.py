"""The variables of a mixture's declared graph: names, dims, shapes, transforms."""

from __future__ import annotations

from functools import cache

from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.specification import MixtureSpecification, Variable


@cache
def free_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """Free variables of the declared graph, in its order: classes, weights, then every law's.

    Examples
    --------
    >>> [v.name for v in free_variables(MixtureSpecification(2, (), (0, 0, 1)))]
    ['class_probabilities', 'weights_0', 'means', 'precision_diagonal', 'precision_lower']
    """
    n_classes = specification.n_classes
    variables: list[Variable] = []
    if n_classes > 1:
        variables.append(
            Variable(names.CLASS_PROBABILITIES, (names.CLASS_LABEL,), (n_classes,), "simplex")
        )
    for index, part in enumerate(specification.class_slices):
        size = part.stop - part.start
        if size > 1:
            dim = names.class_components(index, n_classes)
            name = names.class_weights(index, n_classes)
            variables.append(Variable(name, (dim,), (size,), "simplex"))
    laws = laws_of(specification)
    further = (variable for law in laws.further for variable in law.variables)
    return (*variables, *laws.reals.variables, *laws.levels.variables, *further)


def deterministic_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """What is reported beside the free variables.

    That is ``weights`` where the classes have simplices of their own, and ``covariances`` where
    there are real columns.
    """
    variables: list[Variable] = []
    k, d = specification.n_components, specification.n_features
    if names.WEIGHTS not in {v.name for v in free_variables(specification)}:
        variables.append(Variable(names.WEIGHTS, (names.COMPONENT,), (k,), "identity"))
    if d:
        dims = (*specification.group_dims, names.FEATURE, names.FEATURE_BIS)
        shape = (*specification.group_shape, d, d)
        variables.append(Variable(names.COVARIANCES, dims, shape, "identity"))
    return tuple(variables)
