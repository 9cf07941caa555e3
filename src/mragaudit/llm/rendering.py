"""Messages to the text a model continues: a plain few-shot document, or the model's own chat template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mragaudit.protocols import Message, Prompt

ChatTemplate = Callable[[Sequence[Message], bool], str]
"""(messages, whether the assistant's turn is opened at the end) to text; raises ValueError when it cannot."""
Turn = Mapping[str, object]
"""A message as chat templates take it: `role`, and `content` as a text or as a list of parts."""
_PROBE = "What is the lead time of order QZ-4107?"


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


def turns_of(messages: Sequence[Message], *, parts: bool) -> list[Turn]:
    """Return the messages as a chat template takes them; `parts`: each content as a list of one text."""
    return [{"role": one.speaker, "content": _content(one.content, parts=parts)} for one in messages]


def _content(text: str, *, parts: bool) -> object:
    return [{"type": "text", "text": text}] if parts else text


def takes_parts(render: Callable[[Sequence[Turn]], str]) -> bool:
    """Return whether a chat template wants a list of parts where others want a text.

    Those of models that also take images (Llama Guard 3 1B, Llama Guard 4) look for parts and leave a plain text
    out without a word. Raises ValueError where a template shows neither.
    """
    probe = [Message("user", _PROBE)]
    for parts in (False, True):
        if _PROBE in render(turns_of(probe, parts=parts)):
            return parts
    raise ValueError("it leaves out what the user says")
