"""The wrappers of retrievers, around retrievers of the installed LangChain and LlamaIndex."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from mragaudit.errors import ConfigError, MissingPackageError
from mragaudit.monitor.front import langchain, llama_index
from mragaudit.monitor.front.guard import Guard, RequestRefusedError
from mragaudit.monitor.front.identity import Identity
from mragaudit.monitor.front.packages import needed

MakeGuard = Callable[..., Guard]
THROTTLED_AT = 7
EVE = {"configurable": {"user_id": "eve"}}
user: ContextVar[str | None] = ContextVar("user", default="eve")


class Shelf(BaseRetriever):
    """A LangChain retriever that finds the same three documents every time."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [
            Document(page_content=f"{query} one", id="d1", metadata={"level": "public", "source": "s1"}),
            Document(page_content=f"{query} two", id="d2", metadata={"level": "confidential", "source": "s2"}),
            Document(page_content="no id", metadata={}),
        ]


class Nodes(LlamaRetriever):
    """A LlamaIndex retriever that finds the same two nodes every time."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_="n1", text=query_bundle.query_str, metadata={"level": "public"}), score=1),
            NodeWithScore(node=TextNode(id_="n2", text="two", metadata={"level": "restricted"}), score=0.5),
        ]


def shelf(guard: Guard, **options: Any) -> langchain.MonitoredRetriever:
    return langchain.MonitoredRetriever(retriever=Shelf(), guard=guard, collection="kb", **options)


def nodes(guard: Guard, **options: Any) -> llama_index.MonitoredRetriever:
    return llama_index.MonitoredRetriever(Nodes(), guard=guard, collection="kb", identify=user.get, **options)


def queries_of(guard: Guard, name: str) -> int:
    """Return how many queries the store holds of a user, without the asking one."""
    monitor = guard.blocking
    decision = monitor.record(user=name, query_id="asking", collection="kb", documents=[("x", "public")])
    return decision.signals[0].count - 1


def test_langchain_invoke_returns_the_documents_and_records_them_for_the_configured_user(
    make_blocking_guard: MakeGuard,
) -> None:
    guard = make_blocking_guard()
    found = shelf(guard).invoke("q", EVE)
    assert [one.page_content for one in found] == ["q one", "q two", "no id"]
    assert queries_of(guard, "eve") == 1


def test_langchain_in_a_chain_sees_the_chains_config(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard()
    chain = shelf(guard) | RunnableLambda(lambda found: [one.id for one in found])
    assert chain.invoke("q", EVE) == ["d1", "d2", None]
    assert chain.batch(["a", "b"], EVE) == [["d1", "d2", None]] * 2
    assert queries_of(guard, "eve") == 3


@pytest.mark.anyio
async def test_langchain_ainvoke_works_over_either_monitor(
    make_guard: MakeGuard, make_blocking_guard: MakeGuard
) -> None:
    for guard in (make_guard(), make_blocking_guard()):
        assert len(await shelf(guard).ainvoke("q", EVE)) == 3
        assert guard.monitor.counts.decisions == {"pass": 1}


def test_langchain_cuts_what_a_throttled_user_gets(make_blocking_guard: MakeGuard) -> None:
    wrapped = shelf(make_blocking_guard(throttle={"response": "truncate", "max_results": 1}))
    lengths = [len(wrapped.invoke("q", EVE)) for _ in range(THROTTLED_AT)]
    assert lengths == [3] * (THROTTLED_AT - 1) + [1]


def test_langchain_waits_for_a_throttled_user_and_refuses_one_without_a_place(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard(throttle={"max_delayed": 1})
    wrapped = shelf(guard)
    for _ in range(THROTTLED_AT - 1):
        wrapped.invoke("q", EVE)
    started = time.perf_counter()
    wrapped.invoke("q", EVE)
    assert time.perf_counter() - started >= 0.15
    assert guard.blocking.hold("eve", "other")
    with pytest.raises(RequestRefusedError, match=r"^Too many requests\.$") as refused:
        wrapped.invoke("q", EVE)
    assert (refused.value.refusal.status, refused.value.refusal.retry_after_seconds) == (429, 33)


def test_langchain_refuses_nobody_and_returns_nothing(make_blocking_guard: MakeGuard) -> None:
    with pytest.raises(RequestRefusedError, match=r"^Unknown user\.$"):
        shelf(make_blocking_guard()).invoke("q")


def test_langchain_reads_id_level_tenant_and_role_from_configured_keys(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard()
    wrapped = shelf(guard, id_key="source", identify=langchain.configurable_user("sub", tenant_key="org"))
    wrapped.invoke("q", {"configurable": {"sub": "eve", "org": "acme"}})
    # s1 and s2 are known already, and the third document under the digest of its content.
    decision = guard.blocking.record(
        user="eve", tenant="acme", query_id="next", collection="kb", documents=[("s1", "public"), ("s2", "public")]
    )
    coverage = decision.signal("coverage")
    assert coverage is not None
    assert coverage.count == 3


def test_langchain_counts_a_document_without_level_as_the_highest(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard()
    shelf(guard).invoke("q", EVE)
    decision = guard.blocking.record(user="eve", query_id="next", collection="kb", documents=[("x", "public")])
    sensitivity = decision.signal("sensitivity")
    assert sensitivity is not None
    assert (sensitivity.count, sensitivity.total) == (2, 4)


def test_synchronous_calls_over_an_asyncio_monitor_say_what_they_need(make_settings: Callable[..., Any]) -> None:
    from mragaudit.monitor import AsyncExfiltrationMonitor  # noqa: PLC0415

    guard = Guard(AsyncExfiltrationMonitor(make_settings(), secret=b"test"))
    with pytest.raises(ConfigError, match="synchronous code needs ExfiltrationMonitor"):
        shelf(guard).invoke("q", EVE)


def test_llama_index_retrieve_returns_the_nodes_and_records_them(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard()
    found = nodes(guard).retrieve("q")
    assert [one.node_id for one in found] == ["n1", "n2"]
    assert queries_of(guard, "eve") == 1


@pytest.mark.anyio
async def test_llama_index_aretrieve_works_over_either_monitor(
    make_guard: MakeGuard, make_blocking_guard: MakeGuard
) -> None:
    for guard in (make_guard(), make_blocking_guard()):
        assert len(await nodes(guard).aretrieve("q")) == 2
        assert guard.monitor.counts.decisions == {"pass": 1}


def test_llama_index_cuts_what_a_throttled_user_gets(make_blocking_guard: MakeGuard) -> None:
    wrapped = nodes(make_blocking_guard(throttle={"response": "truncate", "max_results": 1}))
    assert [len(wrapped.retrieve("q")) for _ in range(THROTTLED_AT)] == [2] * (THROTTLED_AT - 1) + [1]


def test_llama_index_refuses_nobody(make_blocking_guard: MakeGuard) -> None:
    token = user.set(None)
    try:
        with pytest.raises(RequestRefusedError, match=r"^Unknown user\.$"):
            nodes(make_blocking_guard()).retrieve("q")
    finally:
        user.reset(token)


def test_llama_index_refuses_beyond_the_users_places(make_blocking_guard: MakeGuard) -> None:
    wrapped = nodes(make_blocking_guard(throttle={"max_delayed": 0}))
    for _ in range(THROTTLED_AT - 1):
        wrapped.retrieve("q")
    with pytest.raises(RequestRefusedError, match=r"^Too many requests\.$"):
        wrapped.retrieve("q")


def test_a_user_of_another_tenant_is_another_user(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard()
    wrapped = llama_index.MonitoredRetriever(
        Nodes(), guard=guard, collection="kb", identify=lambda: Identity(user="eve", tenant="acme")
    )
    wrapped.retrieve("q")
    assert queries_of(guard, "eve") == 0


def test_a_missing_package_is_named_with_its_install_command() -> None:
    with (
        pytest.raises(MissingPackageError, match=r"langchain_core is not installed; .*pip install 'langchain-core'"),
        needed("langchain_core", install="langchain-core"),
    ):
        raise ModuleNotFoundError("No module named 'langchain_core'", name="langchain_core")


def test_a_fault_inside_a_package_is_not_taken_for_its_absence() -> None:
    with pytest.raises(ModuleNotFoundError), needed("langchain_core"):
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")


def test_the_monitor_and_its_middleware_import_no_framework(tmp_path: Any) -> None:
    import subprocess  # noqa: PLC0415

    heavy = "fastapi", "starlette", "httpx", "uvicorn", "prometheus_client", "langchain_core", "llama_index", "redis"
    code = (
        "import sys, mragaudit.monitor, mragaudit.monitor.front.asgi;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
