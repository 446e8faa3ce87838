"""Names of dimensions, variables and groups, each written once.

Numerics, declared graph and DataTree use these names and no others, so that a
number can be followed from a kernel to a plot by its name alone.
"""

from __future__ import annotations

from typing import Final

OBS: Final = "obs"
ROW: Final = "row"  # Rows with or without a label; ``obs`` are the labelled rows alone.
FEATURE: Final = "feature"
COLUMN: Final = "column"  # Columns of any kind; in a row of cells, the label too.
# ArviZ has a dim "component" of its own: psense_summary lays prior and likelihood along it.
COMPONENT: Final = "mixture_component"
FEATURE_BIS: Final = "feature_bis"  # The second axis of a matrix over features.

LABEL: Final = "label"  # Classes of predictions: what the label of a row may be.
CLASS_LABEL: Final = "class_label"
"""Classes of parameters: ``az.summary`` stacks a posterior along a dim ``label`` of its own."""
CHAIN: Final = "chain"
DRAW: Final = "draw"
PRECISION_ENTRY: Final = "precision_entry"
"""Strictly lower entries (row, column) of a precision factor, row by row."""

COMPONENT_CLASS: Final = "component_class"
"""Code of the class that a component belongs to, in a graph."""
COMPONENT_LABEL: Final = "component_label"  # Name of that class, in a DataTree.

CLASS_PROBABILITIES: Final = "class_probabilities"
WEIGHTS: Final = "weights"
MEANS: Final = "means"
COVARIANCES: Final = "covariances"
PRECISION_DIAGONAL: Final = "precision_diagonal"
PRECISION_LOWER: Final = "precision_lower"
COEFFICIENTS: Final = "coefficients"
INTERCEPTS: Final = "intercepts"
NOISE_PRECISION: Final = "noise_precision"

BASIS: Final = "basis"  # Functions of a hidden layer.
OUTPUT: Final = "output"  # Rows of output weights: one a class, or one for two classes.

MEMBER: Final = "member"  # Members of a stack.
LOG_TEMPERATURE: Final = "log_temperature"
MEMBER_LOG_TEMPERATURES: Final = "member_log_temperatures"
MISSING_FRACTION: Final = "missing_fraction"  # Knots at which a calibration is declared.
COPIES: Final = "copies"  # Labels given copies of the rows with more cells masked.
PRIOR_EXPONENT: Final = "prior_exponent"  # Exponent of the class shares.

COEFFICIENT: Final = "coefficient"  # Weights of a sparse discriminative mixture that are not zero.
COEFFICIENT_PRECISIONS: Final = "coefficient_precisions"
STANDARD_COEFFICIENTS: Final = "standard_coefficients"
"""Coefficients in units of their prior's standard deviations."""
LOCAL_SCALES: Final = "local_scales"
GLOBAL_SCALE: Final = "global_scale"

RATES: Final = "rates"  # Inverse length scales of a kernel, by column.
LOG_RATE_FACTORS: Final = "log_rate_factors"
LOG_COMMON_FACTOR: Final = "log_common_factor"
LOG_NOISE: Final = "log_noise"
LOG_SIGNAL: Final = "log_signal"

PROTOTYPE: Final = "prototype"
EXEMPLARS: Final = "exemplars"  # Training row that each prototype is.
SIGMA: Final = "sigma"  # Width of an exemplar's kernel.
OBSERVED_LABEL: Final = "y"
"""The observed node of a graph of the labels given the rows, and the log likelihood p(y | x)."""

COLUMN_POWERS: Final = "column_powers"
"""Data of a graph: the powers of the transforms in front of the real columns."""
OBSERVED: Final = "x"
"""The observed node of a declared graph, and the log likelihood p(x)."""
JOINT: Final = "x_y"
"""The log likelihood p(x, y): rows and their labels."""
OBJECTIVE: Final = "objective"
"""Replaces the log likelihood where the objective, such as a margin, is not a likelihood."""
PROBABILITY: Final = "probability"

UNCERTAINTY_COMPONENT: Final = "uncertainty_component"
"""Dim of the components of the uncertainty behind an interval."""
BEFORE_LABELS: Final = "before any label"
MISSING_CELLS: Final = "missing cells"
LABELS_HELD_OUT: Final = "labels held out"
INDUCING_POINTS: Final = "inducing points"
RARE_LEVELS: Final = "rare levels"
COMPONENTS_OF_ERROR: Final = (
    BEFORE_LABELS,
    MISSING_CELLS,
    LABELS_HELD_OUT,
    INDUCING_POINTS,
    RARE_LEVELS,
)
OTHER_KINDS: Final = "other kinds of models"
CLASS_SHARES: Final = "class shares"
LABEL_NOISE: Final = "label noise"
UPDATE: Final = "update"

POSTERIOR: Final = "posterior"
SAMPLE_STATS: Final = "sample_stats"
LOG_LIKELIHOOD: Final = "log_likelihood"  # The terms of rows that draws target, each once.
LOG_SCORES: Final = "log_scores"  # Other log probabilities of the same rows.
LOG_PRIOR: Final = "log_prior"
OBSERVED_DATA: Final = "observed_data"
CONSTANT_DATA: Final = "constant_data"
PREDICTIONS: Final = "predictions"
PREDICTIONS_CONSTANT_DATA: Final = "predictions_constant_data"
OPTIMISER: Final = "optimiser_path"


def class_weights(index: int, n_classes: int) -> str:
    """Name of the free mixture weights of one class.

    Classes may differ in their number of components, so each has a simplex of its own, and
    ``"weights"`` is their concatenation. A plain density has one class.

    >>> class_weights(0, 1), class_weights(2, 3)
    ('weights', 'weights_2')
    """
    return WEIGHTS if n_classes == 1 else f"{WEIGHTS}_{index}"


def class_components(index: int, n_classes: int) -> str:
    """Name of the dim of one class's mixture weights; a plain density has one class.

    >>> class_components(0, 1), class_components(2, 3)
    ('mixture_component', 'mixture_component_2')
    """
    return COMPONENT if n_classes == 1 else f"{COMPONENT}_{index}"


def category_probability(index: int) -> str:
    """Name of the level probabilities of one categorical column.

    The column's own name is an attribute, because a ``/`` in a name would split a DataTree path.

    >>> category_probability(3)
    'probability_3'
    """
    return f"{PROBABILITY}_{index}"


def category_level(index: int) -> str:
    """Name of the dim of the levels of one categorical column.

    >>> category_level(3)
    'level_3'
    """
    return f"level_{index}"
