"""A training table in memory, as an estimator reads it, and its doubtful columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import _num_samples, validate_data

from bayesrbf import table
from bayesrbf.base.blocks import is_collection
from bayesrbf.base.rows import Observations, Subjects, copies_sentence
from bayesrbf.fit.arguments import Arguments, prevalence, row_groups, row_weights
from bayesrbf.fit.table import TrainingTable
from bayesrbf.reading import noticing
from bayesrbf.reading.notes import ColumnWarning, warn
from bayesrbf.table.columns import Columns
from bayesrbf.table.containers import Cells, missing_cells, read_cells

if TYPE_CHECKING:
    from bayesrbf.reading.notes import Note


# Describes doubtful columns of a training table in one message.


SHOWN: Final = 5
"""Maximum number of columns in the message."""
MIN_NEAR_ROWS: Final = 5
"""Number of rows that differ from an earlier row in one column, up to which none is reported."""
MANY_COPIES: Final = 0.05
"""Share of copies among the rows from which there is a warning: many tables have one or two."""
MAX_COLUMNS: Final = 500
"""Columns of a table beyond which none is looked at: a millisecond each, and ids matter less."""


def column_doubts(
    X: object,
    columns: Columns,
    rows: Observations,
    *,
    named: bool,
    grouped: bool = True,
    left_out: Sequence[int] = (),
) -> str:
    """Message on doubtful columns of a table; empty for a clean table.

    Doubtful are stand-ins for missing cells, names of rows, other names of the labels, and text
    that is numbers. Where the categorical columns are ``named``, and of columns whose type is a
    category, text is what it should be, and only its levels are looked at. Fits that are
    ``grouped`` take groups. Columns at the positions ``left_out`` have cells in rows of one class
    alone.
    """
    clauses = list[str]()
    if len(columns.names) <= MAX_COLUMNS:
        clauses += _doubts(X, columns, rows.labels, named, grouped)
    clauses += _codes_apart(columns)
    clauses += [
        f"column {columns.names[position]!r} has cells in rows of one class alone (no value of it "
        "tells classes apart; what it tells that a row has one, missing indicators may)"
        for position in left_out
    ]
    count, name = near_duplicates(columns, rows) if grouped else (0, "")
    if count:
        clauses.insert(
            0,
            f"column {name!r} alone tells {count} rows from an earlier row, far beyond chance (if "
            "such rows belong together, as where one is measured again, give groups= to fit: "
            "probabilities are too sure otherwise)",
        )
    more = f"; {len(clauses) - SHOWN} more columns are doubtful" if len(clauses) > SHOWN else ""
    message = "; ".join(clauses[:SHOWN]) + more
    return f"{message[0].upper()}{message[1:]}." if clauses else ""


def warn_of_labels(
    classes: Shaped[np.ndarray, " label"], codes: Int[np.ndarray, " obs"], owner: str
) -> None:
    """Warn of one class alone, labels that may mean none, and labels that are written alike."""
    from bayesrbf.reading.cells import doubtful_labels

    frequencies = np.bincount(codes[codes >= 0], minlength=classes.size).tolist()
    labels = {str(label): label for label in classes.tolist()}
    if len(labels) == 1:
        warn(
            f"{owner}.fit received one class alone, {classes.tolist()[0]!r}: its probability is 1 "
            "everywhere, and nothing can be told apart. Give labelled rows of another class."
        )
    for note in doubtful_labels("y", dict(zip(labels, frequencies, strict=True))):
        if note.topic == "label for missing":
            label = labels[note.value]
            warn(
                f"{owner}.fit takes the label {label!r} for a class ({note.count} rows). If it "
                f"means that a row has no label, give unlabelled={label!r}.",
                ColumnWarning,
            )
        else:
            warn(
                f"{owner}.fit takes the labels {note.value} for different classes; they differ by "
                f"{note.example}. If they mean the same, write them alike.",
                ColumnWarning,
            )


def warn_of_copies(repeated: int, n_rows: int, owner: str) -> None:
    """Warn where many rows are copies of an earlier one; ``status_`` names any."""
    if repeated > MANY_COPIES * n_rows:
        warn(f"{owner}.fit: {copies_sentence(repeated)}", ColumnWarning)


def warn_of_singleton_classes(
    classes: Shaped[np.ndarray, " label"], codes: Int[np.ndarray, " obs"], owner: str
) -> None:
    """Warn where a class has one labelled row, which no fit can be judged by."""
    counts = np.bincount(codes[codes >= 0], minlength=classes.size)[: classes.size]
    singletons = [repr(label) for label in classes[counts == 1].tolist()]
    if (
        singletons and counts.max() > 1
    ):  # where no class has more, nothing is held out, and fit says so
        named = ", ".join(singletons[:SHOWN]) + (", ..." if len(singletons) > SHOWN else "")
        warn(
            f"{owner}.fit: one labelled row alone is of class {named}. It is never held out, so "
            "the probability of such a class cannot be validated, nor calibrated; label more of "
            "its rows, or leave it out."
        )


def _doubts(X: object, columns: Columns, codes: Codes, named: bool, grouped: bool) -> Iterator[str]:
    """A clause on each doubtful column."""
    for name in (columns.names[position] for position in columns.empty):
        yield f"column {name!r} has no cell (it is left out, and stays missing)"
    cells = read_cells(X)
    yield from _separating(cells, columns, codes)
    yield from _noticed(cells, columns, named, grouped)


def _separating(cells: Cells, columns: Columns, codes: Codes) -> Iterator[str]:
    """A clause on each column that separates every class from the others."""
    # Numbers that separate the classes may well be measured; as few as classes, they are codes.
    levelled: dict[str, Any] = {}
    n_classes = codes.max(initial=0) + 1
    for name, column, kind in zip(cells.names, cells.columns, columns.kinds, strict=True):
        holes = missing_cells(column)
        seen = column[~holes]
        # Of most columns of numbers the first hundred cells say that they are no codes.
        if kind.has_levels or all(np.unique(c).size <= n_classes for c in (seen[:100], seen)):
            texts = zip(column.tolist(), holes, strict=True)
            levelled[name] = [None if hole else str(cell) for cell, hole in texts]
    for note in noticing.telling(levelled, codes, throughout=True):
        if note.topic in CLAUSES:
            yield f"column {note.column!r} {CLAUSES[note.topic](note)}"


def _noticed(cells: Cells, columns: Columns, named: bool, grouped: bool) -> Iterator[str]:
    """Clauses on doubtful columns, for a warning: numbers written as text, then other doubts.

    Other doubts have a topic of ``CLAUSES``, such as stand-ins for missing cells, levels spelled
    alike and names of rows. ``named`` says whether the user named the categorical columns. A named
    or declared category has only doubts of ``OF_LEVELS``, and no clause on numbers as text.
    ``grouped`` says whether ``fit`` takes ``groups=``, which the advice then names.
    """
    looked: dict[str, Any] = {}
    decided = set[str]()
    remedy = f" ({noticing.REMEDY})"  # Said once.
    for name, column, declared, kind in zip(
        cells.names, cells.columns, cells.declared, columns.kinds, strict=True
    ):
        if column.dtype.kind == "f" and kind.n_reals and not kind.has_levels:
            looked[name] = column
        elif kind.has_levels:
            texts = column.tolist()
            if named or declared:
                decided.add(name)
            elif clause := noticing.numbers_as_text(
                cell for cell in texts if isinstance(cell, str)
            ):
                yield f"column {name!r} {clause}{remedy}"
                remedy = ""
                continue
            levels = {cell for cell in texts if cell is not None}
            if all(isinstance(level, str) for level in levels):
                spelled = noticing.in_one_spelling(levels)
                looked[name] = [spelled.get(cell) for cell in texts]
    for note in noticing.notice(looked):
        # What is far from all others and no usual code, such as a row of zeros that were centred,
        # is told of files only.
        usual = note.topic != "stand-in" or noticing.MISSING_CODE.fullmatch(note.value)
        if usual and note.topic in (OF_LEVELS if note.column in decided else CLAUSES):
            yield f"column {note.column!r} {CLAUSES[note.topic](note)}{_groups(note, grouped)}"


def _codes_apart(columns: Columns) -> Iterator[str]:
    """A clause on each column of codes such as 7 and 007, which may be one number or two codes."""
    from bayesrbf.reading.notes import listed

    for name, levels in columns.levels_of.items():
        texts = [level for level in levels if isinstance(level, str)]
        if apart := noticing.written_apart(texts):
            yield (
                f"column {name!r} holds {listed(list(map(repr, apart)))}, which are one number and "
                "count as levels apart (if they are one, write them in one way)"
            )


def _holds(note: Note, why: str) -> str:
    """Clause on a stand-in for missing cells."""
    often = "one cell" if note.count == 1 else f"{note.count} cells"
    return f"holds {note.value} in {often}, {why} (if it means missing, make it NaN)"


def _groups(note: Note, grouped: bool) -> str:
    """Advice on a column of names of patients and the like; empty for a note of another topic."""
    if note.topic not in REPEATED:
        return ""
    if not grouped:
        return " (if it names persons or things, leave it out)"
    return (
        " (if it says which rows belong together, leave it out and give it as groups= to fit, so "
        "that they are never both fitted and held out)"
    )


OF_LEVELS: Final = frozenset({"word for missing", "spelled alike", "names of rows"})
"""Topics that are told of categories that were named or declared, too."""
REPEATED: Final = ("repeated names", "repeated numbers", "repeated texts")
CLAUSES: Final[dict[str, Callable[[Note], str]]] = {
    "tells": lambda note: (
        "tells every class from the others by itself (if it is known only when the label is, leave "
        "it out: scores would be too good)"
    ),
    "stand-in": lambda note: _holds(note, "far from all other values"),
    "only negative": lambda note: _holds(note, "and no other negative value"),
    "far cell": lambda note: (
        f"holds {note.value}, far beyond all other cells (if it is a slip, such as of the decimal "
        "point, correct the cell)"
    ),
    "word for missing": lambda note: _holds(
        replace(note, value=repr(note.value)), "read as a category"
    ),
    "spelled alike": lambda note: (
        f"holds {note.value}, which differ by {note.example} (if they mean the same, write them "
        "alike)"
    ),
    "identifier": lambda note: (
        f"has {note.value}, such as {note.example} (if it names the rows, leave it out)"
    ),
    "names of rows": lambda note: (
        f"has {note.count} texts that are all different, such as {note.example!r} (leave it out: "
        "it names the rows)"
    ),
    **dict.fromkeys(REPEATED, lambda note: f"has {note.value}, such as {note.example}"),
    "free text": lambda note: (
        f"holds text that hardly repeats, {note.count} distinct values (leave it out, or make "
        "categories of it)"
    ),
}
"""Clause on a column, by the topic of a note."""


# A training table in memory, as an estimator asks for it to be read.


LARGEST_SEED: Final = 2**31 - 1
BLOCK: Final = 20_000
"""Rows of an array up to which it is one block, wherever it lies."""

Weights = Float[np.ndarray, " obs"]
Codes = Int[np.ndarray, " obs"]


@dataclass(frozen=True)
class Reading:
    """Settings of an estimator for reading its training table."""

    owner: str
    """Name of the estimator, for errors."""
    arguments: Arguments
    """Arguments of the estimator's constructor."""
    labelled: bool = True
    """Whether y holds class labels."""
    of_sample: bool = False
    """Whether of a table out of memory a random sample is all that is fitted to."""
    unlabelled_weight: float = 1.0
    """Factor of the weight of rows without a label."""
    by_blocks: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Arguments that need all rows in memory unless they have one of these values."""

    @property
    def features(self) -> dict[str, Any]:
        """The user's kinds of columns, as :func:`table.learn_columns` takes them."""
        argument_names = "categorical_features", "column_kinds"
        return {name: self.arguments[name] for name in argument_names if name in self.arguments}

    @property
    def missingness(self) -> str:
        """Assumption on missing cells: ``ignorable`` or ``informative``; ``cv`` begins ignorable.

        What is fitted to samples decides it member by member.
        """
        missingness: str = self.arguments.get("missingness", "ignorable")
        return "ignorable" if missingness == "cv" or self.of_sample else missingness

    @property
    def finds_point_masses(self) -> bool:
        """Whether frequent values of real columns are point masses."""
        return self.arguments.get("point_masses") == "auto"

    @property
    def seed(self) -> int:
        """A seed from ``random_state``: the next one of a generator."""
        return int(check_random_state(self.arguments["random_state"]).randint(LARGEST_SEED))

    def prevalence(
        self, classes: Shaped[np.ndarray, " label"]
    ) -> Float[np.ndarray, " label"] | None:
        """Class probabilities of use; None keeps those of training."""
        return prevalence(self.arguments["class_prior"], classes, self.owner)


@dataclass(frozen=True)
class Labels:
    """Codes and weights of the rows of a table, before those without weight are left out."""

    codes: Codes
    weights: Weights
    classes: Shaped[np.ndarray, " label"] | None = None
    prevalence: Float[np.ndarray, " label"] | None = None


def check_table(reading: Reading, X: object, y: object, sample_weight: object) -> Weights:
    """Row weights; an error if X is no table in memory, has no row, or lacks required labels."""
    refuse_collection(reading, X)
    table.as_frame(X)  # our own error for what is no table, before scikit-learn raises its
    column_names(X)
    if reading.labelled and y is None:
        raise ValueError(f"{reading.owner}.fit requires y to be passed, but the target y is None.")
    if _num_samples(X) == 0:
        raise ValueError("X has 0 sample(s), but fit needs at least one row.")
    return row_weights(sample_weight, X)


def refuse_collection(reading: Reading, X: object) -> None:
    """Raise TypeError if X is a table out of memory; otherwise do nothing.

    X alone decides: a path, Dask collection, lazy frame or chunked array is refused. Only a fit
    that needs all rows at once calls this function. The message names ``reading.owner``.
    """
    if is_collection(X):
        raise TypeError(
            f"{reading.owner}.fit takes a table in memory, and {type(X).__name__} is read block by "
            "block: fit a random sample of its rows, drawn from all blocks, such as "
            "X.sample(frac=0.01).compute() of Dask, or fit MixtureDensity, HybridMixtureClassifier "
            "or StackedClassifier to it."
        )


def column_names(X: object) -> tuple[int, Shaped[np.ndarray, " column"] | None]:
    """Number of columns and their names as scikit-learn keeps them, None without names."""
    shell = BaseEstimator()  # it takes the names, so that a fit that fails changes no estimator
    validate_data(shell, X, skip_check_array=True)
    names = vars(shell).get("feature_names_in_")
    return int(vars(shell).get("n_features_in_", 0)), names  # learn_columns refuses other shapes


def read_labels(reading: Reading, X: object, y: object, weights: Weights) -> Labels:
    """Class codes and weights of the rows, classes and prevalences; warns of doubtful labels.

    A class without weight is left out. Rows without a label have code -1, and their weights are
    multiplied by the weight of unlabelled rows.
    """
    check_consistent_length(X, y)
    unlabelled = reading.arguments["unlabelled"]
    factor = reading.unlabelled_weight
    classes, codes, weights = table.present_classes(y, weights, unlabelled, factor)
    warn_of_labels(classes, codes, reading.owner)
    warn_of_singleton_classes(classes, codes[weights > 0], reading.owner)
    return Labels(codes, weights, classes, reading.prevalence(classes))


def read_rows(reading: Reading, X: object, labels: Labels, groups: object = None) -> TrainingTable:
    """Training table of a table in memory: its columns, and its rows of positive weight.

    Warns of doubtful columns and of repeated rows.
    """
    n_columns, names = column_names(X)
    of_rows = row_groups(groups, X, f"{reading.owner}.fit")
    codes, weights = labels.codes, labels.weights
    row_indices = np.flatnonzero(weights > 0)
    if row_indices.size < weights.size:
        X, codes, weights = _safe_indexing(X, row_indices), codes[row_indices], weights[row_indices]
    columns = table.learn_columns(X, missingness=reading.missingness, **reading.features)
    cells = table.encode(X, columns)
    # Weights of a density say how many rows stand against its prior.
    rows, repeated = table.with_subjects(
        replace(cells, labels=codes, weights=weights),
        None if of_rows is None else of_rows[row_indices],
        relative=reading.labelled,
    )
    informative = reading.arguments.get("missingness") == "informative"
    alone = [] if informative else measured_in_one_class(columns, rows)
    doubts = doubts_of(reading, X, columns, rows, alone)
    if alone:
        columns = replace(columns, of_one_class=tuple(alone))
        cells = table.encode(X, columns)
        rows = replace(rows, real=cells.real, codes=cells.codes, missing=cells.missing)
    warn_of_copies(repeated, row_indices.size, reading.owner)
    orders = table.level_orders(rows, columns)
    columns, cells = columns.in_levels(orders), table.recoded(cells, orders)
    table.check_spreads(cells.real, rows.weights, columns.real_names)
    if reading.finds_point_masses:
        point_masses = table.point_masses_of(replace(cells, weights=rows.weights), columns)
        columns = replace(columns, point_masses=point_masses)
        cells = table.encode(X, columns)
    training = TrainingTable(
        reading.owner,
        columns,
        replace(cells, labels=codes, weights=rows.weights, subjects=rows.subjects),
        row_indices,
        reading.seed,
        n_columns,
        names,
        classes=labels.classes,
        prevalence=labels.prevalence,
        handle_unknown=reading.arguments["handle_unknown"],
        doubts=doubts,
        repeated=repeated,
        unlabelled_weight=reading.unlabelled_weight,
    )
    return training.with_template(X)


def subjects_in(
    X: object, groups: object, owner: str
) -> tuple[Subjects | None, int, tuple[int, str]]:
    """Subjects of the rows of a table in memory, number of copies, :func:`near_duplicates`."""
    columns = table.learn_columns(X)
    cells = table.encode(X, columns)
    rows, repeated = table.with_subjects(cells, row_groups(groups, X, owner), relative=False)
    return rows.subjects, repeated, near_duplicates(columns, rows)


def near_duplicates(columns: Columns, rows: Observations) -> tuple[int, str]:
    """Number of rows that differ from an earlier row in one column alone, and that column's name.

    Rows within chance do not count. The result is (0, "") where they are few: most tables have one
    or two.
    """
    if not columns.names or len(columns.names) > MAX_COLUMNS:
        return 0, ""
    of_columns = replace(rows, codes=rows.codes[:, : len(columns.levels)])  # masks are no columns
    count, position = table.near_copies(of_columns)
    positions = (*columns.code_of, *columns.real_positions)
    name = columns.names[positions[position]] if positions else ""
    return (count, name) if count > max(MIN_NEAR_ROWS, MANY_COPIES * rows.n_obs) else (0, "")


def measured_in_one_class(columns: Columns, rows: Observations) -> list[int]:
    """Columns with cells in rows of a single class: their values cannot separate classes.

    Objectives of labels would put the other classes anywhere, and far away.
    """
    if np.unique(rows.labels[rows.labels >= 0]).size < 2:
        return []
    observed = table.observed_cells(rows, columns)
    labels = [np.unique(rows.labels[column]) for column in observed.T]
    return [j for j, having in enumerate(labels) if having.size == 1 and having[0] >= 0]


def doubts_of(
    reading: Reading, X: object, columns: Columns, rows: Observations, left_out: Sequence[int]
) -> str:
    """Doubts about the columns of the training table; a warning if there are any."""
    named = reading.arguments["categorical_features"]
    inferred = named is None or (isinstance(named, str) and named == "from_dtype")
    doubts = column_doubts(
        X, columns, rows, named=not inferred, grouped=reading.labelled, left_out=left_out
    )
    if doubts:
        warn(doubts, ColumnWarning)
    return doubts


def read_table(
    reading: Reading, X: object, y: object, sample_weight: object, groups: object = None
) -> TrainingTable:
    """Columns, classes and rows of a table in memory."""
    weights = check_table(reading, X, y if reading.labelled else None, sample_weight)
    if not reading.labelled:
        return read_rows(reading, X, Labels(np.zeros(weights.size, dtype=int), weights))
    return read_rows(reading, X, read_labels(reading, X, y, weights), groups)
