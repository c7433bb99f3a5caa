"""From a recipe to token files: the text, its tokenizer, and where the tokens are kept."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.strict_json import read_json
from tinygrad_tf.text.bpe.counting import count_pieces
from tinygrad_tf.text.bpe.formats import load_bpe
from tinygrad_tf.text.bpe.splitting import Splitter
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer
from tinygrad_tf.text.bpe.training import train_bpe
from tinygrad_tf.text.reading import FileSource, StringSource, TextSource
from tinygrad_tf.text.tokenizer_files import find_tokenizer, load_tokenizer
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer, Tokenizer
from tinygrad_tf.text.tokens import TokenSet, build_tokens, open_tokens
from tinygrad_tf.train.options import Recipe


def text_source(recipe: Recipe) -> TextSource:
    if recipe.texts:
        return FileSource(recipe.texts, keep_newlines=recipe.keep_newlines)
    return StringSource(corpus.generate().text, "the embedded corpus")


def new_tokenizer(recipe: Recipe, source: TextSource) -> tuple[Tokenizer, list[str]]:
    """The tokenizer that a recipe asks for, learned from the text where it is, and remarks."""
    if recipe.init_from is not None:
        return _whole(find_tokenizer(recipe.init_from)), []
    if recipe.tokenizer == "byte":
        return ByteTokenizer(), []
    if recipe.tokenizer == "char":
        return CharTokenizer.from_text(source), []
    if recipe.tokenizer != "bpe":
        return _whole(_read(Path(recipe.tokenizer))), []
    assert recipe.vocab_size is not None
    counted = count_pieces(iter(source), Splitter(), workers=recipe.threads)
    trained = train_bpe(counted, vocab_size=recipe.vocab_size)
    return BPETokenizer(trained.table), [*filter(None, [trained.stopped]), *trained.notices]


def _read(path: Path) -> Tokenizer:
    """A tokenizer's file of any format."""
    if not path.exists():
        raise InputError(
            f"there is no tokenizer {str(path)!r}", "choose char, byte, bpe, or a tokenizer's file"
        )
    if path.is_file() and path.suffix == ".json":
        return load_tokenizer(path)
    try:
        table = load_bpe(path)
    except InputError as fault:
        if "--pattern" in fault.next:  # which only the conversion can be told
            convert = f"tt bpe-convert {path} tok.json --pattern gpt4"
            raise InputError(fault.what, f"convert it first: {convert}") from fault
        raise
    return BPETokenizer(table, "allow")


def _whole(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer, unless it would lose the spaces of a text."""
    if isinstance(tokenizer, BPETokenizer) and tokenizer.table.kind == "classical":
        raise InputError(
            "this tokenizer splits words at </w> and does not keep the spaces between them",
            "train a byte-level one: tt bpe-train",
        )
    return tokenizer


def build(recipe: Recipe, source: TextSource, tokenizer: Tokenizer, folder: Path) -> TokenSet:
    return build_tokens(
        source,
        tokenizer,
        folder,
        val_fraction=recipe.val_fraction,
        lines=recipe.lines,
        seed=recipe.seed,
    )


def reopen(path: Path, recipe: Recipe, source: TextSource, tokenizer: Tokenizer) -> TokenSet:
    """A run's token files; made again from the text where there are none."""
    folder = path / "data"
    if not (folder / "tokens.json").exists():
        state = path / "trainer_state.json"
        if state.exists():
            _require_same_text(path, source, read_json(state).get("text_sha256"))
        return build(recipe, source, tokenizer, folder)
    tokens = open_tokens(folder, tokenizer)
    _require_same_text(path, source, tokens.text_sha256)
    return tokens


def _require_same_text(path: Path, source: TextSource, before: object) -> None:
    now = source.report.sha256
    if isinstance(before, str) and before != now:
        raise InputError(
            f"the text of {path} has changed since the run began "
            f"(sha256 {now[:12]}, was {before[:12]})",
            "restore the text, or start a new run with another --out",
        )


class Workspace:
    """A directory for token files until the run has one, removed when its owner goes."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="tt-tokens-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
