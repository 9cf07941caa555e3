"""An event loop in a thread of its own, so that a plain iterator can stand over many calls at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")

BACKLOG_PAUSE_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class _End:
    """The last thing that a stream puts out."""

    error: BaseException | None


class LoopThread:
    """Runs coroutines for a thread that is not asynchronous; the thread starts with the first of them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, running."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="mragaudit-http", daemon=True)
            self._thread.start()
        return self._loop

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def cancel_all(self) -> None:
        """Cancel what still runs and wait for its end."""
        if self._loop is not None:
            self.run(_cancel_others())

    def close(self) -> None:
        """End loop and thread, and all that still runs; may be called twice."""
        if self._loop is None or self._thread is None:
            return
        self.cancel_all()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Stream(Generic[T]):
    """Positions 0 to `length` - 1 asked for `concurrency` at a time."""

    def __init__(
        self, ask: Callable[[int], Awaitable[T]], *, length: int, concurrency: int, backlog: int, thread: LoopThread
    ) -> None:
        """Prepare; nothing is asked before the first result is wanted. `backlog` results at most wait to be taken."""
        self._ask = ask
        self._length = length
        self._concurrency = concurrency
        self._backlog = backlog
        self._thread = thread
        self._results: SimpleQueue[tuple[int, T] | _End] = SimpleQueue()

    def results(self) -> Iterator[tuple[int, T]]:
        """Yield (position, result) as they finish.

        What a call raises ends all calls and comes out after the results that finished before. Closing the iterator
        ends all calls as well; when close() returns, none is under way.
        """
        if not self._length:
            return
        task = self._thread.run(self._start())
        end: _End | None = None
        try:
            while not isinstance(item := self._results.get(), _End):
                yield item
            end = item
        finally:
            if end is None:
                if not task.done():
                    task.get_loop().call_soon_threadsafe(task.cancel)
                while not isinstance(self._results.get(), _End):
                    continue
        if end.error is not None:
            raise _first(end.error)

    async def _start(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self._work_all())
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[None]) -> None:
        # Whoever still waits must not take a part of the results for all of them.
        closed = RuntimeError("the backend was closed before all calls were answered")
        self._results.put(_End(closed if task.cancelled() else task.exception()))

    async def _work_all(self) -> None:
        positions = iter(range(self._length))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrency, self._length)):
                group.create_task(self._work(positions))

    async def _work(self, positions: Iterator[int]) -> None:
        for position in positions:
            self._results.put((position, await self._ask(position)))
            # Asking the queue its size costs less than being woken by the other thread for every result taken.
            while self._results.qsize() >= self._backlog:
                await asyncio.sleep(BACKLOG_PAUSE_SECONDS)


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
