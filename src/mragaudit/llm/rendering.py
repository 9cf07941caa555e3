"""Messages to the text a model continues: a plain few-shot document, or the model's own chat template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mragaudit.protocols import Message, Prompt

ChatTemplate = Callable[[Sequence[Message], bool], str]
"""(messages, whether the assistant's turn is opened at the end) to text; raises ValueError when it cannot."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A prompt as text, cut where parts end that several calls share."""

    shared: str
    """What all calls of one template share."""
    head: str
    """What calls over the same documents share beyond that."""
    rest: str


def render_completion(prompt: Prompt) -> Rendered:
    """Return the prompt as one document for a base model, whose answer begins with a space.

    A system message ends with an empty line; a user message is followed by a space, the assistant's answer and an
    empty line; after the last user message stands nothing.
    """
    pieces = [_piece(prompt.messages, place) for place in range(len(prompt.messages))]
    whole = "".join(pieces[prompt.shared :])
    # The last message is the last piece and has nothing after it, so its head is counted from the piece's start.
    cut = len(whole) - len(pieces[-1]) + prompt.head if prompt.head else 0
    return Rendered(shared="".join(pieces[: prompt.shared]), head=whole[:cut], rest=whole[cut:])


def _piece(messages: Sequence[Message], place: int) -> str:
    message = messages[place]
    if message.speaker == "assistant":
        return f" {message.content}\n\n"
    last = place + 1 == len(messages)
    answered = not last and messages[place + 1].speaker == "assistant"
    return message.content if last or answered else f"{message.content}\n\n"


def render_chat(prompt: Prompt, *, template: ChatTemplate) -> Rendered:
    """Return the prompt in a model's own chat format.

    The shared part is the rendering of the first `shared` messages where the template accepts them alone and they
    are a head of the whole; else it is empty and nothing is reused. A template may change text between its turns,
    so no head of documents is cut. Raises ValueError when the template refuses
    the whole prompt.
    """
    whole = template(prompt.messages, True)
    try:
        head = template(prompt.messages[: prompt.shared], False) if prompt.shared else ""
    except ValueError:
        head = ""
    if not whole.startswith(head):
        head = ""
    return Rendered(shared=head, head="", rest=whole[len(head) :])
