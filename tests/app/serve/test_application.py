"""The application: addresses, guards, limits and counts, with a process that answers."""

from __future__ import annotations

import asyncio
import base64
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from starlette.testclient import TestClient

from bayesrbf.app import commands as cli
from bayesrbf.app import commands as command
from bayesrbf.app.serve.served import Access, Limits, ModelFolder, ModelRequest, Reply, RequestError
from bayesrbf.app.serve.server import POLICY, application
from tests.app.links import links_of
from tests.app.serve.desks import patients, write_desk

TOKEN = "a" * 20
LIMITS = Limits(rows=5, bytes=2000, seconds=60.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk")
    write_desk(path, patients(24))
    return path


def client(app: Any, **headers: str) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1:8000", headers=headers)


@pytest.fixture(scope="module")
def desk(folder: Path) -> Iterator[TestClient]:
    app = application([ModelFolder("", folder)], 1, Access(), LIMITS)
    with client(app) as open_client:
        yield open_client


def test_pages_and_questions_are_at_their_addresses(desk: TestClient) -> None:
    for path in ("/", "/?row=2", "/card", "/api", "/api/model", "/api/openapi.json"):
        assert desk.get(path).status_code == 200, path
    for path in ("/static/desk.css", "/static/desk.js", "/healthz", "/metrics"):
        assert desk.get(path).status_code == 200, path
    assert desk.get("/favicon.ico").status_code == 204
    answer = desk.post("/api/predict", json={"age": 61})
    assert answer.status_code == 200
    assert len(answer.json()["answers"]) == 1


def linked(desk: TestClient, start: str) -> set[str]:
    """Addresses that the links of pages lead to, page after page from the first one on."""
    seen: set[str] = set()
    left = [start]
    while left:
        at = left.pop()
        if at not in seen:
            seen.add(at)
            answer = desk.get(at)
            assert answer.status_code == 200, at
            if "html" in answer.headers["content-type"]:
                left += [urljoin(at, unescape(link)) for link in links_of(answer.text)]
    return seen


def test_every_link_of_a_page_leads_to_an_answer(desk: TestClient) -> None:
    found = {urlsplit(address).path for address in linked(desk, "/?row=23")}
    assert {"/", "/card", "/api", "/api/model", "/api/openapi.json"} <= found


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/predict", 405),
        ("PUT", "/", 405),
        ("GET", "/static/../pyproject.toml", 404),
        ("GET", "/static/%2e%2e/%2e%2e/etc/passwd", 404),
    ],
)
def test_other_addresses_are_refused(desk: TestClient, method: str, path: str, status: int) -> None:
    answer = desk.request(method, path)
    assert answer.status_code == status
    assert answer.json()["problems"]


def test_every_answer_has_the_headers_of_a_careful_server(desk: TestClient) -> None:
    for answer in (desk.get("/"), desk.get("/nowhere"), desk.post("/api/predict", content="{")):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    assert "unsafe" not in POLICY


def test_pages_have_nothing_inline_that_the_policy_forbids(desk: TestClient) -> None:
    for path in ("/", "/?row=2", "/card", "/api"):
        text = desk.get(path).text
        assert not re.search(
            r"<script(?! src)|<style|\sstyle=|\son\w+=|javascript:|https?://(?!127)", text
        )


def test_a_host_that_may_be_another_s_is_refused(folder: Path, desk: TestClient) -> None:
    answer = desk.get("/", headers={"host": "evil.example"})
    assert answer.status_code == 421
    assert "--allow-host" in answer.json()["problems"][0]
    app = application([ModelFolder("", folder)], 1, Access(names=("desk.example",)), LIMITS)
    named = client(app, host="desk.example")  # without its processes: only the guard is asked
    assert named.get("/static/desk.css").status_code == 200


def test_a_token_is_asked_for_everywhere_but_at_the_health(folder: Path) -> None:
    app = application([ModelFolder("", folder)], 1, Access(token=TOKEN), LIMITS)
    stranger = client(app)
    for path in ("/", "/static/desk.js", "/metrics", "/api/model"):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "www-authenticate" in answer.headers
    assert stranger.get("/healthz").status_code == 200
    password = base64.b64encode(f"any:{TOKEN}".encode()).decode()
    for shown in (f"Bearer {TOKEN}", f"Basic {password}"):
        assert client(app, authorization=shown).get("/metrics").status_code == 200
    for shown in ("Bearer", f"Bearer {TOKEN}a", TOKEN, "Basic ****", "Bearer é"):
        assert client(app, authorization=shown.encode()).get("/metrics").status_code == 401


def test_a_body_that_is_too_long_is_refused(desk: TestClient) -> None:
    assert desk.post("/api/predict", content=b" " * 2001).status_code == 413
    parts = (b" " * 500 for _ in range(10))  # without a length before
    assert desk.post("/api/predict", content=parts).status_code == 413
    assert desk.post("/api/predict", json=[{"age": 1}] * 6).status_code == 413
    assert desk.get("/?" + "a" * 20_000).status_code == 414


def test_counts_are_those_of_what_was_asked(desk: TestClient) -> None:
    def value(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", desk.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    rows = 'bayesrbf_rows_total{model="model",question="uncertainty"}'
    wrong = 'bayesrbf_requests_total{model="model",question="uncertainty",status="422"}'
    judged = 'bayesrbf_judged_rows_total{model="model"}'
    before = value(rows), value(wrong), value(judged)
    assert desk.post("/api/uncertainty", json=[{"age": 61}, {"age": 20}]).status_code == 200
    assert desk.post("/api/uncertainty", json={"agee": 61}).status_code == 422
    assert (value(rows), value(wrong), value(judged)) == (
        before[0] + 2,
        before[1] + 1,
        before[2] + 2,
    )
    of_classes = re.findall(
        r"^bayesrbf_probability_total\{.*\} (\S+)$", desk.get("/metrics").text, re.MULTILINE
    )
    predicted = value('bayesrbf_predicted_rows_total{model="model"}')
    assert sum(map(float, of_classes)) == pytest.approx(predicted)


@pytest.mark.slow
def test_several_models_have_names(folder: Path) -> None:
    folders = [ModelFolder("heart", folder), ModelFolder("liver", folder, {"well": 3.0})]
    with client(application(folders, 1, Access(), LIMITS)) as desk:
        assert 'href="heart/"' in desk.get("/").text
        assert desk.get("/heart/").status_code == 200
        assert {"/heart/card", "/liver/card", "/static/desk.css"} <= {
            urlsplit(address).path for address in linked(desk, "/")
        }
        assert desk.get("/liver/api/model").json()["costs"] == {"well": 3.0}
        assert desk.post("/heart/api/predict", json={"age": 1}).status_code == 200
        assert desk.get("/api/model").status_code == 404


def test_one_request_too_many_is_refused() -> None:
    from bayesrbf.app.serve.server import Pool

    class Never(Pool):
        """A pool whose processes never answer."""

        def _started(self) -> Any:
            from concurrent.futures import Future

            class Executor:
                def submit(self, *args: object) -> Future[Reply]:
                    return Future()

            return Executor()

    async def fill(pool: Pool) -> list[str]:
        asked = [asyncio.ensure_future(pool.ask(ModelRequest("", "page"))) for _ in range(4)]
        done = await asyncio.gather(*asked, return_exceptions=True)
        return [str(error) for error in done if isinstance(error, RequestError)]

    late = Limits(seconds=-4.9, waiting=2)
    told = asyncio.run(fill(Never((), 1, late)))
    assert len(told) == 4
    assert sum("Too many" in sentence for sentence in told) == 1
    assert sum("no answer within" in sentence for sentence in told) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one folder"),
        (["DIR", "--model", "a=DIR"], "one folder"),
        (["--model", "DIR"], "NAME=FOLDER"),
        (["--model", "static=DIR"], "NAME=FOLDER"),
        (["--model", "a=DIR", "--model", "a=DIR"], "NAME=FOLDER"),
        (["nowhere"], "no such file"),
        (["DIR", "--workers", "0"], "--workers"),
        (["DIR", "--timeout", "0"], "--timeout"),
        (["DIR", "--port", "70000"], "--port"),
        (["DIR", "--cost", "odd=2"], "no class"),
        (["DIR", "--refer", "-1"], "--refer"),
        (["FREE", "--refer", "1"], "--cost"),
        (["DIR", "--token-file", "SHORT"], "at least 16"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_listens(
    words: list[str],
    said: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = tmp_path / "token"
    short.write_text("secret\n")
    named = {"DIR": folder, "SHORT": short, "FREE": tmp_path / "free"}
    if "FREE" in words:
        write_desk(named["FREE"], patients(), costs={})
    typed = [str(named.get(word, word)).replace("=DIR", f"={folder}") for word in words]
    monkeypatch.setattr(sys, "argv", ["bayesrbf", "serve", *typed])
    monkeypatch.setattr(command, "GRACE", None)
    with pytest.raises(SystemExit):
        cli.main()
    assert said in capsys.readouterr().err
