"""`tt bpe-train`: train a tokenizer on text, and show its merges."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.bpe_options import PATTERNS, FormatChoice
from cli.bytes_io import chunks_of, cores
from cli.console import print_json, say
from cli.format import clock, count, counted
from cli.options import NATURAL, POSITIVE_INT, GroupedCommand, option

if TYPE_CHECKING:
    from tinygrad_tf.text.bpe.training import Step, Trained

LEARNING, OUTPUT = "Learning", "Output"
REPORT_EVERY = 2.0  # seconds between lines of progress
SAMPLE_WORDS = 4

EXAMPLES = (
    "tt bpe-train book.txt --vocab-size 4096 --out tok.json",
    "tt bpe-train texts/ --pattern gpt4 --special '<|endoftext|>'",
    "tt bpe-train --counts words.tsv --end-of-word separate --ties first-seen --show 20",
    "tt corpus | tt bpe-train - --vocab-size 300 --show 10 --watch kite",
)

# fmt: off
OPTIONS: list[click.Parameter] = [
    click.Argument(["files"], metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path)),
    option("--vocab-size", group=LEARNING, type=POSITIVE_INT, default=512, show_default=True,
           help="Number of tokens."),
    option("--pattern", group=LEARNING, metavar=PATTERNS,
           help="How text is split into pieces before merging.  [default: gpt2]"),
    option("--end-of-word", group=LEARNING, type=click.Choice(["separate", "attached"]),
           help="Words with a mark </w> instead of bytes."),
    option("--ties", group=LEARNING, type=click.Choice(["lowest-id", "first-seen", "largest"]),
           default="lowest-id", show_default=True, help="Which of equally frequent pairs merges."),
    option("--min-frequency", group=LEARNING, type=POSITIVE_INT, default=1, show_default=True,
           help="Merge no pair that occurs less often."),
    option("--special", "specials", group=LEARNING, multiple=True, metavar="TEXT",
           help="A token never split nor learned from; may be repeated."),
    option("--ids", group=LEARNING, type=click.Choice(["bytes", "huggingface"]), default="bytes",
           show_default=True, help="Bytes, merges, specials; or specials, characters, merges."),
    option("--counts", group=LEARNING, type=click.Path(path_type=Path), metavar="TSV",
           help="Words with counts (word TAB count) instead of a text."),
    option("--workers", group=LEARNING, type=POSITIVE_INT,
           help="Processes that count.  [default: one per core]"),
    option("--out", group=OUTPUT, type=click.Path(path_type=Path), default="tok.json",
           show_default=True, metavar="FILE", help="Where to; gpt2 takes a directory."),
    option("--format", group=OUTPUT, type=FormatChoice(),
           help="Kind of file.  [default: by its ending, or huggingface]"),
    option("--force", group=OUTPUT, is_flag=True, help="Overwrite an existing file."),
    option("--show", group=OUTPUT, type=NATURAL, metavar="N",
           help="Print the first N merges, and how words split after each."),
    option("--watch", group=OUTPUT, multiple=True, metavar="WORD",
           help="A word to watch with --show.  [default: frequent ones]"),
    option("--json", group=OUTPUT, is_flag=True, help="One object with the result."),
    option("--quiet", "-q", group=OUTPUT, is_flag=True, help="Only the result."),
]
# fmt: on


@click.command("bpe-train", cls=GroupedCommand, examples=EXAMPLES, params=OPTIONS)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    files: tuple[Path, ...],
    counts: Path | None,
    out: Path,
    format: str | None,
    force: bool,
    show: int | None,
    json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Learn byte pair encoding from FILEs (or directories, or - for stdin).

    Starting from single bytes, or from the characters of words, the most frequent pair of
    neighbours becomes a new token, again and again.
    """
    from tinygrad_tf.text.bpe.formats import FORMATS, check_target, format_of_ending, save_bpe

    if bool(files) == bool(counts):
        raise click.UsageError("give either FILEs (- for stdin) or --counts", ctx)
    format = format or format_of_ending(out) or "huggingface"
    check_target(out, format, force=force)
    log = _MergeLog(show or 0, quiet=quiet or json)
    begun = time.monotonic()
    trained = _train(files, counts, options, log)
    notes = save_bpe(trained.table, out, format, force=force)
    elapsed = time.monotonic() - begun
    if json:
        print_json(_summary(trained, out, elapsed, log.steps))
        return
    if show:
        _print_steps(log.steps)
    for note in filter(None, [*trained.notices, *notes]):
        say(f"note: {note}")
    result = trained.stopped or f"learned {counted(len(trained.merges), 'merge')}"
    say(f"{result}; {counted(trained.table.size, 'token')} in {clock(elapsed)}, saved {out}")
    if not quiet:
        needed = FORMATS[format].pattern == "needed"
        pattern = f" --pattern {options['pattern'] or 'gpt2'}" if needed else ""
        say(f'next: tt bpe-view -t {out}{pattern} "some text"')


def _train(
    files: tuple[Path, ...], counts: Path | None, options: dict[str, Any], log: "_MergeLog"
) -> "Trained":
    """Train the tokenizer with the options of the command."""
    pattern, mark, order = options["pattern"], options["end_of_word"], options["ids"]
    shared = {n: options[n] for n in ("vocab_size", "ties", "min_frequency", "specials")}
    workers = options["workers"] or cores()
    if (counts is not None or mark is not None) and (pattern is not None or order != "bytes"):
        raise click.UsageError("--pattern and --ids are for bytes, not for words with </w>")
    from tinygrad_tf.text.bpe.training import train_bpe, train_classical

    if counts is not None or mark is not None:
        from tinygrad_tf.text.bpe.counting import count_words, read_counts_table

        words = (
            count_words(chunks_of(files), shared["specials"])
            if counts is None
            else read_counts_table(counts)
        )
        watch = options["watch"] or _frequent(words.items())
        log.expect(None)
        return train_classical(
            words, end_of_word=mark or "separate", watch=watch, on_step=log.step, **shared
        )
    from tinygrad_tf.text.bpe.counting import count_pieces
    from tinygrad_tf.text.bpe.splitting import Splitter

    splitter = Splitter(pattern or "gpt2")
    chunks = log.reading(chunks_of(files))
    counted = count_pieces(chunks, splitter, shared["specials"], workers=workers)
    pairs = ((p.decode("utf-8", "replace"), n) for p, n in _zip(counted))
    watch = options["watch"] or (_frequent(pairs) if log.wanted else ())
    log.expect(shared["vocab_size"] - 256 - len(shared["specials"]))
    return train_bpe(
        counted, pattern=splitter.name if splitter.known else splitter.source,
        order=order, watch=watch, on_step=log.on_step, **shared,
    )  # fmt: skip


def _zip(counted: Any) -> Iterator[tuple[bytes, int]]:
    return zip(counted.pieces, counted.counts, strict=True)


def _frequent(words: Any) -> tuple[str, ...]:
    """Return the most frequent words of four characters or more; of a small table, all."""
    ranked = sorted(words, key=lambda pair: -pair[1])
    if len(ranked) <= SAMPLE_WORDS:
        return tuple(word for word, _ in ranked)
    long = [word for word, _ in ranked if len(word.strip()) >= 4 and word.strip().isprintable()]
    return tuple((long or [word for word, _ in ranked])[:SAMPLE_WORDS])


class _MergeLog:
    """Progress of the training: keeps the first `wanted` merges and reports the speed."""

    def __init__(self, wanted: int, *, quiet: bool) -> None:
        self.wanted, self.quiet = wanted, quiet
        self.steps: list[Step] = []
        self._planned: int | None = None
        self._begun = self._reported = time.monotonic()

    @property
    def on_step(self) -> Any:
        """The callback for each merge; None if no merge is shown or reported."""
        return None if self.quiet and not self.wanted else self.step

    def reading(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Pass the chunks on, with a line now and then on their size."""
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if self._is_time():
                rate = size / 1e6 / (time.monotonic() - self._begun)
                say(f"counting: {size / 1e6:.0f} MB, {rate:.1f} MB/s")
            yield chunk

    def expect(self, merges: int | None) -> None:
        """Record that merging begins, with at most `merges` merges."""
        self._planned, self._begun = merges, time.monotonic()

    def step(self, step: "Step") -> None:
        """Record one merge."""
        if len(self.steps) < self.wanted:
            self.steps.append(step)
        if self._is_time():
            rate = step.number / (time.monotonic() - self._begun)
            left = f", {clock((self._planned - step.number) / rate)} left" if self._planned else ""
            of = f" of {count(self._planned)}" if self._planned else ""
            say(f"merging: {count(step.number)}{of}, {count(rate)} merges/s{left}")

    def _is_time(self) -> bool:
        now = time.monotonic()
        if self.quiet or now - self._reported < REPORT_EVERY:
            return False
        self._reported = now
        return True


def _print_steps(steps: "list[Step]") -> None:
    """Print a table of merges: the pair, its count, the token, and the split of watched words."""
    from cli.pictures.tables import print_table

    rows = [
        (s.number, f"{s.left} + {s.right}", s.merge.count, s.left + s.right, s.merge.new,
         "   ".join(" ".join(split) for split in s.splits))
        for s in steps
    ]  # fmt: skip
    print_table(("merge", "pair", "count", "token", "id", "words"), rows)


def _summary(trained: "Trained", out: Path, elapsed: float, steps: "list[Step]") -> dict[str, Any]:
    return {
        "vocab_size": trained.table.size,
        "merges": len(trained.merges),
        "asked": trained.asked,
        "stopped": trained.stopped,
        "notices": trained.notices,
        "out": str(out),
        "sha256": trained.table.sha256(),
        "seconds": elapsed,
        "steps": [
            {"merge": s.number, "left": s.left, "right": s.right, "count": s.merge.count,
             "id": s.merge.new, "splits": s.splits}
            for s in steps
        ],
    }  # fmt: skip
