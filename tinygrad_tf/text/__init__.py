"""From text to token files: reading, tokenizers, splits, and the count models beside them."""

from tinygrad_tf.text.baselines import bigram_nats, unigram_nats
from tinygrad_tf.text.reading import (
    FileSource,
    StringSource,
    TextReport,
    TextSource,
    read_text,
    stream_text,
)
from tinygrad_tf.text.tokenizer_files import (
    find_tokenizer,
    load_tokenizer,
    require_same_tokenizer,
    save_tokenizer,
)
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer, Tokenizer
from tinygrad_tf.text.tokens import TokenFile, TokenSet, build_tokens, open_tokens

__all__ = [
    "ByteTokenizer",
    "CharTokenizer",
    "FileSource",
    "StringSource",
    "TextReport",
    "TextSource",
    "TokenFile",
    "TokenSet",
    "Tokenizer",
    "bigram_nats",
    "build_tokens",
    "find_tokenizer",
    "load_tokenizer",
    "open_tokens",
    "read_text",
    "require_same_tokenizer",
    "save_tokenizer",
    "stream_text",
    "unigram_nats",
]
