"""From a recipe to token files: the text, its tokenizer, and where the tokens are kept."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.strict_json import read_json
from tinygrad_tf.text.reading import FileSource, StringSource, TextSource
from tinygrad_tf.text.tokenizers import ByteTokenizer, CharTokenizer, Tokenizer
from tinygrad_tf.text.tokens import TokenSet, build_tokens, open_tokens
from tinygrad_tf.train.options import Recipe


def text_source(recipe: Recipe) -> TextSource:
    if recipe.texts:
        return FileSource(recipe.texts, keep_newlines=recipe.keep_newlines)
    return StringSource(corpus.generate().text, "the embedded corpus")


def new_tokenizer(recipe: Recipe, source: TextSource) -> Tokenizer:
    if recipe.tokenizer == "byte":
        return ByteTokenizer()
    if recipe.tokenizer != "char":
        raise InputError(f"there is no tokenizer {recipe.tokenizer!r}", "choose char or byte")
    return CharTokenizer.from_text(source)


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
