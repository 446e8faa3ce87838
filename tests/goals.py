"""Every figure that was asked of the package, and where its measured figure stands."""

from __future__ import annotations

from collections.abc import Callable
from operator import sub
from statistics import median
from typing import Final

from tests.asked import Among, Best, Beyond, Figure, Goal, Of, Over, Sum, least, most

POOLS: Final = ("default", "auto", "atoms", "pool", "trimmed", "trimmed pool")
"""Our densities in the density's benchmark."""
SETS: Final = ("18 tables", "18 tables, holes", "11 tables", "11 tables, holes")
ALL: Final = ("29 tables", "29 tables, holes")


def loss(model: str, column: str, digits: int = 4) -> Figure:
    """A mean log loss."""
    return Figure("stack/log_loss", f"{model};", column, digits)


def beside_logistic(model: str, columns: tuple[str, ...]) -> tuple[Goal, ...]:
    """At most the loss of logistic regression."""
    return tuple(
        most(loss("LogisticRegression", column, 3), loss(model, column, 3)) for column in columns
    )


def intervals(column: str, row: str = "stack;") -> tuple[Figure, Figure]:
    """Complete rows and rows with holes; 200 rows."""
    return (
        Figure("intervals/200_rows_complete", row, column, 2),
        Figure("intervals/200_rows_with_holes", row, column, 2),
    )


def between(low: float, high: float, column: str) -> tuple[Goal, ...]:
    """At least and at most, complete and with holes."""
    return tuple(
        goal for figure in intervals(column) for goal in (least(low, figure), most(high, figure))
    )


def density(line: str, model: str = "trimmed pool", digits: int = 3) -> Figure:
    """A line of the density's benchmark."""
    return Figure("density/scores", line, model, digits)


def ahead_of_peers(line: str, best: Callable[[list[float]], float]) -> Goal:
    """At least as good as the best peer in a line of the density's benchmark."""
    peer = Best("density/scores", line, ("tables", *POOLS), best)
    return (least if best is max else most)(peer, density(line))


def em(row: str) -> Figure:
    """Speed of EM as a multiple of scikit-learn's."""
    return Figure("em_speed/sklearn", row, "scikit-learn / bayesrbf", 2)


def ahead(against: str, model: str = "mixture") -> tuple[Goal, ...]:
    """Least lead of ``acquire`` after any number of cells, table by table."""
    return tuple(
        least(0, Of(Figure("acquire/ahead", f"{model}; .*{against}", str(cells)), min))
        for cells in range(1, 9)
    )


def serve(row: str, column: str, digits: int = 1) -> Figure:
    """A figure of the server under load."""
    return Figure("serve/speed", row, column, digits)


def house(row: str, place: int) -> Figure:
    """A count of the house."""
    return Figure("house", row, "figure", 0, place)


def fewer(model: str, pattern: str) -> Figure:
    """Mean log loss under a pattern of hidden cells."""
    return Figure("any_cells/losses", f"{model};", pattern)


def tried(section: str, line: str, column: str = "run of asked") -> Figure:
    """A count of a line of docs/trust.md."""
    return Figure(f"trust/{section}", line, column, 0)


def total(counts: list[float]) -> float:
    """All counts together."""
    return float(sum(counts))


ATTACKS: Final = (
    "artefact", "fuzz", "command-line", "load", "large", "large-draws", "sbc", "defects",
    "probabilities", "families", "approximations", "digits", "invariance", "oracles", "degenerate",
    "degenerate-draws", "bits", "serve",
)  # fmt: skip
"""Sections of docs/trust.md."""

FIT, PREDICT = r"HybridMixtureClassifier\.fit", r"HybridMixtureClassifier\.predict_proba"

GOALS: Final[dict[str, dict[str, tuple[Goal, ...]]]] = {
    "{doc}`measured/stack`": {
        "log loss of the default stack: 18 tables; with holes; 11 tables; with holes": tuple(
            most(bound, loss("stack", one))
            for bound, one in zip((0.2855, 0.3535, 0.252, 0.398), SETS, strict=True)
        ),
        "the same, further goals": tuple(
            most(bound, loss("stack", one))
            for bound, one in zip((0.280, 0.345, 0.245, 0.385), SETS, strict=True)
        ),
        "CPU time of a default fit in fits of a forest of 500 trees: complete; with holes": (
            most(5, Figure("times/fits", r"`StackedClassifier\(\)`", "complete", 1)),
            most(
                5, Figure("times/fits", r"`StackedClassifier\(\)`", "30 % of the cells hidden", 1)
            ),
        ),
        'the same of `"lite"`': (
            most(2, Figure("times/fits", r"`StackedClassifier\(\"lite\"\)`", "complete", 1)),
            most(
                2,
                Figure(
                    "times/fits", r"`StackedClassifier\(\"lite\"\)`", "30 % of the cells hidden", 1
                ),
            ),
        ),
        'CPU time over that of the first default, which no command fits now; `"lite"`': (
            most(2.0),
            most(1.0),
        ),
        "log loss of the stack less that of the best other, largest; 500 to 8,000 rows": (
            most(0.002, Of(Figure("rows/losses", "", "behind the best"), max, 4)),
        ),
        "its CPU time over that of boosting, most above 2,000 rows": (
            most(
                3,
                Of(Figure("rows/seconds", r"[a-z_]+; (?!500;|2000;)", "stack / boosting"), max, 1),
            ),
        ),
        "CPU seconds of a fit of the default mixture to 200 rows": (
            most(1, Figure("times/intervals", "`fit` of a mixture", "CPU seconds", 2)),
        ),
        "default mixture beside logistic regression: 18 tables; with holes; all 29; with holes": (
            beside_logistic("mixture", (*SETS[:2], *ALL))
        ),
        "default RBF network beside logistic regression: all 29; with holes": (
            beside_logistic("network", ALL)
        ),
        "calibrated kernel network, 18 tables: log loss; with holes": (
            most(0.310, Figure("rbf_network/exemplars_complete", "mean;", "log loss")),
            most(0.380, Figure("rbf_network/exemplars_with_holes", "mean;", "log loss")),
        ),
        "joint RBF network, error % on halves: wine; sonar; breast_cancer; iris": tuple(
            most(bound, Figure("rbf_network/joint", table, "error %", 1))
            for table, bound in {"wine": 3.1, "sonar": 26.0, "breast": 4.8, "iris": 5.0}.items()
        ),
        "CPU seconds of a first fit whose kernels are not compiled, three estimators": tuple(
            most(20, Figure("first_fit", kind, "first fit", 1))
            for kind in ("`MixtureDensity", "`Hybrid", "`Stacked")
        ),
        "nine labels in ten hidden: what rows without a label gain the default mixture, nats": (
            least(0, Figure("unlabelled/complete", "mixture;", "gain of the default")),
        ),
        "mean rank of the report's mixture beside a forest's; with holes": (
            most(
                Figure("real_tables/complete_ranks", "mean;", "RandomForest", 1),
                Figure("real_tables/complete_ranks", "mean;", "bayesrbf", 1),
            ),
            most(
                Figure("real_tables/with_holes_ranks", "mean;", "RandomForest", 1),
                Figure("real_tables/with_holes_ranks", "mean;", "bayesrbf", 1),
            ),
        ),
    },
    "{doc}`measured/intervals`": {
        "truths that 90 % intervals of a stack hold, complete; with holes": between(
            0.88, 0.92, "90%"
        ),
        "truths that 50 % intervals hold": between(0.46, 0.54, "50%"),
        "share of the tables on which 90 % intervals hold .82": tuple(
            least(0.9, Over(held, tables))
            for held, tables in zip(
                intervals("tables that hold .82"), intervals("tables"), strict=True
            )
        ),
        "mean width of 90 %, beside logistic regression scaled to that coverage": tuple(
            most(peer, own)
            for peer, own in zip(intervals("width", "logistic"), intervals("width"), strict=True)
        ),
        "tables of eight on which rows of a class left out have twice the width": (
            least(
                8,
                Of(
                    Figure("class_left_out", "stack", "ratio"),
                    lambda ratios: sum(one >= 2 for one in ratios),
                    0,
                ),
            ),
        ),
        "200 draws of a stack, in fits of it": (
            most(
                20,
                Over(
                    Figure("times/intervals", "`refine", "CPU seconds"),
                    Figure("times/intervals", "`fit`", "CPU seconds"),
                ),
            ),
        ),
        "loss of what is delivered less that of the validated point, largest mean, nats": (
            most(0.001, Of(Figure("delivered", ".", "worse"), max, 4)),
        ),
    },
    "{doc}`measured/density`, the report's density (trimmed pool)": {
        "log density of a cell, beside the best peer": (
            ahead_of_peers("log density a cell, m", max),
        ),
        "CRPS of hidden reals, beside the best peer": (ahead_of_peers("CRPS", min),),
        "log loss of hidden categories, beside the best peer": (ahead_of_peers("log loss", min),),
        "planted errors, precision at their number, beside the best peer": (
            ahead_of_peers("planted errors, precision", max),
        ),
        "a class left out, area under the ROC curve, beside the best peer": (
            ahead_of_peers("a class", max),
        ),
        "cells of the demo below a tail of .001; at most twice what chance explains": (
            most(
                Of(
                    Figure("density/demo", r"\d; trimmed pool", "chance below 0.001"),
                    lambda n: 2 * sum(n),
                    0,
                ),
                Of(Figure("density/demo", r"\d; trimmed pool", "below 0.001"), sum, 0),
            ),
        ),
        "the same below a tail of .01": (
            most(
                Of(
                    Figure("density/demo", r"\d; trimmed pool", "chance below 0.01"),
                    lambda n: 2 * sum(n),
                    0,
                ),
                Of(Figure("density/demo", r"\d; trimmed pool", "below 0.01"), sum, 0),
            ),
        ),
        "cells of the demo that the report lists, both seeds; chance explains one a seed": (
            most(
                2, Of(Figure("density/demo", r"\d; trimmed pool", "listed by the report"), sum, 0)
            ),
        ),
        "CPU seconds of a fit that chooses by density, median; about one was asked": (
            most(1, density("CPU seconds", digits=2)),
        ),
    },
    "{doc}`measured/questions`": {
        "least lead of `acquire` over random order on three tables, one to eight cells": ahead(
            "random"
        ),
        "the same over the best fixed order": ahead("fixed"),
    },
    "{doc}`measured/speed`": {
        "an iteration of EM, times as fast as scikit-learn's: eight settings": tuple(
            least(bound, em(row))
            for row, bound in {
                "compiled; full; apart; 100000; 10;": 12,
                "compiled; full; apart; 100000; 50;": 5,
                "compiled; full; apart; 20000; 50;": 5,
                "compiled; full; overlapping": 3,
                "compiled; full; apart; 10000; 10;": 7,
                "compiled; full; apart; 1000; 10;": 4.5,
                "compiled; diag": 7,
                "NumPy": 6,
            }.items()
        ),
        "an iteration with holes over a complete one: 5 %; 20 %; 50 % missing": tuple(
            most(bound, Figure("em_speed/holes", row, "with holes / complete", 2))
            for row, bound in {"100000; 10; 0.05": 2.5, "100000; 10; 0.2": 4.5, "20000": 13}.items()
        ),
        "an iteration over categories, times as fast as StepMix's: complete; 10 % missing": tuple(
            least(bound, Figure("em_speed/stepmix", row, "StepMix / bayesrbf", 1))
            for row, bound in {r"100000; 20; 5; 0(\.0)?;": 12, "100000; 20; 5; 0.1": 50}.items()
        ),
        "a whole fit, times as fast as scikit-learn's, eight tables: median; least": (
            least(2.5, Of(Figure("fit_speed", ".", "scikit-learn / bayesrbf"), median, 2)),
            least(1.5, Of(Figure("fit_speed", ".", "scikit-learn / bayesrbf"), min, 2)),
        ),
        "MB of the model of a report on 170 rows of wine": (
            most(2, Figure("report", "wine", "MB", 2)),
        ),
        "CPU seconds until one row of it has its interval": (
            most(0.1, Figure("report", "wine", "first row", 2)),
        ),
        "CPU seconds of a report on 900 x 38 mixed columns; on 3,772 x 28": (
            most(60, Figure("report", "mixed, 900", "CPU seconds", 0)),
            most(180, Figure("report", "mixed, 3,772", "CPU seconds", 0)),
        ),
    },
    "{doc}`measured/serve`": {
        "one row of a stack without draws, 20 a second, ms: p50; p99": (
            most(15, serve("one row", "p50, ms")),
            most(60, serve("one row", "p99, ms")),
        ),
        "1,000 rows in one request over `predict_proba`: JSON; CSV; Parquet": tuple(
            most(1.3, serve(f"1,000 rows, {kind}", "of the bare call", 2))
            for kind in ("application/json", "text/csv", "application/vnd")
        ),
        "answer of the page to a typed cell of 30, with draws, ms, p50": (
            most(150, serve("answer of the page", "p50, ms")),
        ),
        "MiB by which memory grows over 10,000 requests": (
            most(1, Figure("serve/memory", ".", "grown, MiB", 1)),
        ),
    },
    "Structure of the code, below": {
        "functions of `fit` of the default mixture; files: as first asked; as asked later": (
            most(100, house(FIT, 0)),
            most(26, house(FIT, 1)),
            most(200, house(FIT, 0)),
            most(36, house(FIT, 1)),
        ),
        "functions of its `predict_proba`; files: as first asked; as asked later": (
            most(32, house(PREDICT, 0)),
            most(12, house(PREDICT, 1)),
            most(40, house(PREDICT, 0)),
            most(16, house(PREDICT, 1)),
        ),
        "the same two of a mixture by likelihood, without a temperature": (
            most(180, house("a likelihood mixture.fit", 0)),
            most(32, house("a likelihood mixture.fit", 1)),
            most(40, house("a likelihood mixture.predict_proba", 0)),
            most(16, house("a likelihood mixture.predict_proba", 1)),
        ),
        "functions of `fit` of a stack; files": (
            most(260, house(r"StackedClassifier\.fit", 0)),
            most(45, house(r"StackedClassifier\.fit", 1)),
        ),
        "own classes in the MRO of an estimator; classes with one subclass": (
            most(4, house("own classes", 0)),
            most(0, house("classes with", 0)),
        ),
        "lines of code in a file, median; lines of the longest file": (
            least(100, house("lines of code in a file", 1)),
            most(320, house("lines of the longest file", 0)),
        ),
        "minutes of `make test`; of `make check`; of `make docs`": (most(6), most(1), most(3)),
        "lines of the package, as first asked; as asked later": (
            most(41_000, house("lines, of them code", 0)),
            most(52_000, house("lines, of them code", 0)),
            most(54_000, house("lines, of them code", 0)),
        ),
        "lines of code in it": (most(34_000, house("lines, of them code", 1)),),
        "lines of the tests": (most(42_000, house("lines of the tests", 0)),),
    },
    "{doc}`guides/fewer_cells`": {
        "loss of the stack beyond that of the class shares, largest of all patterns": (
            most(0.005, Beyond("stack", "class shares")),
        ),
        "the same of the mixture; of the kernel network": (
            most(0, Beyond("mixture", "class shares")),
            most(0, Beyond("kernel network", "class shares")),
        ),
        "loss of the stack beyond that of one pool for all rows, at no cell hidden": (
            most(0, Over(fewer("stack", "0%"), fewer("stack, one pool", "0%"), 3, sub)),
        ),
        "mean probability of the rarest class over its share, stack: least and largest pattern": (
            least(0.9, Among("any_cells/rarest", "stack;", min)),
            most(1.1, Among("any_cells/rarest", "stack;", max)),
        ),
        "truths that 90 % intervals of the stack hold: least and largest pattern": (
            least(0.85, Among("any_cells/held", "stack; held;", min)),
            most(0.95, Among("any_cells/held", "stack; held;", max)),
        ),
    },
    "{doc}`trust`, how often it was tried": {
        "hostile files with names": (least(200, tried("artefact", "hostile files", "tried")),),
        "mutated model files": (
            least(9_000, Of(tried("artefact", ".*one value of its file", "tried"), total, 0)),
        ),
        "manifests at random": (least(10_000_000, tried("fuzz", "manifests")),),
        "kills at saving": (least(200, tried("artefact", "`save` killed")),),
        "rows through `bayesrbf predict`: model without draws; with draws": (
            least(1_000_000, tried("large", r"rows through .*\.csv")),
            least(1_000_000, tried("large-draws", r"rows through .*\.csv")),
        ),
        "wrong requests to a server": (least(10_000, tried("serve", "requests at random")),),
        "fits and draws in a loop": (least(1_000, tried("load", "fits and draws")),),
        "simulations, least of the mixtures; of the other families": (
            least(1_000, Of(tried("sbc", "."), min, 0)),
            least(1_000, Of(tried("families", "."), min, 0)),
        ),
        "sets of tables of a planted defect, least": (
            least(20, Of(tried("defects", "."), min, 0)),
        ),
        "tables for the coverage of an approximation, least": (
            least(200, Of(tried("approximations", "."), min, 0)),
        ),
        "seeds of degenerate tables: fits; draws": (
            least(5, Of(tried("degenerate", "."), min, 0)),
            least(5, Of(tried("degenerate-draws", "."), min, 0)),
        ),
        "attacks of all sections that got through": (
            most(0, Sum(tuple(tried(name, ".", "got through") for name in ATTACKS))),
        ),
    },
}
