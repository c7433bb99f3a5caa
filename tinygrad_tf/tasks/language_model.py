"""Learning to predict the next token of a text: the task of a GPT."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import tinygrad_tf
from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.huggingface import config_from_json, config_json, why_not
from tinygrad_tf.models.presets import preset as find_preset
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.storage.strict_json import read_json
from tinygrad_tf.tasks.task_tokenizer import VOCAB_SIZE, make_tokenizer, require_lossless
from tinygrad_tf.text.baselines import bigram_nats, unigram_nats
from tinygrad_tf.text.reading import FileSource, StringSource, TextSource
from tinygrad_tf.text.tokenizer_files import find_tokenizer, load_tokenizer, tokenizer_file
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.text.tokens import TokenFile, TokenSet, build_tokens, open_tokens
from tinygrad_tf.train.events import PlanEvent
from tinygrad_tf.train.integrity import TOKEN_INDEX
from tinygrad_tf.train.recipe import Recipe, TrainOptions
from tinygrad_tf.train.stored_run import Files, StoredRun
from tinygrad_tf.train.task import TokenTask, longest_document
from tinygrad_tf.train.trainer import TextMeasure

CORPUS_PRESET = "default"
TEXT_PRESET = "nano-cpu"
EVALUATION_TOKENS = 8192
# Of a model to start from, the shape is fixed, but not the share of activations dropped.
CHANGEABLE = ("dropout",)
TUNING_RATE = 1e-4
TOKENIZER_FILE = "tokenizer.json"


class LanguageModelTask(TokenTask):
    """A GPT and a text, of which some is held out.

    Made by `create` or `from_run`; the text is read when the run builds or opens its data.
    """

    name: ClassVar[str] = "gpt"
    token_files: ClassVar[bool] = True

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._is_new = True
        self._text_notes: list[str] = []
        self._tokens: TokenSet | None = None

    @classmethod
    def create(
        cls,
        texts: Sequence[str | Path] = (),
        *,
        preset: str | None = None,
        lines: bool | None = None,
        tokenizer: str | None = None,
        vocab_size: int | None = None,
        init_from: str | Path | None = None,
        val_fraction: float | None = None,
        keep_newlines: bool = False,
        **settings: Any,
    ) -> LanguageModelTask:
        """Make the task of a new run; `settings` are those of GPTConfig and of TrainOptions.

        texts: UTF-8 files, in order; none for the embedded corpus. preset: what is left out is
        its. lines: each line is a document of its own. tokenizer: "char", "byte", "bpe" (which
        learns `vocab_size` tokens from the text), or the path of a tokenizer's file. init_from:
        the directory of a model whose shape, weights and tokenizer to start from.
        Raises InputError for an unknown preset, and settings that cannot be used.
        """
        options = TrainOptions.sort(GPTConfig, settings)
        chosen = find_preset(preset or (TEXT_PRESET if texts else CORPUS_PRESET))
        shape, training = dict(chosen.model), dict(chosen.training)
        if init_from is not None:
            _require_own_shape(init_from, preset, tokenizer, options.model)
            shape = {}
            training |= {"learning_rate": TUNING_RATE, "min_lr": TUNING_RATE / 10}
        tokenizer = tokenizer or "char"
        if vocab_size is not None and tokenizer != "bpe":
            raise InputError(
                f"`vocab_size={vocab_size}` has no meaning with the tokenizer {tokenizer}",
                "it is for `tokenizer=bpe`",
            )
        batch_size = training.pop("batch_size")
        own = {
            "preset": chosen.name,
            "texts": [str(Path(path).absolute()) for path in texts],
            "lines": not texts if lines is None else lines,
            "tokenizer": tokenizer,
            "val_fraction": 0.1 if val_fraction is None else val_fraction,
            "keep_newlines": keep_newlines,
            "vocab_size": vocab_size or (VOCAB_SIZE if tokenizer == "bpe" else None),
            "init_from": None if init_from is None else str(Path(init_from).absolute()),
        }
        return cls(options.recipe("", shape | options.model, training, batch_size, own))

    @classmethod
    def from_run(cls, run: StoredRun) -> LanguageModelTask:
        """Make the task again of its run; InputError where the text has changed."""
        task, path = cls(run.recipe), run.directory.path
        task._is_new = False
        task._read(load_tokenizer(path / TOKENIZER_FILE), path)
        return task

    @property
    def title(self) -> str:
        """A name for the run's directory: that of the first file."""
        texts = self.recipe.options["texts"]
        return Path(texts[0]).stem if texts else "stories"

    # The text and its tokens

    def build_data(self, folder: Path) -> None:
        """Read the text, make its tokenizer, and write its tokens into a folder."""
        source, options = self._source(), self.recipe.options
        remarks: list[str] = []
        if options["init_from"] is not None:
            tokenizer = require_lossless(find_tokenizer(options["init_from"]))
        else:
            tokenizer, remarks = make_tokenizer(
                options["tokenizer"], source, options["vocab_size"], workers=self.recipe.threads
            )
        self._set_tokens(tokenizer, self._build(source, tokenizer, folder))
        self._text_notes = [*source.report.notes(), *remarks]

    def open_data(self, folder: Path | None) -> None:
        """Read the token files from a folder from now on; None closes them."""
        self._tokens = None if folder is None else open_tokens(folder, self.tokenizer)

    def _read(self, tokenizer: Tokenizer, path: Path) -> None:
        """Open the run's token files, or make them again of the text."""
        source, folder = self._source(), path / "data"
        if (path / TOKEN_INDEX).exists():
            tokens = open_tokens(folder, tokenizer)
            _require_same_text(path, source, tokens.text_sha256)
        else:
            state = path / "trainer_state.json"
            if state.exists():
                _require_same_text(path, source, read_json(state).get("text_sha256"))
            tokens = self._build(source, tokenizer, folder)
        self._set_tokens(tokenizer, tokens)
        self._text_notes = source.report.notes()

    def _source(self) -> TextSource:
        texts = self.recipe.options["texts"]
        if texts:
            return FileSource(texts, keep_newlines=self.recipe.options["keep_newlines"])
        return StringSource(corpus.generate().text, "the embedded corpus")

    def _build(self, source: TextSource, tokenizer: Tokenizer, folder: Path) -> TokenSet:
        options = self.recipe.options
        return build_tokens(
            source,
            tokenizer,
            folder,
            val_fraction=options["val_fraction"],
            lines=options["lines"],
            seed=self.recipe.seed,
        )

    def _set_tokens(self, tokenizer: Tokenizer, tokens: TokenSet) -> None:
        self.tokenizer, self._tokens = tokenizer, tokens
        self.files: Files = {TOKENIZER_FILE: tokenizer_file(tokenizer)}
        self.config = self._model_config(tokens)
        if not tokens.lines:
            tokens.require(self.config.block_size)

    @property
    def tokens(self) -> TokenSet:
        """Both splits of the text; InputError before they were built."""
        if self._tokens is None:
            raise InputError("the text has not been read yet", "make a run of the task first")
        return self._tokens

    @property
    def train(self) -> TokenFile:
        """The training split."""
        return self.tokens.train

    @property
    def val(self) -> TokenFile:
        """The validation split."""
        return self.tokens.val

    # The model

    @cached_property
    def model(self) -> GPT:
        """The GPT; of a new run as it begins, with the weights that it is to start from."""
        model, init_from = GPT(self.config, self.recipe.seed), self.recipe.options["init_from"]
        if self._is_new and init_from is not None:
            model.load_tensors(GPT.load(init_from).file_tensors())
        return model

    def _model_config(self, tokens: TokenSet) -> GPTConfig:
        fields, init_from = dict(self.recipe.model), self.recipe.options["init_from"]
        size = self.tokenizer.vocab_size
        if init_from is not None:
            start = config_from_json(RunDirectory.open(init_from).read_config())
            if start.vocab_size < size:
                raise InputError(
                    f"the model of {init_from} has {start.vocab_size:,} tokens, its tokenizer "
                    f"{size:,}",
                    "put the tokenizer there that the model was trained with",
                )
            return replace(start, **fields)
        if "block_size" not in fields and tokens.lines:
            fields["block_size"] = longest_document(tokens.train, tokens.val)
        return GPTConfig(vocab_size=size, **fields)

    # What a run needs besides

    @property
    def evaluation_rows(self) -> int:
        """The number of rows in a batch of an evaluation."""
        return max(self.recipe.batch_size, EVALUATION_TOKENS // self.config.block_size)

    def measure(self) -> TextMeasure:
        """Return the mean characters and bytes per target, and the floor of the corpus."""
        val, floor = self.val, self._floor_nats()
        first = self.tokenizer.count_chars(val.tokens[:1])
        measure = TextMeasure(
            chars_per_token=(val.chars - first) / val.targets,
            bytes_per_token=self.tokenizer.count_bytes(val.tokens[1:]) / val.targets,
        )
        if floor is None:
            return measure
        return replace(measure, floor_bits_per_char=measure.bits_per_char(floor))

    def references(self) -> dict[str, float | None]:
        """Return losses to compare with, on the validation split, in nats per token."""
        train, val, size = self.train.tokens, self.val.tokens, self.config.vocab_size
        return {
            "uniform": math.log(size),
            "unigram": unigram_nats(train, val, size),
            "bigram": bigram_nats(train, val, size),
            "floor": self._floor_nats(),
        }

    def _floor_nats(self) -> float | None:
        """Return the true entropy of the validation stories in nats per token; None for a text
        that is not the embedded corpus.
        """
        if self.recipe.options["texts"]:
            return None
        stories = self.tokenizer.decode(self.val.tokens).strip("\n").split("\n")
        return math.fsum(map(corpus.story_nats, stories)) / self.val.targets

    def plan(self, run: str) -> PlanEvent:
        """Describe what will be trained, with notes on the text and the model."""
        plan = super().plan(run)
        notes = [*self._text_notes, *self.notes]
        if plan.epochs > 20:
            notes.append(f"the text is read {plan.epochs:.0f} times over: expect over-fitting")
        reason = why_not(self.config)
        if reason:
            notes.append(f"Hugging Face's GPT-2 cannot load this model: {reason}")
        return replace(plan, notes=notes)

    def config_json(self, files_sha256: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the content of config.json, with Hugging Face's fields where it is a GPT-2."""
        return config_json(
            self.config,
            version=tinygrad_tf.__version__,
            experiment=self.recipe.as_dict(),
            files_sha256=files_sha256,
        )

    @property
    def text_sha256(self) -> str:
        """The digest of the text."""
        return self.tokens.text_sha256

    @property
    def tokenizer_sha256(self) -> str:
        """The digest of the tokenizer."""
        return self.tokenizer.sha256()


def _require_own_shape(
    init_from: str | Path, preset: str | None, tokenizer: str | None, model: Mapping[str, Any]
) -> None:
    """A model to start from has its shape and tokenizer; InputError where another is chosen."""
    chosen = {"preset": preset, "tokenizer": tokenizer, **model}
    for name, value in chosen.items():
        if value is not None and name not in CHANGEABLE:
            raise InputError(
                f"`{name}` cannot be chosen with `init_from`: the model of {init_from} has its own",
                "leave it out",
            )


def _require_same_text(path: Path, source: TextSource, before: object) -> None:
    now = source.report.sha256
    if isinstance(before, str) and before != now:
        raise InputError(
            f"the text of {path} has changed since the run began "
            f"(sha256 {now[:12]}, was {before[:12]})",
            "restore the text, or start a new run with another `out`",
        )
