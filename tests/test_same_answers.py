"""A checkout answers as its commit does, and an answer that moved is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests import same_answers
from tests.same_answers import FITS, ROOT, Answers, apart, difference, main

in_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="there is no history here")


@pytest.mark.slow
@in_a_clone
def test_a_checkout_answers_as_its_commit() -> None:
    """Two processes agree, and nothing is needed that is not committed.

    Before a commit that moves answers it fails, and says which.
    """
    assert main(["--between", "HEAD", *(f"{name}: mixed with holes" for name in FITS)]) == 0


def test_a_difference_is_seen() -> None:
    x = np.array([0.5, np.nan, 100.0])
    assert apart(x, x.copy()) == 0
    assert apart(x + np.array([0, 0, 1e-6]), x) == pytest.approx(1e-8, rel=1e-3)
    assert apart(x[:2], x) == apart(np.zeros(3), x) == np.inf
    assert difference({"p": x}, {"p": x.copy()}) == 0
    assert difference({"p": x}, {}) == difference({}, {"p": x}) == difference({}, {}) == np.inf


@in_a_clone
def test_an_answer_that_moved_or_cannot_be_given_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said_by(checkouts: list[Path], chosen: list[str]) -> list[dict[str, Answers]]:
        assert (checkouts[0], chosen) == (ROOT, ["mixture"])
        assert (checkouts[1] / "tests" / "same_answers.py").exists()
        return [
            {"mixture: iris": {"p": np.array([p])}, "mixture: wine": {"p": np.ones(1)}}
            for p in (0.5, 0.5 + moves)
        ]

    monkeypatch.setattr(same_answers, "said_by", said_by)
    moves = 0.0
    assert main(["--between", "HEAD", "mixture"]) == 0
    moves = 1e-9
    assert main(["--between", "HEAD", "mixture"]) == 1
    said = capsys.readouterr().out
    assert "mixture: iris: differs by 1.0e-09\n1 of 2 answers are those of HEAD." in said
    monkeypatch.setattr(same_answers, "said_by", lambda checkouts, chosen: [{}, {}])
    with pytest.raises(SystemExit):
        main(["--between", "HEAD", "mixtur"])


def test_a_subject_that_fails_has_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: str) -> Answers:
        raise TypeError("unknown")

    wine = {"p": np.ones(1)}
    monkeypatch.setattr(
        same_answers, "subjects", lambda: {"mixture": {"iris": fail, "wine": lambda _: wine}}
    )
    assert dict(same_answers.answers()) == {"mixture: iris": {}, "mixture: wine": wine}
    assert dict(same_answers.answers(["mixture: wine"])) == {"mixture: wine": wine}
    assert capsys.readouterr().err == "mixture: iris: TypeError: unknown\n"
