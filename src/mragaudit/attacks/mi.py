"""MI: questions about documents that the attacker holds, to find out which of them are indexed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mragaudit.attacks.pools import Pool, load_pool, require_fields
from mragaudit.attacks.steps import Ask, Candidate, Outcome, Steps, Tools, text_only
from mragaudit.errors import ConfigError
from mragaudit.text.rarity import rare_words


class MiPool(Pool, frozen=True, kw_only=True):
    """The file `mi.yaml`."""

    questions: tuple[str, ...]

    def __post_init__(self) -> None:
        for question in self.questions:
            require_fields(question, {"title", "words"})
        if not self.questions:
            raise ValueError('"questions" is empty; at least one template is needed')


@dataclass(frozen=True, kw_only=True, slots=True)
class MembershipInference:
    """MI with three questions a candidate, filled with its title and rarest words.

    Source: Mind the Hook (arXiv 2608.09001); the wording and the choice of words are ours. Rarity is counted over the
    candidates, which the attacker holds. The replies are scored by `mragaudit.leaks.membership`.
    """

    name: ClassVar[str] = "mi"
    words_per_question: int = 2

    def __post_init__(self) -> None:
        if self.words_per_question < 1:
            raise ConfigError(f'mi: "words_per_question" is {self.words_per_question}; it has to be at least 1')

    @text_only
    def steps(self, tools: Tools) -> Steps:
        """Ask as many of the templates about every candidate as the budget allows, candidates in random order.

        Raises ConfigError when the budget is less than one question a candidate: some would have no score.
        """
        pool = load_pool(tools.resources, MiPool, name="mi")
        candidates = tools.knowledge.candidates
        rounds = self._rounds(tools, n_templates=len(pool.questions))
        cues = rare_words([candidate.text for candidate in candidates], count=self.words_per_question)
        order = tools.rng.permutation(len(candidates))
        for template in pool.questions[:rounds]:
            for at in order:
                yield _ask(template, candidates[at], words=cues[at])
        return Outcome(counts={"questions_per_candidate": rounds})

    def _rounds(self, tools: Tools, *, n_templates: int) -> int:
        n_candidates = len(tools.knowledge.candidates)
        if tools.budget < n_candidates:
            raise ConfigError(
                f"mi: a budget of {tools.budget} is less than one question for each of {n_candidates} candidates; "
                f"give it {n_candidates} to {n_candidates * n_templates}"
            )
        return min(n_templates, tools.budget // n_candidates) if n_candidates else 0


def _ask(template: str, candidate: Candidate, *, words: tuple[str, ...]) -> Ask:
    named = " and ".join(words) or candidate.title
    return Ask(text=template.format(title=candidate.title, words=named), candidate=candidate.candidate_id)
