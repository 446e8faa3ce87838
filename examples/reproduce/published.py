"""Published figures, to be printed beside ours: by row and column of the tables printed here.

A column without a counterpart here keeps the paper's name. Errors are in %.

References
----------
.. [1] Caetano (2018), tables 1 to 3; Ferreira and Figueiredo (2006).
.. [2] Hayashi, Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR,
   tables 1 and 2.
.. [3] Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity
   data, ESANN, table 1.
.. [4] Roth (2016), Hybrid generative-discriminative training of Gaussian mixture models,
   master's thesis, tables 4.1, B.1 to B.3, B.5 and B.7.
.. [5] Zrnec, results of a thesis (repository Diplomsko-delo_Koda), July 2026: AUROC on
   `StratifiedKFold(5, shuffle=True, random_state=42)`, rows in OpenML's order.
.. [6] McElfresh et al. (2023), When do neural nets outperform boosted trees on tabular data?,
   NeurIPS; results of its repository naszilla/tabzilla on OpenML's ten folds.
.. [7] SmallDataBenchmarks (repository firefly1248/SmallDataBenchmarks), August 2026: average
   precision on `StratifiedKFold(4, shuffle=True, random_state=0)`, small tables of UCI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

Published = Mapping[str, Mapping[str, str]]  # Figures by row and column.
NONE: Final[Published] = MappingProxyType({})


def beside(
    header: Sequence[str], rows: Iterable[Sequence[str]], published: Published
) -> tuple[list[str], list[list[str]]]:
    """Put a column *paper* on the right of each of ours, with a dash where a figure is missing.

    Published rows that our table lacks are dropped; published columns that it lacks come last.

    >>> beside(["", "a", "b"], [["iris", "2.0", "3.0"]], {"iris": {"a": "2.5", "c": "9.0"}})
    (['', 'a', 'paper', 'b', 'paper: c'], [['iris', '2.0', '2.5', '3.0', '9.0']])
    """
    table = [list(row) for row in rows]
    found = [published.get(row[0], {}) for row in table]
    known = dict.fromkeys(name for figures in found for name in figures)

    def paper(name: str) -> list[str]:
        return [figures.get(name, "-") for figures in found]

    columns: list[tuple[str, list[str]]] = []
    for position, name in enumerate(header):
        columns.append((name, [row[position] for row in table]))
        if name in known:
            columns.append(("paper", paper(name)))
    columns += [(f"paper: {name}", paper(name)) for name in known if name not in header]
    lines = zip(*(cells for _, cells in columns), strict=True)
    return [name for name, _ in columns], [list(line) for line in lines]


def _table(columns: str, rows: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Figures by row and column; a semicolon parts columns, a blank figures, a dash is none."""
    names = columns.split("; ")
    return {
        row: {
            name: figure.replace("(", " (")
            for name, figure in zip(names, figures.split(), strict=True)
            if figure != "-"
        }
        for row, figures in rows.items()
    }


def _in_decimals(figures: Iterable[str]) -> str:
    """Figures in 1/10,000 as a row of a table.

    >>> _in_decimals(["7238", "-"])
    '0.7238 -'
    """
    return " ".join(one if one == "-" else f"{int(one) / 1e4:.4f}" for one in figures)


def _by_share(shares: Sequence[int], rows: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Caetano's figures of every table, a figure a share of labelled rows."""
    names = (f"{row}, {share} %" for row in rows for share in shares)
    return _table("Caetano", dict(zip(names, " ".join(rows.values()).split(), strict=True)))


CAETANO_1: Final = _table(
    "Caetano; logistic; KNN; LRC; ROLS; RBFNnl; nRNwr; nRNrb; SVM; nRBFN",
    {
        "iris": "3.3(1.8) 7.9(0.0) 5.3 18.7 4.0 5.3 6.7 5.3 5.3 5.3",
        "breast_cancer": "7.6(1.4) 4.9(0.1) 6.3 6.3 8.5 4.9 7.7 5.6 4.6 4.9",
        "glass": "56.8(2.6) 45.8(0.0) 39.0 43.8 36.2 67.6 50.5 36.2 31.4 38.1",
        "sonar": "33.6(6.1) 25.2(0.0) 33 23.3 18.4 22.3 21.4 18.4 18.4 18.4",
        "wine": "7.1(4.3) 7.3(0.9) 33.0 3.4 1.1 5.7 6.8 1.1 2.3 1.1",
        "colon": "20.9(7.5) 25.2(4.9) 35.5 16.1 - - - - - -",
        "leukemia": "10.9(6.5) 32.9(3.5) 41.2 17.6 20.6 17.6 20.6 20.6 23.5 20.6",
    },
)
"""Table 1: complete labels, the split of the paper's reference 13."""
CAETANO_2: Final = _by_share(
    (85, 50, 25),
    {
        "iris": "3.2(1.8) 3.2(1.4) 7.2(7.7)",
        "breast_cancer": "7.2(1.4) 7.6(1.6) 8.8(1.8)",
        "glass": "57.5(2.6) 57.7(3.4) 57.9(3.5)",
        "sonar": "32.4(8.2) 35.7(6.6) 40.2(5.5)",
        "wine": "10.1(9) 21.0(14.7) 36.4(22.8)",
        "colon": "20.6(9.9) 23.9(7.5) 29.4(14.5)",
        "leukemia": "10.9(6.9) 12.6(10.6) 14.4(12.2)",
    },
)
"""Table 2: a share of the rows is labelled, the others train the mixture."""
CAETANO_3: Final = _by_share(
    (100, 85, 50, 25, 5),
    {
        "mushroom": "0.8(0.6) 0.9(0.7) 1.5(0.5) 2.3(1.4) 6.8(3.2)",
        "census": "18.6(0.7) 18.2(1.0) 18.7(1.1) 18.9(1.0) 18.8(1.1)",
    },
)
"""Table 3: the same on categorical tables."""
CAETANO_LINK: Final = _table("three Gaussians", {"0": "8.9", "10000": "1.2"})
"""By gamma: without the link, and with it; the paper's three Gaussians differ from ours."""
FERREIRA: Final = _table(
    "EM + LS; EM + LR; EM-LR; EM-LR-Link; EM-LR-Link-K", {"ripley": "11.1 11.1 11.1 10.1 8.7"}
)
SDGM_1: Final = _table(
    "SDGM; process; MGP; RVM",
    {
        "ripley": "9.1 9.1 9.3 9.3",
        "banana": "10.6 10.5 10.7 10.8",
        "titanic": "22.6 22.6 22.8 23.0",
        "breast_cancer": "29.4 30.4 30.7 29.9",
        "waveform": "10.1 10.4 9.6 10.9",
    },
)
"""Table 1: errors."""
SDGM_1_WEIGHTS: Final = _table(
    "SDGM; process; MGP; RVM",
    {
        "ripley": "6 250 1250 4",
        "banana": "11.1 400 2000 11.4",
        "titanic": "74.5 150 750 65.3",
        "breast_cancer": "15.7 200 1000 6.3",
        "waveform": "11.0 400 2000 14.6",
    },
)
"""Table 1: weights that are not zero."""
SDGM_2: Final = _table(
    "error %",
    {
        "2 features, softmax": "3.19",
        "2 features, SDGM": "1.81",
        "2 features, softmax, 30 epochs": "3.19",
        "2 features, SDGM, 30 epochs": "1.81",
        "10 features, softmax": "1.01",
        "10 features, SDGM": "0.86",
    },
)
"""Table 2: MNIST."""
AURAL_SONAR: Final = (
    "aural sonar",
    "aural sonar, 3 a class",
    "aural sonar, 3 a class, directions",
    "aural sonar, 3 a class, class directions",
)
"""Our rows of one table of the paper."""
NEBEL: Final = _table(
    "RSLVQ, generalised EM; GLVQ, generalised EM; relational or kernel; affinity propagation; "
    "SVM, clipped",
    {
        "votes": "4.4 4.4 5.34 6.5 4.89",
        "votes, value differences": "4.4 4.4 5.34 6.5 4.89",
        **dict.fromkeys(AURAL_SONAR, "9.0 9.3 11.25 31.5 12.0"),
        "chromosomes": "14.6 11.1 4.29 10.5 2.45",
    },
)
"""Table 1: errors, where the paper has accuracies."""
NEBEL_PROTOTYPES: Final = _table(
    "RSLVQ, generalised EM; GLVQ, generalised EM; relational or kernel",
    {
        "votes": "20 20 20",
        "votes, value differences": "20 20 20",
        **dict.fromkeys(AURAL_SONAR, "6 6 10"),
        "chromosomes": "105 105 21",
    },
)
"""Table 1: prototypes of median and of relational LVQ."""
ROTH_4_1: Final = _table(
    "ML; hinge; MCL; MM; linear SVM; RBF SVM",
    {
        "mnist": "13.94 6.56 7.28 7.88 5.38 1.61",
        "mnist50": "4.32 3.20 3.45 2.88 6.37 1.62",
        "mnist50, diagonal": "4.32 3.20 - - - -",
        "usps": "7.77 4.87 6.00 5.13 4.63 1.97",
        "iris": "2.67 2.00 4.00 - 2.00 2.00",
        "breast_cancer": "4.39 2.05 3.00 - 2.10 1.75",
        "segment": "13.00 10.14 9.43 - 7.90 8.14",
    },
)
"""Table 4.1; the thesis' hybrid stands beside the hinge, because that is its objective."""


def _across(rows: str, columns: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """A table of the paper whose columns are our rows."""
    turned = zip(*(figures.split() for figures in columns.values()), strict=True)
    lines = dict(zip(rows.split("; "), map(" ".join, turned), strict=True))
    return _table("; ".join(columns), lines)


def _shares(prefix: str) -> str:
    """Our names of rows, by share of hidden cells."""
    return "; ".join(f"{prefix} {share}%" for share in range(0, 100, 10))


ROTH_B: Final = {
    **_across(
        _shares("mnist, MCAR"),
        {
            "ML": "13.94 13.69 14.00 13.84 13.90 13.99 14.48 15.44 17.83 23.73",
            "hinge": "6.73 7.17 7.38 7.77 8.56 9.44 10.80 12.65 16.50 24.82",
            "MCL": "8.10 8.25 8.68 8.72 9.08 8.98 9.84 11.38 14.46 22.02",
            "MM": "8.49 8.81 8.81 9.35 9.60 9.95 11.08 12.43 14.80 23.36",
            "linear SVM, mean": "5.38 6.01 7.41 11.26 18.76 28.68 39.77 53.47 68.39 78.31",
            "linear SVM, 3-NN": "5.38 4.95 4.56 4.51 4.42 4.69 4.90 5.46 7.48 14.03",
            "RBF SVM, mean": "1.61 2.05 3.79 12.67 26.80 43.60 64.04 82.87 89.76 90.26",
            "RBF SVM, 3-NN": "1.61 1.69 1.95 2.07 2.55 3.02 3.68 4.29 6.54 13.78",
        },
    ),
    **_across(
        _shares("mnist50, MCAR"),
        {
            "ML": "4.32 4.79 5.15 5.63 6.68 8.62 12.31 19.33 33.60 58.17",
            "hinge": "3.20 3.75 4.44 5.16 6.49 8.94 12.89 20.06 34.80 58.57",
            "MCL": "3.75 4.16 4.66 5.36 6.77 9.06 12.87 20.07 34.24 58.09",
            "MM": "2.88 3.55 4.64 6.19 8.58 12.06 17.13 24.99 39.16 60.61",
            "linear SVM, mean": "6.37 15.60 23.84 33.26 42.08 50.35 59.03 66.79 74.14 82.39",
            "linear SVM, 3-NN": "6.37 6.24 6.26 6.58 7.02 8.09 12.25 20.54 38.40 68.68",
            "RBF SVM, mean": "1.62 2.94 5.78 11.56 19.94 31.52 45.10 57.51 70.15 80.65",
            "RBF SVM, 3-NN": "1.62 1.86 2.03 2.78 3.87 5.54 9.76 18.07 36.80 65.81",
        },
    ),
    **_across(
        _shares("mnist50, diagonal, MCAR"),
        {
            "ML": "4.32 4.79 5.15 5.63 6.68 8.62 12.31 19.33 33.60 58.17",
            "hinge": "3.20 3.75 4.44 5.16 6.49 8.94 12.89 20.06 34.80 58.57",
        },
    ),
    **_across(
        _shares("usps, MCAR"),
        {
            "ML": "7.77 7.77 7.73 7.10 8.87 7.93 8.40 9.20 11.77 19.87",
            "hinge": "4.87 4.83 5.30 5.77 5.67 6.13 7.27 8.17 12.50 20.90",
            "MCL": "7.10 6.93 7.03 6.80 7.90 7.43 7.77 8.97 11.57 19.70",
            "MM": "4.70 4.70 5.53 5.87 6.40 7.50 7.63 8.80 11.03 19.10",
            "linear SVM, mean": "4.63 5.00 5.60 7.73 12.27 21.30 37.63 57.17 72.60 84.07",
            "linear SVM, 3-NN": "4.63 4.50 4.00 3.87 4.67 5.23 6.07 7.78 11.20 20.17",
            "RBF SVM, mean": "1.97 2.37 3.17 7.80 18.17 31.97 50.10 68.70 80.47 88.60",
            "RBF SVM, 3-NN": "1.97 2.13 2.27 2.77 3.27 3.87 5.43 6.67 10.73 19.37",
        },
    ),
}
"""Tables B.1 to B.3: hidden cells of test rows; USPS are pixels."""
ROTH_B_5: Final = _across(
    _shares("hidden"),
    {
        "λ = 0": "12.27 12.10 12.73 12.73 13.07 13.93 14.90 15.70 19.20 28.23",
        "λ = 0.1": "11.83 11.67 12.23 12.37 12.90 13.53 14.43 15.53 19.00 28.17",
        "λ = 1": "9.87 10.00 10.33 11.10 11.03 11.73 13.37 13.93 17.87 27.93",
        "λ = 10": "7.93 8.17 8.37 9.23 9.53 10.57 12.60 13.83 19.83 30.47",
        "λ = 100": "7.57 7.70 9.03 9.47 9.97 12.37 15.47 16.90 23.20 34.90",
        "λ = 1000": "6.93 7.33 7.97 9.20 9.63 11.30 14.60 17.40 23.93 36.93",
        "λ = 10000": "6.30 6.60 8.13 9.97 12.17 15.73 20.33 23.93 33.60 49.93",
    },
)
"""Table B.5: the weight of the hinge."""
ROTH_B_7: Final = _across(
    "; ".join(f"{n} labels" for n in (500, 1000, 2500, 5000, 10000, 25000, 50000)),
    {
        "hinge 0": "18.67 14.01 9.22 6.88 5.17 4.01 3.20",
        "hinge cv": "13.94 10.61 7.14 5.29 4.48 3.72 3.20",
        "linear SVM": "18.69 13.14 9.63 8.31 7.64 7.00 6.37",
        "RBF SVM": "14.38 9.40 6.01 4.22 3.02 2.01 1.62",
    },
)
"""Table B.7: few labels, the other rows dropped ("SV") or used ("SSL")."""
CC18_FOLDS: Final = MappingProxyType(
    {
        "balance-scale": "10000 10000 10000 9977 10000 10000 9997 9983 9994 10000 9465 9517 9495 "
        "9586 9533 9139 9272 9316 9267 9263 9280 9263 9269 9401 9363 8256 8302 8378 8295 8550",
        "cmc": "7508 7630 7559 7380 7458 7469 7717 7468 7384 7485 7191 7454 7138 7368 7241 "
        "7015 7091 7039 7176 7261 6997 7083 6909 7162 7376 6836 7014 6994 7204 7060",
        "credit-g": "7927 7632 7958 8318 8058 7870 7661 8005 8173 8114 8044 7487 7768 8313 7854 "
        "7781 7412 7394 8020 7731 7874 7506 7869 7825 7845 7826 7801 7613 8148 7673",
        "tic-tac-toe": "9996 10000 9996 9995 10000 9999 9996 9983 9992 9996 10000 10000 10000 "
        "10000 10000 9998 9999 9939 10000 10000 10000 10000 10000 10000 10000 9983 10000 9933 "
        "9931 9918",
        "eucalyptus": "9398 9263 9304 9142 9408 9429 9239 9383 9299 9444 9312 8906 9256 9128 9104 "
        "9209 8887 9158 9133 9117 9151 8964 9217 9005 9122 9173 8946 9127 9057 9228",
        "kc2": "7870 8907 8141 9168 7656 7881 8880 8135 9231 7886 8007 8760 7952 8721 6974 "
        "7738 8426 7785 8210 6856 7897 7746 7269 7958 6684 7911 8530 7843 9062 7192",
        "banknote-authentication": "10000 10000 10000 10000 10000 10000 10000 10000 10000 10000 "
        "10000 10000 10000 9999 10000 10000 9997 10000 9997 10000 10000 9999 10000 10000 10000 "
        "10000 10000 9999 9997 9998",
        "ilpd": "8041 7821 7388 7693 8039 8232 7980 7853 7769 8164 7807 7605 7268 7809 7890 "
        "7615 7229 7027 7711 7780 7399 6914 6981 7740 7868 7630 7231 7142 7733 7892",
        "climate-model-simulation-crashes": "9898 9686 9888 8676 9540 9918 9742 9809 8911 9719 "
        "9786 9618 9978 9024 9226 9561 9461 9865 8552 9405 9612 9551 9888 9080 8844 9735 8917 "
        "9321 8406 8721",
        "qsar-biodeg": "9381 9432 9591 9356 9525 9379 9452 9605 9427 9540 9204 9393 9437 9333 9409 "
        "9299 9370 9389 9333 9430 9087 9323 9347 9267 9412 9285 9376 9355 9369 9367",
        "pc3": "8907 8723 9000 8099 8290 8896 8917 8976 8318 8408 8316 8556 8604 8205 8323 "
        "8391 8471 8764 7450 8096 8411 8406 8618 7558 8307 8380 8631 8971 7563 8133",
        "steel-plates-fault": "9765 9692 9791 9811 9733 9790 9708 9776 9801 9734 9707 9589 9679 "
        "9705 9634 9688 9606 9709 9738 9635 9659 9578 9695 9723 9613 9609 9488 9667 9652 9588",
        "mfeat-zernike": "9833 9845 9810 9845 9841 9905 9915 9929 9932 9932 9759 9765 9724 9713 "
        "9765 9647 9684 9632 9637 9687 9680 9704 9673 9657 9691 9670 9695 9639 9638 9735",
        "mfeat-karhunen": "9999 9998 9995 9998 9999 10000 9999 9995 9999 10000 9989 9990 9990 "
        "9990 9997 9986 9989 9978 9977 9994 9975 9983 9973 9965 9994 9970 9972 9979 9964 9989",
        "vehicle": "9853 9712 9761 9835 9777 9816 9740 9765 9811 9779 9338 9480 9278 9318 9278 "
        "9280 9367 9189 9310 9200 9262 9407 9208 9299 9236 9332 9307 9157 9357 9298",
    }
)
"""AUROC in 1/10,000: five folds of the first method, five of the second, and so on."""
CC18: Final = tuple(
    _table(
        "TabPFN-3; TabICL v2; CatBoost; LightGBM; XGBoost; random forest",
        {name: _in_decimals(figures.split()[fold::5]) for name, figures in CC18_FOLDS.items()},
    )
    for fold in range(5)
)
"""The same by fold: tables of OpenML-CC18 with at most 2,000 rows, all methods with defaults."""
CC18_LOG_LOSS: Final = MappingProxyType(
    {
        "balance-scale": 0.0284,
        "cmc": 0.8977,
        "credit-g": 0.4946,
        "tic-tac-toe": 0.0106,
        "eucalyptus": 0.6585,
        "kc2": 0.3615,
        "banknote-authentication": 0.0000,
        "ilpd": 0.5009,
        "climate-model-simulation-crashes": 0.1233,
        "qsar-biodeg": 0.2949,
        "pc3": 0.2602,
        "steel-plates-fault": 0.5096,
        "mfeat-zernike": 0.3217,
        "mfeat-karhunen": 0.0896,
        "vehicle": 0.2927,
    }
)
"""Log loss of the best of TabZilla's 22 methods, chosen for each of these tables by this loss, in
OpenML's ten folds."""
SMALL_FIGURES: Final = MappingProxyType(
    {
        "appendicitis": "7238 7133 9497 7386 7384 7047 7163 7375 7370 7210 7342 7700",
        "autoUniv-au6-1000": "2878 2729 2570 2287 2235 2309 2363 1583 2649 1616 1617 2837",
        "autoUniv-au6-cd1-400": "3478 3506 4164 3346 3373 3383 3345 2373 3992 2389 2340 3892",
        "autoUniv-au7-700": "5677 5858 5634 5520 5475 5534 5568 4755 5621 4399 4383 4299",
        "balance-scale": "9966 9964 9332 9579 9592 9560 9582 9824 9107 9477 9920 8231",
        "blogger": "8881 8913 7849 8514 8298 8387 8431 8892 8479 8297 8396 8447",
        "breast-cancer-wisconsin": "9888 9882 9839 9832 9769 9760 9819 9868 9796 9855 9848 9401",
        "car-evaluation": "9996 9996 10000 9992 9996 10000 9999 9608 9982 8446 9994 8127",
        "colon32": "8783 8674 8291 8757 8521 8219 8989 8332 8806 8828 8699 8614",
        "connectionist-vowel": "10000 9998 8044 9966 9823 9847 9932 9982 9899 7545 9914 -",
        "contraceptive-method-choice": "6180 6151 6094 6159 6139 6146 6056 5805 6136 5489 5897 "
        "5205",
        "flare": "7504 7494 7386 7349 7338 7384 7376 7241 7295 7332 7325 6551",
        "habermans-survival": "4796 4993 4560 4401 4314 4381 4162 4597 4808 4526 4791 4002",
        "heart-disease-processed-hungarian": "8592 8621 8340 8502 8366 8400 8281 8384 8304 8614 "
        "8468 8059",
        "hill-valley-with-noise": "9967 9968 9219 5560 6421 6631 9613 9429 5805 9619 7736 9992",
        "indian-liver-patient": "5775 5617 5285 5018 4801 4598 4941 5106 4944 5164 5052 4173",
        "iris": "9931 9970 9960 9928 9776 9803 9845 9931 9881 9941 9916 9504",
        "leukemia-haslinger": "9233 8994 9126 9168 9004 9265 9145 9286 9133 9188 9294 9001",
        "meta-data": "2031 1264 555 572 677 631 840 2095 845 817 671 -",
        "monks1": "10000 10000 10000 10000 10000 10000 10000 9999 10000 8166 10000 7463",
        "movement-libras": "9733 9694 8602 9036 8134 8379 8270 9069 8562 7852 9016 -",
        "parkinsons": "9979 9952 9459 9924 9806 9859 9910 9858 9821 9680 9931 9956",
        "planning-relax": "3128 3461 3188 3637 2800 2478 2741 4044 3658 2680 3209 3347",
        "robot-failure-lp1": "9660 9693 9739 9340 8872 9263 9450 8311 9204 6547 8623 9760",
        "robot-failure-lp5": "8179 8100 7835 7450 7412 7365 7254 7196 7391 4207 5933 7859",
        "seeds": "9949 9968 9800 9842 9804 9781 9770 9918 9721 9940 9891 9931",
        "statlog-australian-credit": "9250 9322 9207 9215 9174 9213 9290 9174 9183 9188 9139 9312",
        "statlog-german-credit-numeric": "6538 6552 6367 6386 6568 6438 6373 5959 6327 6140 6299 "
        "6552",
        "statlog-vehicle-silhouettes": "9572 9446 8575 8387 8321 8406 8586 8987 8240 8631 8910 "
        "9278",
        "teaching-assistant-evaluation": "7579 7671 7254 6735 6355 5703 5778 6200 6674 5744 6058 "
        "7440",
        "thyroid-newthyroid": "9947 9969 9961 9930 9929 9877 9909 9940 9919 9948 9865 9940",
        "vertebra-column-2c": "8978 8953 8634 8793 8673 8556 8437 8508 8589 8720 8706 8898",
        "volcanoes-a2": "9277 9235 9270 9272 9262 9253 9256 9162 9257 9262 9254 9247",
        "volcanoes-a4": "9173 9158 9134 9184 9167 9153 9175 9118 9160 9160 9125 9186",
        "wholesale-channel": "9396 9417 9849 9362 9221 9191 9259 9287 9236 9294 9428 9415",
        "wine": "10000 10000 9972 9973 9980 9984 9972 9982 9984 9965 9985 9980",
    }
)
"""Average precision in 1/10,000, a figure a method."""
SMALL: Final = (
    _table(
        "TabICL; TabPFN-3; MLJAR, 1000 s; CatBoost; XGBoost; LightGBM; LightGBM, linear leaves; "
        "SVC; random forest; logistic regression; ResNet; TabPFN",
        {name: _in_decimals(figures.split()) for name, figures in SMALL_FIGURES.items()},
    ),
)
"""Average precision in small tables of UCI: means over four folds. Rivals are tuned by 50 trials in
four inner folds, pretrained ones in small grids; MLJAR chooses among models for 1,000 s a fold."""
SMALL_CHOOSING: Final = (
    "appendicitis",
    "autoUniv-au6-1000",
    "autoUniv-au7-700",
    "balance-scale",
    "breast-cancer-wisconsin",
    "car-evaluation",
    "connectionist-vowel",
    "habermans-survival",
    "heart-disease-processed-hungarian",
    "hill-valley-with-noise",
    "indian-liver-patient",
    "leukemia-haslinger",
    "movement-libras",
    "planning-relax",
    "robot-failure-lp5",
    "statlog-vehicle-silhouettes",
    "thyroid-newthyroid",
    "volcanoes-a4",
)
"""Half of these tables, on which choices among models may rest: eight on which the stack was behind
in October 2026, and ten drawn by ``default_rng(0).choice`` from the others' sorted names. The other
half judges what was chosen."""
TABZILLA: Final = (
    _table(
        "best of 22; TabPFN v1; CatBoost; XGBoost; LightGBM; random forest; SVM; median of 22",
        {
            "sonar": "0.3149 0.3152 0.3274 0.4316 0.9918 0.4201 0.3149 0.4585",
            "glass": "0.6259 0.7249 0.6448 0.7263 0.8759 0.6598 0.9490 1.1556",
            "soybean": "0.1691 - 0.1953 0.1691 0.1978 0.2557 - 0.3620",
            "hepatitis": "0.3499 0.3499 0.3716 0.4817 0.4941 0.5683 0.5857 0.5206",
            "heart-c": "0.3753 0.3908 0.4223 0.4278 0.4724 0.6073 0.4939 0.4730",
            "heart-h": "0.3761 0.4324 0.4175 0.4433 0.4651 0.4284 0.4509 0.4471",
            "labor": "0.1123 0.1319 0.2009 0.2161 1.5504 0.2318 0.2269 0.2841",
            "mushroom": "0.0000 - 0.0001 0.0019 0.0191 0.0013 0.0003 0.0002",
            "audiology": "0.9129 - 2.4275 0.9181 2.6738 2.6451 2.8193 2.6051",
        },
    ),
)
"""Log loss; the best of 22 methods is chosen for each table, tuned or with defaults; the others are
tuned by fold."""
