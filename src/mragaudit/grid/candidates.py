"""Membership scores of the candidates of a cell, from replies alone, with the nuisance control beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mragaudit.config.hook_audit_section import HookAudit
from mragaudit.grid.scoring import CellCalls
from mragaudit.grid.splits import draw_candidates
from mragaudit.leaks.membership import Exchange, Inquiry, membership_scores, shape_like
from mragaudit.randomness import generator_for
from mragaudit.records.grid import CandidateScore, GridDocument, TargetCall


def membership_candidates(
    documents: Sequence[GridDocument], settings: HookAudit, *, seed: int
) -> tuple[GridDocument, ...]:
    """Return the documents that membership inference asks about, the same under every arm."""
    realisation = documents[0].realisation
    return draw_candidates(
        documents,
        n_members=settings.n_members,
        n_non_members=settings.n_non_members,
        rng=generator_for(seed, f"candidates.{realisation}"),
    )


def candidate_scores(given: CellCalls, *, undefended: CellCalls | None) -> Iterator[CandidateScore]:
    """Yield a score for each candidate that the cell asked about, by id.

    `undefended` is the same attack without a defense: its replies, cut and masked to the shape of this cell's, give
    the control's scores. What the two share is due to the shape of the replies and says nothing of membership.
    """
    asked = {call.target for call in given.calls}
    candidates = [document for document in given.documents if document.doc_id in asked]
    own = membership_scores([_inquiry(one, _calls_about(one, given)) for one in candidates])
    control: Sequence[float | None] = [None] * len(candidates)
    if undefended is not None:
        control = membership_scores([_shaped_inquiry(one, given, undefended) for one in candidates])
    for document, score, control_score in zip(candidates, own, control, strict=True):
        member = document.split == "indexed"
        calls = _calls_about(document, given)
        yield CandidateScore(
            cell_id=given.cell.cell_id,
            doc_id=document.doc_id,
            member=member,
            score=score,
            control_score=control_score,
            retrieved=any(document.doc_id in call.doc_ids for call in calls) if member else None,
        )


def _calls_about(document: GridDocument, given: CellCalls) -> list[TargetCall]:
    return [call for call in given.calls if call.target == document.doc_id]


def _reply(call: TargetCall) -> str | None:
    return call.reply if call.not_evaluated is None else None


def _inquiry(document: GridDocument, calls: Sequence[TargetCall]) -> Inquiry:
    exchanges = tuple(Exchange(question=call.question, reply=_reply(call)) for call in calls)
    return Inquiry(text=document.text, exchanges=exchanges)


def _shaped_inquiry(document: GridDocument, given: CellCalls, undefended: CellCalls) -> Inquiry:
    before = {call.question: _reply(call) for call in _calls_about(document, undefended)}
    exchanges = tuple(
        Exchange(question=call.question, reply=shape_like(before.get(call.question), _reply(call)))
        for call in _calls_about(document, given)
    )
    return Inquiry(text=document.text, exchanges=exchanges)
