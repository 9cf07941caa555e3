"""LlamaIndex: a retriever that wraps another one and shows it what the monitor says."""

from __future__ import annotations

from collections.abc import Callable

from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.identity import Identified
from mragaudit.monitor.front.packages import needed
from mragaudit.monitor.front.wrapping import RetrieverGuard, described

with needed("llama_index", install="llama-index-core"):
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle


class MonitoredRetriever(BaseRetriever):
    """Returns what the wrapped retriever found, later or less where the monitor says so.

    Raises RequestRefusedError where the user has too many delayed requests, or nobody is known. Each retrieval is
    one query of its own. The synchronous calls need a guard with the synchronous monitor.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        guard: Guard,
        collection: str,
        identify: Callable[[], Identified],
        id_key: str | None = None,
        level_key: str = "level",
    ) -> None:
        """Wrap a retriever.

        `identify` says whose request is running, for example the `get` of a context variable that the host sets.
        `id_key` and `level_key` are metadata keys; without `id_key` the id is the node's own. The registered size of
        the collection must count the same things: nodes, or what `id_key` names.
        """
        super().__init__(callback_manager=retriever.callback_manager)
        self._retriever = retriever
        self._identify = identify
        self._judge = RetrieverGuard(guard, collection=collection)
        self._id_key = id_key
        self._level_key = level_key

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._retriever.retrieve(query_bundle)
        return self._judge.check(found, identified=self._identify(), describe=self._describe)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._retriever.aretrieve(query_bundle)
        return await self._judge.acheck(found, identified=self._identify(), describe=self._describe)

    def _describe(self, found: NodeWithScore) -> tuple[str, str]:
        node = found.node
        return described(
            node.node_id,
            node.get_content(),
            metadata=node.metadata,
            id_key=self._id_key,
            level_key=self._level_key,
        )
