"""The safetensors format: bytes, round trips, the reference package, and every malformed file."""

import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tinygrad_tf.errors import FailedError, InputError
from tinygrad_tf.storage.safetensors import (
    load_safetensors,
    read_header,
    save_safetensors,
    serialise,
)

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
    lambda name: name != "__metadata__"
)
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def raw_file(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def one(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


# What is written


def test_bytes_of_a_small_file(tmp_path: Path) -> None:
    tensors = {"w": np.array([[1.0, -2.0]], np.float32), "flag": np.array(True)}
    digest = save_safetensors(tmp_path / "a.safetensors", tensors)
    header = (
        b'{"__metadata__":{"format":"pt"},'
        b'"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},'
        b'"flag":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}}'
    )
    header += b" " * (-len(header) % 8)
    expected = len(header).to_bytes(8, "little") + header
    expected += b"\x00\x00\x80\x3f" + b"\x00\x00\x00\xc0" + b"\x01"
    assert (tmp_path / "a.safetensors").read_bytes() == expected
    assert digest == hashlib.sha256(expected).hexdigest()


@given(st.dictionaries(names, arrays, max_size=4), st.dictionaries(names, names, max_size=2))
def test_round_trip(tmp_path_factory: Any, tensors: Any, metadata: Any) -> None:
    path = tmp_path_factory.mktemp("s") / "a.safetensors"
    save_safetensors(path, tensors, metadata)
    for mmap in (False, True):
        loaded = load_safetensors(path, mmap=mmap)
        assert list(loaded) == list(tensors)
        assert all(same_bits(loaded[name], tensors[name]) for name in tensors)
        assert all(array.flags.aligned for array in loaded.values())
        assert all(mmap or array.flags.writeable for array in loaded.values())
    header = read_header(path)
    assert header.metadata == metadata
    assert {name: info.shape for name, info in header.tensors.items()} == {
        name: tensor.shape for name, tensor in tensors.items()
    }
    again = b"".join(serialise(loaded, metadata))
    assert path.read_bytes() == again
    assert int.from_bytes(again[:8], "little") % 8 == 0


@pytest.mark.parametrize(
    "tensor",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4).T,
        np.arange(12, dtype=np.float32)[::-2],
        np.arange(3, dtype=">f4"),
        np.broadcast_to(np.float32(3), (2, 2)),
    ],
)
def test_any_memory_layout_is_written_in_c_order(tmp_path: Path, tensor: np.ndarray) -> None:
    save_safetensors(tmp_path / "a", {"w": tensor})
    assert same_bits(load_safetensors(tmp_path / "a")["w"], np.array(tensor, "<f4", order="C"))


@pytest.mark.parametrize(
    ("tensors", "metadata"),
    [
        ({"w": np.zeros(2, np.complex64)}, None),
        ({"w": np.array(["a"])}, None),
        ({"w": np.array([None])}, None),
        ({"__metadata__": np.zeros(2)}, None),
        ({"\ud800": np.zeros(2)}, None),
        ({}, {"step": 3}),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, tensors: Any, metadata: Any) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(InputError):
        save_safetensors(tmp_path / "a", tensors, metadata)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


def test_writing_nowhere_fails(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match=r"cannot write .*does not exist"):
        save_safetensors(tmp_path / "missing" / "a", {})


# The reference package


@pytest.mark.reference
def test_equal_to_the_reference_package(tmp_path: Path) -> None:
    reference = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(0)
    every = {
        f"{dtype}.{i}": rng.integers(0, 2, shape).astype(dtype)
        for dtype in DTYPES
        for i, shape in enumerate([(), (0,), (3,), (2, 0, 2), (2, 3)])
    }
    save_safetensors(tmp_path / "ours", every)
    theirs = reference.load_file(tmp_path / "ours")
    assert theirs.keys() == every.keys()
    assert all(same_bits(theirs[name], every[name]) for name in every)

    reference.save_file(every, tmp_path / "theirs", metadata={"a": "é"})
    ours = load_safetensors(tmp_path / "theirs")
    assert ours.keys() == every.keys()
    assert all(same_bits(ours[name], every[name]) for name in every)
    assert read_header(tmp_path / "theirs").metadata == {"a": "é"}


@pytest.mark.reference
def test_same_bytes_as_the_reference_package() -> None:
    reference = pytest.importorskip("safetensors.numpy")
    weights = {name: np.full((2, 3), i, np.float32) for i, name in enumerate("abc")}
    assert b"".join(serialise(weights)) == reference.save(weights, {"format": "pt"})


@pytest.mark.reference
def test_bfloat16_is_widened_as_torch_does(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("safetensors.torch")
    values = torch.tensor([1.0, -3.14159, 1e38, 1e-40, math.inf, math.nan]).to(torch.bfloat16)
    theirs.save_file({"w": values, "zero_d": values[1].clone()}, tmp_path / "b")
    ours = load_safetensors(tmp_path / "b")
    assert ours["w"].dtype == np.float32
    np.testing.assert_array_equal(ours["w"], values.float().numpy())
    assert ours["zero_d"].shape == ()


# What is refused


def test_bfloat16_bits(tmp_path: Path) -> None:
    raw_file(tmp_path / "a", one("BF16", [2], [0, 4]), bytes.fromhex("803f 49c0"))
    np.testing.assert_array_equal(load_safetensors(tmp_path / "a")["w"], [1.0, -3.140625])


MALFORMED = {
    "whole number": (one(shape=[-1]), b"12345678"),
    "list of at most": (one(shape=[True, 2]), b"12345678"),
    "shape must": (one(shape=[2.0]), b"12345678"),
    "shape must be": (one(shape="2"), b"12345678"),
    "64 whole": (one(shape=[1] * 65, offsets=[0, 4]), b"1234"),
    "too large": (one(shape=[2**40, 2**40]), b"12345678"),
    "is too large": (one(shape=[0, 2**62, 4], offsets=[0, 0]), b""),
    "whole numbers": (one(shape=[2**64]), b"12345678"),
    "takes 8 bytes": (one(offsets=[0, 4]), b"1234"),
    "span -8": (one(offsets=[8, 0]), b"12345678"),
    "two whole": (one(offsets=[-8, 0]), b"12345678"),
    "data_offsets must": (one(offsets=[0, 4, 8]), b"12345678"),
    "leaves a hole": (one(offsets=[4, 12]), b"123456789012"),
    "overlaps": (
        one() | {"v": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}},
        b"123456789012",
    ),
    "cut off": (one(), b"1234567"),
    "belong to no tensor": (one(), b"123456789"),
    "no tensor": ({}, b"1"),
    "dtype must be one of": (one("F8_E4M3", [8]), b"12345678"),
    "dtype must": (one(["F32"]), b"12345678"),
    "neither 0 nor 1": (one("BOOL", [2], [0, 2]), b"\x01\x02"),
    "nothing else": ({"w": {"dtype": "F32", "shape": [2]}}, b"12345678"),
    "and nothing": ({"w": one()["w"] | {"more": 1}}, b"12345678"),
    "must have": ({"w": [1]}, b""),
    "strings to strings": ({"__metadata__": {"step": 3}}, b""),
    "to strings": ({"__metadata__": ["a"]}, b""),
    "map strings": ({"__metadata__": None}, b""),
    "not valid Unicode": (b'{"\\ud800":' + json.dumps(one()["w"]).encode() + b"}", b"12345678"),
    "appears twice": (b'{"a": {"b": 1, "b": 2}}', b""),
    "'__metadata__' appears twice": (b'{"__metadata__": {}, "__metadata__": {}}', b""),
    "NaN is not JSON": (b'{"w": NaN}', b""),
    "-Infinity": (b'{"w": -Infinity}', b""),
    "not UTF-8": (b'{"\xff": 1}', b""),
    "does not begin": (b' {"w": 1}', b""),
    "begin with": (b"[1]", b""),
    "not JSON": (b'{"w": 1', b""),
    "Extra data": (b"{} {}", b""),
    "nested too deeply": (b'{"w":' + b"[" * 200_000 + b"]" * 200_000 + b"}", b""),
    "header is not JSON": (b'{"w":' + b"9" * 5000 + b"}", b""),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_file_is_refused_by_name(tmp_path: Path, fault: str) -> None:
    header, data = MALFORMED[fault]
    path = raw_file(tmp_path / "odd.safetensors", header, data)
    for load in (load_safetensors, lambda path: load_safetensors(path, mmap=True)):
        with pytest.raises(InputError) as caught:
            load(path)
        assert "odd.safetensors" in caught.value.what
        assert fault in caught.value.what
        assert len(str(caught.value)) < 1000
        assert "\n" not in str(caught.value)
        if isinstance(header, dict) and "w" in header and "tensors take" not in caught.value.what:
            assert "'w'" in caught.value.what or "'v'" in caught.value.what


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"", "0 bytes"),
        (b"\x02\0\0\0\0\0\0", "7 bytes"),
        (b"\x03\0\0\0\0\0\0\0{}", "3 bytes is announced in a file of 10"),
        (b"\xff" * 16, "announced"),
        ((100_000_001).to_bytes(8, "little") + b"{}", "100,000,001"),
        (b"PK\x03\x04" + b"\0" * 100, "announced"),
    ],
)
def test_bad_beginning(tmp_path: Path, raw: bytes, fault: str) -> None:
    (tmp_path / "a").write_bytes(raw)
    with pytest.raises(InputError, match=fault):
        load_safetensors(tmp_path / "a")


def test_header_above_the_limit_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write((100_000_001).to_bytes(8, "little") + b"{")
        file.truncate(200_000_000)  # a sparse file, long enough for such a header
    with pytest.raises(InputError, match="100,000,001"):
        read_header(tmp_path / "a")


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_safetensors(tmp_path / "a")
    with pytest.raises(InputError, match="cannot read"):
        load_safetensors(tmp_path)


@pytest.mark.parametrize("mmap", [False, True])
def test_digest_is_verified(tmp_path: Path, mmap: bool) -> None:
    digest = save_safetensors(tmp_path / "a", {"w": np.ones(3)})
    load_safetensors(tmp_path / "a", mmap=mmap, sha256=digest)
    raw = bytearray((tmp_path / "a").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "a").write_bytes(raw)
    with pytest.raises(InputError, match="altered or damaged"):
        load_safetensors(tmp_path / "a", mmap=mmap, sha256=digest)


# Fuzzing: a valid dict, or InputError, and nothing else


def loads_or_refuses(path: Path) -> bool:
    try:
        tensors = load_safetensors(path)
    except InputError:
        return False
    assert all(isinstance(array, np.ndarray) for array in tensors.values())
    return True


@pytest.fixture
def sample() -> bytes:
    tensors = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False]),
        "e": np.zeros((0, 2), np.int64),
        "s": np.array(3, np.int16),
    }
    return b"".join(serialise(tensors))


def test_every_truncation_is_refused(tmp_path: Path, sample: bytes) -> None:
    path = tmp_path / "a"
    for length in range(len(sample)):
        path.write_bytes(sample[:length])
        assert not loads_or_refuses(path)
    path.write_bytes(sample)
    assert loads_or_refuses(path)
    path.write_bytes(sample + b"\0")
    assert not loads_or_refuses(path)


def test_altered_headers(tmp_path: Path, sample: bytes) -> None:
    path = tmp_path / "a"
    rng = random.Random(0)
    end = 8 + int.from_bytes(sample[:8], "little")
    for position in range(end):
        for bit in rng.sample(range(8), 2):
            raw = bytearray(sample)
            raw[position] ^= 1 << bit
            path.write_bytes(raw)
            loads_or_refuses(path)
    for _ in range(500):
        raw = bytearray(sample)
        for _ in range(rng.randint(1, 8)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        path.write_bytes(raw)
        loads_or_refuses(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
odd_sizes = st.lists(st.integers(-1, 4) | st.just(2**63) | json_values, max_size=4)
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BOOL", "BF16", "X"]) | json_values,
        "shape": odd_sizes | json_values,
        "data_offsets": odd_sizes | json_values,
    }
)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.dictionaries(st.text(max_size=3) | st.just("__metadata__"), entries | json_values),
    st.binary(max_size=16),
)
def test_random_headers(tmp_path_factory: Any, header: Any, data: bytes) -> None:
    loads_or_refuses(raw_file(tmp_path_factory.getbasetemp() / "fuzz", header, data))
