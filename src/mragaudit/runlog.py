"""One log a job: what a stage says, and why it stopped, on stderr and in a file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mragaudit.errors import MragauditError

RESUME_HINT = "finished model calls are kept in the journal; run the same command again to resume"
EXIT_INTERRUPTED = 130


@contextmanager
def run_log(path: str | Path) -> Iterator[None]:
    """Log everything inside the block to a file and to stderr, and end the process with one clear line on failure.

    An error of ours ends with exit code 1 and no traceback; any other keeps its traceback, in the file as well;
    an interruption ends with code 130 and says how to resume.
    """
    handlers = _handlers(Path(path))
    root = logging.getLogger("mragaudit")
    root.setLevel(logging.INFO)
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield
    except MragauditError as error:
        root.error("%s", error)
        sys.exit(1)
    except KeyboardInterrupt:
        root.error("interrupted: %s", RESUME_HINT)
        sys.exit(EXIT_INTERRUPTED)
    except Exception:
        root.exception("unexpected error; %s", RESUME_HINT)
        raise
    finally:
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()


def _handlers(path: Path) -> list[logging.Handler]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [
        logging.FileHandler(path, mode="w", encoding="utf-8"),
        logging.StreamHandler(),
    ]
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S"))
    return handlers
