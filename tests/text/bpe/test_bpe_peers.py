"""Files go to Hugging Face and tiktoken and come from them; both sides give the same ids."""

import base64
import inspect
import json
import random
import re

import pytest

from tests.text.bpe.oracle import rank_table
from tinygrad_tf.text.bpe.alphabet import BYTE_TO_CHAR, to_bytes
from tinygrad_tf.text.bpe.formats import load_bpe, save_bpe
from tinygrad_tf.text.bpe.formats.tiktoken import PUBLISHED
from tinygrad_tf.text.bpe.splitting import PATTERNS, Splitter
from tinygrad_tf.text.bpe.table import BPETable
from tinygrad_tf.text.bpe.tokenizer import BPETokenizer

pytestmark = pytest.mark.reference

KNOWN = ["gpt2", "gpt4", "gpt4-old", "o200k"]
SPECIALS = ["<|endoftext|>", "<|end", "new\nline"]
RANGES = [(32, 127)] * 8 + [(9, 14), (0xA0, 0x250), (0x370, 0x530), (0x5D0, 0x700)]
RANGES += [(0x2000, 0x2100), (0x3040, 0x3100), (0x4E00, 0x4F00), (0x1F600, 0x1F650)]
RANGES += [(0x300, 0x370), (0xAC00, 0xAD00), (0x10400, 0x10450), (0x2150, 0x2190)]


def drawn_text(length, seed=0):
    """A text of many scripts, words, numbers, line ends and rare characters."""
    rng = random.Random(seed)
    words = ["the", "and", "don't", "WE'LL", "it's", " ", "  ", "\n", "\r\n", "\n\n ", "1234567"]
    parts, size = [], 0
    while size < length:
        if rng.random() < 0.7:
            part = rng.choice(words) + rng.choice(["", " ", " "])
        elif rng.random() < 0.95:
            low, high = rng.choice(RANGES)
            part = "".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 6)))
        else:
            code = rng.randrange(0x110000)
            part = chr(code) if not 0xD800 <= code < 0xE000 else "?"
        parts.append(part)
        size += len(part)
    return "".join(parts)


def pairs_of(text, count, seed=0):
    """Merges that the text gives work to: likely pairs of its own pieces, in drawn order."""
    rng = random.Random(seed)
    merges, known = [], set(BYTE_TO_CHAR)
    tokenizer = BPETokenizer(BPETable.from_merges([]))
    while len(merges) < count:
        start = rng.randrange(len(text) - 40)
        piece = tokenizer.encode(text[start : start + 40]).tolist()
        shown = [tokenizer.table.id_to_token[i] for i in piece]
        at = rng.randrange(len(shown) - 1)
        left, right = shown[at], shown[at + 1]
        if left + right not in known:
            known.add(left + right)
            merges.append((left, right))
            tokenizer = (
                BPETokenizer(BPETable.from_merges(merges)) if rng.random() < 0.2 else (tokenizer)
            )
    return merges


TEXT = drawn_text(20_000)
MERGES = pairs_of(TEXT, 300)


def table_of(pattern, specials=SPECIALS):
    return BPETable.from_merges(MERGES, pattern=pattern, specials=specials)


def same_ids(tokenizer, encode, text, **options):
    found = tokenizer.encode(text, **options).tolist()
    expected = encode(text)
    if found != expected:
        first = next(i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b)
        near = tokenizer.decode(found[max(0, first - 5) : first + 5])
        pytest.fail(f"ids differ from number {first} on, near {near!r}")


@pytest.mark.parametrize("pattern", [*KNOWN, "none", r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"])
def test_our_json_encodes_alike_in_hugging_face(tmp_path, pattern):
    tokenizers = pytest.importorskip("tokenizers")
    save_bpe(table_of(pattern), tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ours = BPETokenizer(table_of(pattern))
    text = TEXT if pattern != "none" else TEXT[:3000]
    text += "<|endoftext|>a<|end<|end|>new\nline1234567\n \n "
    same_ids(ours, lambda t: theirs.encode(t).ids, text, specials="allow")
    ids = ours.encode(text, specials="allow").tolist()
    assert theirs.decode(ids, skip_special_tokens=False) == ours.decode(ids)
    assert theirs.get_vocab_size() == ours.vocab_size


@pytest.mark.parametrize("pattern", KNOWN)
def test_our_rank_file_encodes_alike_in_tiktoken(tmp_path, monkeypatch, pattern):
    tiktoken = pytest.importorskip("tiktoken")
    load = pytest.importorskip("tiktoken.load")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # it would remember the path
    path = tmp_path / "file.tiktoken"
    ours = BPETokenizer(rank_table([to_bytes(a + b) for a, b in MERGES], pattern))
    save_bpe(ours.table, path)
    again = BPETokenizer(load_bpe(path, pattern=pattern, specials={"<|x|>": 1000}))
    theirs = tiktoken.Encoding(
        "ours",
        pat_str=PATTERNS[pattern],
        mergeable_ranks=load.load_tiktoken_bpe(str(path)),
        special_tokens={"<|x|>": 1000},
    )
    same_ids(again, theirs.encode_ordinary, TEXT, specials="text")
    text = f"a<|x|>b{TEXT[:500]}<|x|>"
    same_ids(again, lambda t: theirs.encode(t, allowed_special="all"), text, specials="allow")
    data = random.Random(1).randbytes(2000)
    ids = again.encode_bytes(data).tolist()
    assert theirs.decode_bytes(ids) == again.decode_bytes(ids) == data


def test_published_rank_files_are_known_by_their_hashes():
    openai = pytest.importorskip("tiktoken_ext.openai_public")
    for build in (openai.r50k_base, openai.p50k_base, openai.cl100k_base, openai.o200k_base):
        source = inspect.getsource(build)
        (digest,) = re.findall('expected_hash="([0-9a-f]{64})"', source)
        published = PUBLISHED[digest]
        ids = set(re.findall(r"[: ](\d{5,6})\b", source))
        assert {str(i) for i in published.specials.values()} <= ids
        pattern = openai.r50k_pat_str if "r50k_pat_str" in source else None
        if pattern is None:
            parts = re.findall(r'r"""(.*?)"""', source)
            pattern = "|".join(parts)
        assert Splitter(pattern).name == published.pattern


def trained_by_them(tokenizers, pre_tokenizer, corpus, vocab_size=600, **options):
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE(**options))
    theirs.pre_tokenizer = pre_tokenizer
    suffix = {name: value for name, value in options.items() if name == "end_of_word_suffix"}
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        show_progress=False,
        special_tokens=["<unk>", "<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet() if not suffix else [],
        **suffix,
    )
    theirs.train_from_iterator(corpus, trainer)
    return theirs


def byte_level(tokenizers, pattern):
    pre = tokenizers.pre_tokenizers
    if pattern == "gpt2":
        return pre.ByteLevel(add_prefix_space=False)
    split = pre.Split(tokenizers.Regex(PATTERNS[pattern]), "isolated")
    return pre.Sequence([split, pre.ByteLevel(add_prefix_space=False, use_regex=False)])


@pytest.mark.slow
@pytest.mark.parametrize("pattern", KNOWN)
def test_a_tokenizer_of_hugging_face_encodes_alike_here(tmp_path, pattern):
    tokenizers = pytest.importorskip("tokenizers")
    corpus = drawn_text(100_000, seed=1).split("\n")
    theirs = trained_by_them(tokenizers, byte_level(tokenizers, pattern), corpus, 1500)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = BPETokenizer(load_bpe(tmp_path))
    assert ours.table.pattern == pattern
    text = drawn_text(1_000_000, seed=2)
    same_ids(ours, lambda t: theirs.encode(t).ids, text)
    again = json.dumps(ours.to_json())
    assert (
        json.loads(tokenizers.Tokenizer.from_str(again).to_str())["model"]
        == json.loads(theirs.to_str())["model"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2", "gpt4", "o200k"])
def test_a_million_characters_encode_as_in_tiktoken(pattern):
    tiktoken = pytest.importorskip("tiktoken")
    ours = BPETokenizer(rank_table([to_bytes(a + b) for a, b in MERGES], pattern))
    ranks = {to_bytes(token): rank for token, rank in ours.table.vocab.items()}
    theirs = tiktoken.Encoding(
        "ours", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={}
    )
    same_ids(ours, theirs.encode_ordinary, drawn_text(1_000_000, seed=3))


def test_words_of_hugging_face_encode_alike_here(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    corpus = ["old older finest lowest the cat and the oldest dog " * 3]
    words = tokenizers.pre_tokenizers.WhitespaceSplit()
    options = {"unk_token": "<unk>", "end_of_word_suffix": "</w>"}
    theirs = trained_by_them(tokenizers, words, corpus, 60, **options)
    theirs.decoder = tokenizers.decoders.BPEDecoder()
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = BPETokenizer(load_bpe(tmp_path))
    assert ours.table.end_of_word == "attached"
    text = "the oldest  cat\x85 zebra\u2003dog é <unk>colder\n"
    same_ids(ours, lambda t: theirs.encode(t).ids, text, specials="allow")
    ids = ours.encode("the oldest cat").tolist()
    assert theirs.decode(ids) == ours.decode(ids) == "the oldest cat"


def test_marks_of_their_own_encode_alike_in_hugging_face(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    merges = [("e", "s"), ("es", "t"), ("est", "</w>"), ("o", "l"), ("ol", "d"), ("old", "</w>")]
    alphabet = [*sorted({*"olderfinestlow"}), "</w>"]
    table = BPETable.classical(alphabet, merges, unk="<unk>", specials=["<x>"])
    save_bpe(table, tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ours = BPETokenizer(load_bpe(tmp_path))
    assert ours.table == table
    text = "old  oldest\n\nbold\u2003est <x> west\x85s\x1co"
    same_ids(ours, lambda t: theirs.encode(t).ids, text, specials="allow")
    ids = ours.encode("old oldest low").tolist()
    assert theirs.decode(ids) == ours.decode(ids) == "old oldest low"


@pytest.mark.slow
def test_our_pair_of_files_encodes_alike_in_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    save_bpe(table_of("gpt2", ["<|endoftext|>"]), tmp_path, "gpt2")
    theirs = transformers.GPT2Tokenizer.from_pretrained(str(tmp_path))
    ours = BPETokenizer(load_bpe(tmp_path))
    text = TEXT[:5000] + "<|endoftext|>x"
    same_ids(ours, lambda t: theirs(t)["input_ids"], text, specials="allow")


def test_edited_tables_encode_as_where_they_come_from(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    plain = {char: byte for byte, char in enumerate(BYTE_TO_CHAR)}
    vocab = plain | {"ab": 300, "abc": 301, "bc": 302, "hello": 303, "xyz": 304}
    base = BPETokenizer(BPETable(plain)).to_json()
    for ignore in (False, True):
        for merges in (["a b", "b c", "a b", "a bc"], ["b c", "a b", "ab c"]):
            model = {"vocab": vocab, "merges": merges, "ignore_merges": ignore}
            content = json.dumps(base | {"model": base["model"] | model})
            path = tmp_path / f"{ignore}{len(merges)}.json"
            path.write_text(content)
            theirs = tokenizers.Tokenizer.from_str(content)
            ours = BPETokenizer(load_bpe(path))
            for text in ("abc", "aabcabc", "hello hello", "xyz xyz", "abcd ab bc"):
                same_ids(ours, lambda t, theirs=theirs: theirs.encode(t).ids, text)


def test_edited_ranks_encode_as_where_they_come_from(tmp_path):
    tiktoken = pytest.importorskip("tiktoken")
    rng = random.Random(5)
    for _ in range(60):
        tokens = {bytes(rng.choices(b"abc", k=rng.randint(2, 5))) for _ in range(12)}
        ranks = {bytes([255 - i]): i for i in range(256)}
        ranks |= {token: 260 + 2 * i for i, token in enumerate(sorted(tokens, key=hash))}
        lines = [base64.b64encode(token) + b" %d" % rank for token, rank in ranks.items()]
        path = tmp_path / "file"
        path.write_bytes(b"\n".join(lines))
        ours = BPETokenizer(load_bpe(path, pattern=r"\w+|\W+"))
        theirs = tiktoken.Encoding(
            "edited", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={}
        )
        for _ in range(40):
            text = "".join(rng.choices("abc ", weights=[9, 9, 9, 2], k=rng.randint(1, 150)))
            same_ids(ours, theirs.encode_ordinary, text)
