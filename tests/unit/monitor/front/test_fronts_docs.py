"""The examples of docs/monitor/fronts.md do what they say."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from mragaudit.monitor import ExfiltrationMonitor
from mragaudit.monitor.front.guard import RequestRefusedError
from mragaudit.monitor.front.reports import read_reports

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "monitor" / "fronts.md"


class Found(NamedTuple):
    """What the documented service's index returns."""

    id: str
    level: str


class Index:
    """The documented service's index."""

    def search(self, _question: bytes) -> list[Found]:
        return [Found("page-1", "public"), Found("page-2", "internal")]


class Shelf(BaseRetriever):
    """The documented service's LangChain retriever."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(page_content=query, id="d1", metadata={"level": "public"})]


class Nodes(LlamaRetriever):
    """The documented service's LlamaIndex retriever."""

    def _retrieve(self, _query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(id_="n1", text="x", metadata={"level": "public", "doc_id": "d1"}))]


def user_of(connection: Any) -> str | None:
    """Read the user from a cookie, of a scope or of a request."""
    headers = dict(getattr(connection, "scope", connection)["headers"])
    return headers.get(b"cookie", b"").decode().removeprefix("user=") or None


def section(title: str, language: str, *, page: Path = PAGE) -> str:
    text = page.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found.group(1)


def run(title: str, settings: Any, **names: Any) -> dict[str, Any]:
    """Run a section's example among the names that a service has already."""
    namespace = {
        "settings": settings,
        "index": Index(),
        "generate": lambda found: f"from {len(found)}",
        "user_of": user_of,
        **names,
    }
    exec(section(title, "python"), namespace)  # noqa: S102 - our own documentation
    return namespace


def queries_of_alice(settings: Any) -> int:
    """Return how many queries the store holds of the user, without the asking one."""
    with ExfiltrationMonitor(settings) as monitor:
        documents = [("x", "public")]
        decision = monitor.record(user="alice", query_id="asking", collection="handbook", documents=documents)
    return decision.signals[0].count - 1


@pytest.mark.parametrize("title", ["ASGI middleware", "FastAPI dependency"])
async def test_a_service_of_about_ten_lines_is_protected(make_settings: Callable[..., Any], title: str) -> None:
    settings = make_settings()
    transport = httpx.ASGITransport(app=run(title, settings)["app"])
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        served = await client.post("/ask", content="?", headers={"cookie": "user=alice"})
        nobody = await client.post("/ask", content="?")
    assert (served.status_code, served.json()) == (200, "from 2")
    assert nobody.status_code == 401
    assert queries_of_alice(settings) == 1


async def test_the_readmes_ten_lines_protect_a_service(
    make_settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings()
    (tmp_path / "monitor.yaml").write_text(f"store: {{url: '{settings.store.url}'}}\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"index": Index(), "generate": lambda found: f"from {len(found)}"}
    names["user_of_session"] = user_of
    exec(section("The exfiltration monitor", "python", page=ROOT / "README.md"), names)  # noqa: S102 - our own page
    transport = httpx.ASGITransport(app=names["app"])
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        served = await client.post("/ask", content="?", headers={"cookie": "user=alice"})
        nobody = await client.post("/ask", content="?")
    assert (served.json(), nobody.status_code) == ("from 2", 401)


def test_a_langchain_retriever_is_protected(make_settings: Callable[..., Any]) -> None:
    settings = make_settings()
    names = run("LangChain", settings, retriever=Shelf(), question="why?")
    assert [one.page_content for one in names["documents"]] == ["why?"]
    assert queries_of_alice(settings) == 1


def test_a_llama_index_retriever_is_protected(make_settings: Callable[..., Any]) -> None:
    settings = make_settings()
    names = run("LlamaIndex", settings, retriever=Nodes())
    with pytest.raises(RequestRefusedError):
        names["retriever"].retrieve("why?")
    names["current_user"].set("alice")
    assert [one.node_id for one in names["retriever"].retrieve("why?")] == ["n1"]
    assert queries_of_alice(settings) == 1


def test_the_documented_report_is_readable() -> None:
    (found,) = read_reports([section("Reverse proxy", "json").encode()], collection=None)
    assert (found.collection, found.documents, found.query_id) == ("handbook", (("page-07", "internal"),), "optional")
