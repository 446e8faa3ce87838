"""Counts of requests and answers, for Prometheus."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from bayesrbf.serving.settings import Tally

BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends, in seconds, of the classes of the histogram."""


class Metrics:
    """What was asked since the server started."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        asked, of_model = ("model", "question"), ("model",)
        self._requests = Counter(
            "bayesrbf_requests", "Requests.", (*asked, "status"), registry=registry
        )
        self._seconds = Histogram(
            "bayesrbf_seconds", "From request to answer.", asked, buckets=BOUNDS, registry=registry
        )
        self._rows = Counter("bayesrbf_rows", "Rows answered.", asked, registry=registry)
        self._judged = Counter(
            "bayesrbf_judged_rows", "Rows whose novelty was computed.", of_model, registry=registry
        )
        self._novel = Counter(
            "bayesrbf_novel_rows", "Rows unlike the training table.", of_model, registry=registry
        )
        self._predicted = Counter(
            "bayesrbf_predicted_rows", "Rows with class probabilities.", of_model, registry=registry
        )
        self._probability = Counter(
            "bayesrbf_probability",
            "Sum of the class probabilities: over the predicted rows, their mean.",
            (*of_model, "class"),
            registry=registry,
        )

    def count(self, model: str, question: str, status: int, seconds: float, tally: Tally) -> None:
        """Count one answered request."""
        self._requests.labels(model, question, status).inc()
        self._seconds.labels(model, question).observe(seconds)
        self._rows.labels(model, question).inc(tally.rows)
        self._judged.labels(model).inc(tally.judged)
        self._novel.labels(model).inc(tally.novel)
        if tally.probability:
            self._predicted.labels(model).inc(tally.rows)
        for label, total in tally.probability.items():
            self._probability.labels(model, label).inc(total)

    def text(self) -> bytes:
        """All of them, as a scraper reads them."""
        return generate_latest(self._registry)
