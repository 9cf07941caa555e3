"""What a session does when the monitor itself is at fault."""

from __future__ import annotations

import logging

import pytest

from mragaudit.monitor.session import Request, Session
from mragaudit.monitor.settings import MonitorSettings


def test_a_fault_of_ours_is_logged_with_its_place_and_without_the_ids_in_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = Session(MonitorSettings(), cluster=False, sinks=())
    user = "alice@example.org"
    request = Request(user=user, query_id="q", collection="kb", documents=())
    with caplog.at_level(logging.ERROR, logger="mragaudit.monitor.session"):
        try:
            raise KeyError(user)
        except KeyError as error:
            decision = session.broken(request, error)
    assert (decision.action, session.counts.problems["internal"]) == ("pass", 1)
    assert "KeyError" in caplog.text
    assert "test_monitor_session.py" in caplog.text
    assert "alice" not in caplog.text
