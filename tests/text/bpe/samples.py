"""Small tokenizers and files that several tests use."""

from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

BYTES = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}
END = "<|endoftext|>"
MERGES = [("t", "h"), ("Ġ", "th"), ("Ġth", "e"), ("Ã", "©"), ("Ċ", "Ċ"), ("1", "2"), ("a", "b")]
NUMBERED = [("t", "h"), ("Ġ", "th"), ("Ġth", "e"), ("1", "2"), ("12", "3")]
WORDS = [("e", "s"), ("es", "t"), ("est", "</w>"), ("o", "l"), ("ol", "d")]
LETTERS = sorted({*"olderfinestlow"})
TEXT = "the cat, the 1234567  and\n the\tend\n \n"


def byte_level(pattern="gpt2", specials=(END,), merges=MERGES):
    return BPETokenizer(BPETable.from_merges(merges, pattern=pattern, specials=specials))


def words(end_of_word="separate", unk=None, specials=(), letters=LETTERS):
    if end_of_word == "separate":
        alphabet, merges = [*letters, "</w>"], WORDS
    else:
        alphabet = sorted({*letters, *(letter + "</w>" for letter in letters)})
        merges = [("e", "s"), ("es", "t</w>"), ("o", "l")]
    return BPETokenizer(
        BPETable.classical(alphabet, merges, end_of_word=end_of_word, unk=unk, specials=specials)
    )


def tokens(tokenizer, text, **options):
    return [tokenizer.token_text(i) for i in tokenizer.encode(text, **options).tolist()]


def ids(table, text=TEXT, **options):
    return BPETokenizer(table).encode(text, **options).tolist()


def trained(pattern="gpt2", specials=()):
    return BPETable.from_merges(NUMBERED, pattern=pattern, specials=specials)


def saved(tmp_path, content, name="file"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
