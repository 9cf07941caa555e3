"""LangChain: a retriever that wraps another one and shows it what the monitor says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.identity import Identified, Identity
from mragaudit.monitor.front.packages import needed
from mragaudit.monitor.front.wrapping import RetrieverGuard, described
from mragaudit.monitor.queries import DEFAULT_TENANT

with needed("langchain_core", install="langchain-core"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig, ensure_config


def configurable_user(
    key: str = "user_id", *, tenant_key: str | None = None, role_key: str | None = None
) -> Callable[[RunnableConfig], Identity | None]:
    """Return a function that reads the user from `config["configurable"][key]`, where the host has put it."""

    def identify(config: RunnableConfig) -> Identity | None:
        values = config.get("configurable") or {}
        user = values.get(key)
        if not user:
            return None
        tenant = values.get(tenant_key, DEFAULT_TENANT) if tenant_key else DEFAULT_TENANT
        return Identity(user=user, tenant=tenant, role=values.get(role_key) if role_key else None)

    return identify


class MonitoredRetriever(BaseRetriever):
    """Returns what the wrapped retriever found, later or less where the monitor says so.

    Raises RequestRefusedError where the user has too many delayed requests, or nobody is known. Each retrieval is
    one query of its own. The synchronous calls need a guard with the synchronous monitor.
    """

    retriever: Any
    """Any retriever, or runnable from a string to documents."""
    guard: Guard
    collection: str
    identify: Callable[[RunnableConfig], Identified] = configurable_user()
    id_key: str | None = None
    """Metadata key of the id; None for the document's own."""
    level_key: str = "level"
    """Metadata key of the sensitivity level."""

    def invoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the documents that may be used."""
        used = ensure_config(config)
        found = self.retriever.invoke(input, used, **kwargs)
        return self._judge.check(found, identified=self.identify(used), describe=self._describe)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the documents that may be used."""
        used = ensure_config(config)
        found = await self.retriever.ainvoke(input, used, **kwargs)
        return await self._judge.acheck(found, identified=self.identify(used), describe=self._describe)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self.invoke(query, {"callbacks": run_manager.get_child()})

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await self.ainvoke(query, {"callbacks": run_manager.get_child()})

    @property
    def _judge(self) -> RetrieverGuard:
        return RetrieverGuard(self.guard, collection=self.collection)

    def _describe(self, document: Document) -> tuple[str, str]:
        return described(
            document.id,
            document.page_content,
            metadata=document.metadata,
            id_key=self.id_key,
            level_key=self.level_key,
        )
