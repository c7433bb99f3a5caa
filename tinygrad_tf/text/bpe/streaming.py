"""Text in chunks, cut anew where pieces and special tokens end for certain."""

import codecs
from collections.abc import Callable, Iterable, Iterator

from tinygrad_tf.text.bpe.specials import WORD, Policy, Specials

_BLOCK = 1 << 16


def blocks(
    chunks: Iterable[str] | Iterable[bytes],
    specials: Specials,
    policy: Policy,
    cut: Callable[[str], int],
) -> Iterator[tuple[int, str]]:
    """Yield (position, block): blocks of a text that have, one by one, the ids of the whole.

    `cut` is that of `Splitter`: the length of a beginning that what follows cannot change.
    """
    start, waiting, size, wanted = 0, [""], 0, _BLOCK
    for chunk in _as_text(chunks):
        waiting.append(chunk)
        size += len(chunk)
        if size < wanted:
            continue
        text = "".join(waiting)
        end = _certain(text, specials, policy, cut)
        if end:
            yield start, text[:end]
        start, waiting, size = start + end, [text[end:]], size - end
        # Where there is no place to cut, looking again only at twice the size stays linear.
        wanted = max(_BLOCK, 2 * size)
    if size:
        yield start, "".join(waiting)


def cut_words(text: str) -> int:
    """Return where the last word begins, which may go on, if nothing ends it."""
    end = 0
    for word in WORD.finditer(text):
        end = word.start() if word.end() == len(text) else word.end()
    return end


def _certain(text: str, specials: Specials, policy: Policy, cut: Callable[[str], int]) -> int:
    if policy == "text" or not specials.ids:
        return cut(text)
    # A special token that began at `limit` or later may end beyond the text, or be a longer one.
    limit = max(0, len(text) - specials.longest + 1)
    end = 0
    for match in specials.matches(text):
        if match.start() >= limit:
            break
        end = match.end()
    return end + cut(text[end:limit])


def _as_text(chunks: Iterable[str] | Iterable[bytes]) -> Iterator[str]:
    utf8 = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for chunk in chunks:
        yield chunk if isinstance(chunk, str) else utf8.decode(chunk)
    yield utf8.decode(b"", final=True)
