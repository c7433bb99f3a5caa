"""A training run from beginning to end: text, tokens, model, trainer and the run's directory."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tinygrad_tf
from tinygrad_tf import corpus
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.config import GPTConfig
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.huggingface import config_from_json, config_json, why_not
from tinygrad_tf.storage import atomic
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.text.baselines import bigram_nats, unigram_nats
from tinygrad_tf.text.tokenizer_files import load_tokenizer, save_tokenizer
from tinygrad_tf.text.tokenizers import Tokenizer
from tinygrad_tf.text.tokens import TokenSet, open_tokens
from tinygrad_tf.train.batches import evaluation_batches, training_batches
from tinygrad_tf.train.events import Event, PlanEvent, WarningEvent
from tinygrad_tf.train.integrity import digests, intact_block, seal
from tinygrad_tf.train.options import Recipe, TrainOptions
from tinygrad_tf.train.parallel import Compute
from tinygrad_tf.train.prepare import Workspace, build, new_tokenizer, reopen, text_source
from tinygrad_tf.train.store import RunStore, restore
from tinygrad_tf.train.trainer import TrainConfig, Trainer

# The longest document that a context is made for unless more is asked.
LONGEST_CONTEXT = 256
# The training loss that is reported is that of about so many tokens, from all over the text.
SAMPLE_TARGETS = 16_384
EVALUATION_TOKENS = 8192
MOST_MEMORY = 1 << 50


class Experiment:
    """One run; make it with `create` or `resume`, look at `plan()`, then iterate over `run()`."""

    def __init__(
        self,
        recipe: Recipe,
        path: Path,
        tokenizer: Tokenizer,
        tokens: TokenSet,
        notes: list[str],
        *,
        force: bool = False,
    ) -> None:
        self.recipe, self.path, self.tokenizer, self.tokens = recipe, path, tokenizer, tokens
        self.notes, self.force = notes, force
        self.config = _model_config(recipe, tokenizer, tokens)
        if not recipe.lines:
            tokens.require(self.config.block_size)
        self.train_config = TrainConfig(**recipe.training)
        self._workspace: Workspace | None = None
        self._directory: RunDirectory | None = None
        self._trainer: Trainer | None = None
        self._stopping = False
        # What the run directory had to say and nobody has been told yet.
        self._news: list[str] = []

    # --- making one ---
    @classmethod
    def create(cls, options: TrainOptions, *, dry_run: bool = False) -> Experiment:
        """A new run: reads and encodes the text, and writes nothing where the run will be.

        Raises InputError for whatever is wrong with the options or the text; with `dry_run`, for
        what only training needs, memory and a free directory, there is a note in the plan.
        """
        recipe = options.resolve()
        path = options.out or free_path(Path("runs") / recipe.title())
        if options.out is not None and not options.force and not dry_run:
            require_free(path)
        source = text_source(recipe)
        tokenizer, remarks = new_tokenizer(recipe, source)
        workspace = Workspace()
        tokens = build(recipe, source, tokenizer, workspace.path)
        experiment = cls(
            recipe, path, tokenizer, tokens, source.report.notes() + remarks, force=options.force
        )
        experiment._workspace = workspace
        try:
            experiment._require_memory()
        except InputError as fault:
            if not dry_run:
                raise
            experiment.notes.append(fault.what)
        return experiment

    @classmethod
    def resume(
        cls, run_dir: str | Path, *, steps: int | None = None, time_limit: float | None = None
    ) -> Experiment:
        """Go on with a run where its last checkpoint stands, exactly as if it had not stopped.

        steps and time_limit replace those of the run. Raises InputError where the run is not
        whole, its text has changed, or there is nothing left to do.
        """
        news: list[str] = []
        directory = RunDirectory.open(run_dir, on_warning=news.append)
        block = intact_block(directory)
        recipe = Recipe.from_dict(block["experiment"])
        changed = {"steps": steps or recipe.training["steps"], "time_limit": time_limit}
        recipe = replace(recipe, training=recipe.training | changed)
        tokenizer = load_tokenizer(directory.path / "tokenizer.json")
        source = text_source(recipe)
        experiment = cls(
            recipe,
            directory.path,
            tokenizer,
            reopen(directory.path, recipe, source, tokenizer),
            source.report.notes(),
        )
        experiment._directory, experiment._news = directory, news
        done, planned = directory.checkpoint_steps().get("latest", 0), recipe.training["steps"]
        if done >= planned:
            raise InputError(
                f"{directory.path} has been trained for all of its {planned:,} steps",
                f"give more: --steps {2 * planned}",
            )
        return experiment

    def _require_memory(self) -> None:
        need, free = self.config.memory_bytes(self.recipe.batch_size), _free_memory()
        if need > MOST_MEMORY:
            raise InputError(
                f"training needs about {need / 2**40:,.0f} TiB of memory",
                "use a smaller --batch-size or model",
            )
        if free is not None and need > free and not self.force:
            raise InputError(
                f"training needs about {need / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free",
                "use a smaller --batch-size or model, or --force to try",
            )

    # --- the plan ---
    def plan(self) -> PlanEvent:
        """What will be trained, on what, and what the loss is to be compared with."""
        targets = self.tokens.train.targets
        per_step = self.recipe.batch_size * self.config.block_size * self.train_config.grad_accum
        if self.recipe.lines:
            # Documents are mostly shorter than the context.
            documents = _count_documents(self.tokens)
            per_step = round(self.recipe.batch_size * targets / documents)
        total = per_step * self.train_config.steps
        return PlanEvent(
            run=str(self.path),
            preset=self.recipe.preset,
            params=self.config.parameter_count(),
            tokens_train=targets,
            tokens_val=self.tokens.val.targets,
            vocab_size=self.config.vocab_size,
            epochs=total / targets,
            flops=total * self.config.flops_per_token(),
            memory_bytes=self.config.memory_bytes(self.recipe.batch_size),
            references=self.references(),
            notes=self.notes + self._warnings(total / targets),
            config=self.config.as_dict()
            | self.recipe.training
            | {
                "batch_size": self.recipe.batch_size,
                "seed": self.recipe.seed,
                "threads": self.recipe.threads,
            },
        )

    def _warnings(self, epochs: float) -> list[str]:
        notes = []
        if epochs > 20:
            notes.append(f"the text is read {epochs:.0f} times over: expect over-fitting")
        reason = why_not(self.config)
        if reason:
            notes.append(f"Hugging Face's GPT-2 cannot load this model: {reason}")
        return notes

    def references(self) -> dict[str, float | None]:
        """Losses to compare with, on the validation split, in nats per token."""
        train, val, size = self.tokens.train.tokens, self.tokens.val.tokens, self.config.vocab_size
        floor = self._floor_nats()
        return {
            "uniform": math.log(size),
            "unigram": unigram_nats(train, val, size),
            "bigram": bigram_nats(train, val, size),
            "floor": None if floor is None else floor / self.tokens.val.targets,
        }

    def _floor_nats(self) -> float | None:
        """The true entropy of the validation stories, known for the embedded corpus alone."""
        if self.recipe.texts:
            return None
        stories = self.tokenizer.decode(self.tokens.val.tokens).strip("\n").split("\n")
        return math.fsum(map(corpus.story_nats, stories))

    # --- the run ---
    def run(self) -> Iterator[Event]:
        """Train, yielding what happens; the run's directory is made now if it is new."""
        directory = self._directory
        is_new = directory is None
        # Made before anything is replaced: a model may be too large for this machine.
        model = GPT(self.config, self.recipe.seed)
        if is_new and self.recipe.init_from is not None:
            model.load_tensors(GPT.load(self.recipe.init_from).file_tensors())
        if directory is None:
            directory = RunDirectory.create(
                self.path, force=self.force, on_warning=self._news.append
            )
        with directory.lock():
            if is_new:
                if directory.checkpoint_steps():
                    raise taken(self.path)  # by another process, a moment ago
                self._furnish(directory)
            else:
                self._keep_plan(directory)
            self._trainer = self._make_trainer(directory, model)
            if self._stopping:
                self._trainer.stop()
            for event in self._trainer.run():
                yield from self._warnings_of_the_run(self._trainer.progress.step)
                yield event

    def stop(self) -> None:
        """Ask to finish the step, save and end; safe to call from a signal handler."""
        self._stopping = True
        if self._trainer is not None:
            self._trainer.stop()

    def _warnings_of_the_run(self, step: int) -> Iterator[WarningEvent]:
        """What the run directory has warned of since this was last asked."""
        news = self._news[:]
        self._news.clear()
        yield from (WarningEvent(step, note) for note in news)

    def _furnish(self, directory: RunDirectory) -> None:
        """Write into a new run what it needs to be resumed from its very beginning."""
        save_tokenizer(self.tokenizer, directory.path / "tokenizer.json")
        assert self._workspace is not None
        data = directory.path / "data"
        shutil.rmtree(data, ignore_errors=True)
        with atomic.writing(data):
            data.mkdir()
            for file in self._workspace.path.iterdir():
                shutil.copyfile(file, data / file.name)
        self.tokens = open_tokens(data, self.tokenizer)
        self._workspace.remove()
        self._write_config(directory, digests(directory.path, data))

    def _keep_plan(self, directory: RunDirectory) -> None:
        """Write down the number of steps if it was changed on resuming."""
        block = intact_block(directory)
        if block["experiment"]["training"]["steps"] != self.recipe.training["steps"]:
            self._write_config(directory, block["files_sha256"])

    def _write_config(self, directory: RunDirectory, files_sha256: dict[str, Any]) -> None:
        config = config_json(
            self.config,
            version=tinygrad_tf.__version__,
            experiment=self.recipe.as_dict(),
            files_sha256=files_sha256,
        )
        config["tt"]["sha256"] = seal(config)
        directory.write_config(config)

    def _make_trainer(self, directory: RunDirectory, model: GPT) -> Trainer:
        seed, block_size = self.recipe.seed, self.config.block_size
        store = RunStore(directory, self.tokens.text_sha256, self.tokenizer.sha256())
        rows = max(self.recipe.batch_size, EVALUATION_TOKENS // block_size)
        evaluate = partial(evaluation_batches, block_size=block_size, batch_size=rows)
        validation = partial(evaluate, self.tokens.val)
        every = max(1, self.tokens.train.targets // SAMPLE_TARGETS)
        sample = partial(evaluate, self.tokens.train, every=every)
        trainer = Trainer(
            model,
            training_batches(self.tokens.train, block_size, self.recipe.batch_size, seed),
            self.train_config,
            validation=validation,
            training_sample=sample,
            store=store,
            name=str(self.path),
            compute=Compute(min(self.recipe.threads, self.recipe.batch_size)),
        )
        val = self.tokens.val
        first = val.tokens[:1]
        trainer.chars_per_token = (val.chars - self.tokenizer.count_chars(first)) / val.targets
        trainer.bytes_per_token = self.tokenizer.count_bytes(val.tokens[1:]) / val.targets
        floor = self._floor_nats()
        if floor is not None:
            trainer.floor_bits_per_char = floor / val.targets / math.log(2.0)
        if directory.checkpoint_steps():
            # Read only now that the run is locked: another process may just have gone on with it.
            checkpoint = directory.load_checkpoint()
            store.require_same_origin(checkpoint.state)
            restore(trainer, checkpoint)
            directory.truncate_metrics(trainer.progress.step)
        else:
            directory.truncate_metrics(-1)
            directory.append_metrics(self.plan().as_json())
        return trainer


def _model_config(recipe: Recipe, tokenizer: Tokenizer, tokens: TokenSet) -> GPTConfig:
    fields = dict(recipe.model)
    if recipe.init_from is not None:
        given = config_from_json(RunDirectory.open(recipe.init_from).read_config())
        if given.vocab_size < tokenizer.vocab_size:
            raise InputError(
                f"the model of {recipe.init_from} has {given.vocab_size:,} tokens, its tokenizer "
                f"{tokenizer.vocab_size:,}",
                "put the tokenizer there that the model was trained with",
            )
        return replace(given, **fields)
    if "block_size" not in fields and recipe.lines and tokens.train.starts is not None:
        starts = (split.starts for split in (tokens.train, tokens.val))
        longest = max(int(np.diff(s).max()) for s in starts if s is not None)
        fields["block_size"] = min(longest, LONGEST_CONTEXT)
    return GPTConfig(vocab_size=tokenizer.vocab_size, **fields)


def _count_documents(tokens: TokenSet) -> int:
    return 1 if tokens.train.starts is None else max(1, len(tokens.train.starts) - 1)


def require_free(path: Path) -> None:
    if path.is_file():
        raise InputError(f"{path} is a file", "choose another --out, a directory")
    is_run = any((path / name).exists() for name in ("config.json", "latest.json"))
    if path.is_dir() and any(path.iterdir()) and not is_run:
        raise InputError(f"{path} holds files that are no run of tt", "choose another --out")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise taken(path)


def taken(path: Path) -> InputError:
    return InputError(
        f"{path} exists already",
        f"choose another --out, replace it with --force, or go on with --resume {path}",
    )


def free_path(path: Path) -> Path:
    """The path, or the first of path-2, path-3, ... that is free: nothing is overwritten."""
    candidates = [path, *(path.with_name(f"{path.name}-{n}") for n in range(2, 1000))]
    return next((p for p in candidates if not p.exists()), candidates[-1])


def _free_memory() -> int | None:
    """Bytes of memory that are available, where the system tells."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
