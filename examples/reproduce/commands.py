"""Commands that compute published figures; heavy imports wait until one runs."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bayesrbf.app.arguments import Names, names_in

app = App(
    name="reproduce",
    help="Compute the figures of published experiments; a run that was stopped goes on.",
    help_format="plaintext",
)


@app.command
def caetano(*, out: Path = Path("reproduction"), quick: bool = False, seeds: int = 10) -> None:
    """RBF networks and their rivals: few labels, the link, annihilation, numbers.

    The tables lie in the folder that the variable BAYESRBF_DATA names.

    Parameters
    ----------
    out : Path
        Folder of the figures; what it holds is not computed again.
    quick : bool
        One split of two small tables, to see that it runs.
    seeds : int
        Number of splits otherwise.
    """
    from reproduce.caetano import run

    run(out, quick=quick, seeds=seeds)


@app.command
def ferreira(*, out: Path = Path("reproduction"), quick: bool = False, seeds: int = 10) -> None:
    """Alternations with and without a link, beside centres that are found first.

    The tables lie in the folder that the variable BAYESRBF_DATA names.

    Parameters
    ----------
    out : Path
        Folder of the figures; what it holds is not computed again.
    quick : bool
        One seed on the smaller table, to see that it runs.
    seeds : int
        Number of seeds otherwise.
    """
    from reproduce.ferreira import run

    run(out, quick=quick, seeds=seeds)


@app.command
def nebel(*, out: Path = Path("reproduction"), quick: bool = False, seed: int = 0) -> None:
    """Median LVQ and its rivals on five tables of dissimilarities.

    The tables lie in the folder that the variable BAYESRBF_DATA names.

    Parameters
    ----------
    out : Path
        Folder of the figures; what it holds is not computed again.
    quick : bool
        Two folds of the smallest table, to see that it runs.
    seed : int
        Seed of everything random.
    """
    from reproduce.nebel import run

    run(out, quick=quick, seed=seed)


@app.command
def roth(*, out: Path = Path("reproduction"), quick: bool = False, images: int = 60_000) -> None:
    """Hybrid mixtures beside their likelihood and support vector machines.

    The tables lie in the folder that the variable BAYESRBF_DATA names.

    Parameters
    ----------
    out : Path
        Folder of the figures; what it holds is not computed again.
    quick : bool
        Small tables, and 2,000 rows of images alone.
    images : int
        Most images to learn from; in principal components a class has five components above 20,000.
    """
    from reproduce.roth import run

    run(out, quick=quick, images=images)


@app.command
def sdgm(*, out: Path = Path("reproduction"), quick: bool = False, images: int = 60_000) -> None:
    """Sparse discriminative Gaussian mixtures beside Gaussian processes and softmax.

    The tables lie in the folder that the variable BAYESRBF_DATA names.

    Parameters
    ----------
    out : Path
        Folder of the figures; what it holds is not computed again.
    quick : bool
        One split of the smallest table and one chequerboard, to see that it runs.
    images : int
        Images of MNIST to learn from, where PyTorch is installed.
    """
    from reproduce.hayashi import run

    run(out, quick=quick, images=images)


@app.command
def tabular(
    *,
    data: Path | None = None,
    out: Path = Path("reproduction"),
    folds: int = 2,
    tables: Names = (),
) -> None:
    """The default stack beside pretrained models, boosting and others, on their folds and tables.

    Parameters
    ----------
    data : Path, optional
        Folder of the tables; by default the folder that the variable BAYESRBF_DATA names.
    out : Path
        Folder of the figures; what it holds is not computed again.
    folds : int
        How many of the five published folds of OpenML-CC18 are run; TabZilla's tables have ten.
    tables : tuple of str
        Tables to run: vehicle,sonar or repeated; by default all.
    """
    from reproduce.tabular import run

    run(out, data=data, folds=folds, tables=names_in(tables))


@app.command
def small(
    *, data: Path | None = None, out: Path = Path("reproduction"), tables: Names = ("choosing",)
) -> None:
    """The default stack beside pretrained and tuned models on small tables of UCI.

    The published figures are of August 2026. Rivals were tuned in four inner folds.

    Parameters
    ----------
    data : Path, optional
        Folder of small_tables.zip; by default the folder that the variable BAYESRBF_DATA names.
    out : Path
        Folder of the figures; what it holds is not computed again.
    tables : tuple of str
        Tables to run: choosing, judging (half of the tables each), or names such as iris,wine.
        Choices among models rest on the first half; run the second once, when all is chosen.
    """
    from reproduce.tabular import run_small

    run_small(out, data=data, tables=names_in(tables))
