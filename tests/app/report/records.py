"""A report of synthetic numbers, with one text in every slot, and its page."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.dummy import DummyClassifier

import bayesrbf
from bayesrbf.answers.comparisons import RowsOf, given_score, performance_by
from bayesrbf.answers.performance import EventForecasts
from bayesrbf.answers.scores import Counted, Interval, calibration, proportion
from bayesrbf.app.report import performance, trust
from bayesrbf.app.report.collect import Report
from bayesrbf.app.report.column_effects import ColumnEffects, Contribution, Effect
from bayesrbf.app.report.costs import Costs
from bayesrbf.app.report.density import OddCell
from bayesrbf.app.report.described import Described
from bayesrbf.app.report.diagnostics import Diagnostics
from bayesrbf.app.report.filled import Filled, Imputations
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.learned import ClassCells, ClassColumn, Learned, Member
from bayesrbf.app.report.oddities import Oddities, OddLabel
from bayesrbf.app.report.options import ANYTHING
from bayesrbf.app.report.reading import Column, Reading
from bayesrbf.app.report.refits import Refits
from bayesrbf.app.report.render import render
from bayesrbf.app.report.scores import Check, MeanScores
from bayesrbf.app.report.subgroups import Subgroup, Subgroups
from bayesrbf.app.report.uncertain_rows import NovelRow, UncertainRows, UnsureRow
from bayesrbf.inference.diagnose import Finding


def class_cells(rng: np.random.Generator) -> ClassCells:
    """Bars, a point mass and a curve."""
    values, mass, grid = np.array([0.3]), np.array([0.4]), np.linspace(0, 1, 7)
    return ClassCells(20, rng.random(4), values, mass, grid, rng.random(7))


@cache
def synthetic(text: str = "x", n_classes: int = 3) -> Report:
    """Every slot filled; ``text`` stands wherever a table can put a text."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n_classes), 90)
    labels = p.argmax(1)
    classes = tuple(f"{text}{c}" for c in range(n_classes))
    found = calibration(p, labels, n_resamples=20)
    scores = tuple(
        MeanScores(name, (0.4 + i, 0.02), (0.2, 0.01), (0.9, 0.01), Interval(0.9, 0.7, 1.1), found)
        for i, name in enumerate(("this model", "class frequencies", "logistic regression"))
    )
    flat = np.full(p.shape, 1 / n_classes)
    tables = {"this model": p, "class frequencies": flat, "logistic regression": p}
    held_out = HeldOutRows(classes, labels, np.arange(90) % 5, tables)
    three = "this model", "class frequencies", "logistic regression"
    columns = (
        Column(f"{text} real", "real", 0.25, "0 to 1", rng.random(20)),
        Column(f"{text} cat", "categorical", 0.0, f"2 levels: {text}, b", np.array([3.0, 2.0])),
    )
    return Report(
        title=text,
        target=text,
        classes=classes,
        scores=scores,
        folds=5,
        judged=trust.compute(held_out, ANYTHING, *three),
        performance=replace(
            performance.compute(held_out, ANYTHING, three[0], three[2]),
            confusion=rng.integers(0, 30, (n_classes, n_classes)),
        ),
        subgroups=Subgroups(40, (Subgroup(text, text, 20, 0.4, proportion(0.8, 20), 1e-5),)),
        reading=Reading(
            rows=90,
            columns=columns,
            class_counts=dict.fromkeys(classes, 30),
            unlabelled=7,
            holes=rng.random((30, 2)),
            band=3,
            patterns=4,
            notes=(f"Column {text} is odd.",),
        ),
        uncertain_rows=UncertainRows(
            aleatoric=rng.random(90),
            epistemic=rng.random(90) / 10,
            outcome=rng.integers(-1, 2, 90),
            rows=(UnsureRow("3", text, text, 0.5, 0.2, 0.8, 0.6, 0.05, text, f"measure {text}"),),
            judged=60,
            below=5,
            threshold=0.9,
            novel=(
                NovelRow(text, 0.996, text, text, text, 0.7, True),
                NovelRow(text, 0.99, text, text, text, 0.98, False),
            ),
            intervals="Nobody tried.",
        ),
        oddities=Oddities(
            cells=(OddCell("9", text, text, text, 1e-9),),
            n_cells=1,
            labels=(OddLabel("5", text, text, 0.01),),
            improbable=Counted(12, 5.0, 2, 8),
            bound=0.05,
            density=f"The density has 2 components; 10 % of {text} are exactly 0.",
        ),
        column_effects=ColumnEffects(
            contributions=(Contribution(text, 0.3, 0.2), Contribution("other", 0.2, 0.1)),
            effects=(
                Effect(text, (), np.linspace(0, 1, 4), np.full(4, 0.25), p[:4], (text, text)),
                Effect(text, (text, "b"), np.arange(2.0), np.full(2, 0.5), p[:2]),
            ),
            base=flat[0],
        ),
        learned=Learned(
            by_class=(
                ClassColumn(text, np.linspace(0, 1, 5), (), (class_cells(rng),) * n_classes),
                ClassColumn(
                    text,
                    np.arange(3.0),
                    (text, text),
                    (ClassCells(9, rng.random(2)),) * n_classes,
                ),
            ),
            component_names=classes,
            weights=(1 / n_classes,) * n_classes,
            means=((text, ("1",) * n_classes, (0.1,) * n_classes),),
            members=(
                Member("a network", 0.6, 0.5, 0.2, 0.8, 1.1, 0.4),
                Member(text, 0.4, 0.5, 0.2, 0.8, 0.9, 0.5),
            ),
            relevances=((text, 1.0), ("silent", 0.05)),
        ),
        imputations=Imputations(
            missing=3,
            examples=(Filled("2", text, text, "1 to 2", text),),
            nominal=np.array([0.5, 0.9]),
            covered=np.array([0.45, 0.91]),
            n_checked=40,
            hidden_truth=True,
            truth=rng.normal(size=40),
            filled=rng.normal(size=40),
            error=(("this model", 0.4), ("the column's mean", 1.0)),
        ),
        diagnostics=Diagnostics(
            inference="Laplace.",
            status=("Converged.",),
            findings=(
                Finding("rhat_parameters", 1.001, "Fine.", True),
                Finding("pareto_k", 0.9, "Above 0.7.", False),
            ),
            variables=(("means", 6, 1.001, 900.0), ("weights", 3, float("nan"), float("nan"))),
            warnings=(f"Category {text} was not seen.",),
        ),
        described=Described(
            estimator="StackedClassifier",
            message=f"Among 2 candidates the rule chose: {text}.",
            assumptions="Labels are summed out.",
            priors=(("means", "Normal"),),
            trials=((text, 0.4, True), ("other", 0.5, False)),
            facts=(("command", f"bayesrbf report {text}"),),
        ),
        parts=(
            performance_by(
                text,
                [RowsOf(text, np.arange(90) % 4 == k) for k in range(4)]
                + [RowsOf("few", np.arange(90) < 3, exchangeable=False)],
                EventForecasts(text, p[:, 0], labels == 0),
                widths=np.full(90, 0.2),
            ),
        ),
        score=given_score(
            text,
            rng.normal(size=90),
            EventForecasts(text, p[:, 0], labels == 0),
            np.arange(90) % 5,
        )
        if n_classes == 2
        else None,
        refits=Refits(
            stability=bayesrbf.stability(
                DummyClassifier(), p, np.array(classes)[labels], refits=3, threshold=0.4
            ),
            recipe=f"Each was {text}.",
            learning=bayesrbf.LearningCurve(
                90, np.array([45, 90, 180]), 0.4, *rng.random((3, 3, 2))
            ),
        ),
        costs=Costs(
            class_costs=tuple((name, 1.0) for name in classes),
            rows=(("this model", 0.1), ("the same", 0.4)),
            dearest=text,
            dearest_cost=0.6,
            along=np.linspace(0, 1, 5),
            curves=(("this model", rng.random(5)), ("the same", rng.random(5))),
            by_class=(2.0,) * n_classes,
        ),
        check=Check(rows=7, log_loss=0.3, accuracy=0.9, outside=0),
    )


@cache
def rendered(text: str = "x", n_classes: int = 3) -> str:
    """The page of a synthetic report."""
    return render(synthetic(text, n_classes))
