"""Named arrays in one file: the safetensors format, for NumPy.

The file is: the header's length (8 bytes, little-endian), the header (a JSON object), the data.
The header gives for each tensor `dtype`, `shape` and `data_offsets` [begin, end) in the data.
Tensors cover the data without holes; they are little-endian and in C order.
`__metadata__` maps strings to strings. Format: https://github.com/huggingface/safetensors
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tinygrad_tf.errors import InputError
from tinygrad_tf.storage.atomic import PathLike, check_sha256, reading, write_atomically
from tinygrad_tf.storage.strict_json import parse_json

MAX_HEADER_BYTES = 100_000_000
_MAX_DIMENSIONS = 64  # NumPy's own limit
_BFLOAT16 = "BF16"  # NumPy has none: read as its bits, then widened
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    _BFLOAT16: np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {(d.kind, d.itemsize): name for name, d in _DTYPES.items() if name != _BFLOAT16}


class TensorInfo(NamedTuple):
    """The header's entry of a tensor: dtype in the format's spelling, shape, bytes [begin, end)."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """A file's metadata and its tensors by name, in the order of the header."""

    metadata: dict[str, str]
    tensors: dict[str, TensorInfo]


class _Malformed(Exception):
    """A fault of a file whose name is not known yet."""


# Writing


def save_safetensors(
    path: PathLike,
    tensors: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str] | None = None,
) -> str:
    """Write named arrays atomically and return the file's sha256.

    The bytes depend on nothing but the arguments; tensors keep the order of the mapping.
    Raises InputError for what the format cannot hold, FailedError where it cannot be written.
    """
    return write_atomically(path, serialise(tensors, metadata))


def serialise(
    tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file in pieces, so that a big model is never in memory twice.

    `metadata` is {"format": "pt"} unless given: other programs refuse files without it.
    """
    metadata = {"format": "pt"} if metadata is None else dict(metadata)
    if not _maps_text_to_text(metadata):
        raise InputError("the metadata of a safetensors file must map strings to strings")
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        dtype = _NAMES.get((tensor.dtype.kind, tensor.dtype.itemsize))
        if dtype is None or not _is_text(name) or name == "__metadata__":
            raise InputError(f"tensor {name!r} of {tensor.dtype} cannot be stored as safetensors")
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": dtype, "shape": tensor.shape, "data_offsets": (begin, end)}
    raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    raw += b" " * (-len(raw) % 8)
    yield len(raw).to_bytes(8, "little") + raw
    for tensor in tensors.values():
        little = np.asarray(tensor, dtype=tensor.dtype.newbyteorder("<"), order="C")
        yield little.reshape(-1).view(np.uint8).data


# Reading


def read_header(path: PathLike) -> Header:
    """Read the header of a file without its data; raises InputError like `load_safetensors`."""
    with _opened(Path(path)) as (file, size):
        return _read_header(file, size)[0]


def load_safetensors(
    path: PathLike, *, mmap: bool = False, sha256: str | None = None
) -> dict[str, NDArray[Any]]:
    """Read named arrays, in the header's order; BF16 is widened to float32.

    Without `mmap` the arrays are writable and share one buffer, with it they are read-only and
    their pages come from the file as they are touched (on Windows it cannot be replaced
    meanwhile). Raises InputError, which names the file, the tensor and the fault, for every file
    that breaks the format in any way, or whose digest is not the given `sha256`.
    """
    path = Path(path)
    with _opened(path) as (file, size):
        header, raw = _read_header(file, size)
        data = _read_data(file, len(raw), size - len(raw), mmap)
        tensors = {name: _tensor(data, name, info) for name, info in header.tensors.items()}
    if sha256 is not None:
        digest = hashlib.sha256(raw)
        digest.update(data.data)
        check_sha256(path, digest.hexdigest(), sha256)
    return tensors


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedReader, int]]:
    try:
        with reading(path), path.open("rb") as file:
            yield file, file.seek(0, 2)
    except _Malformed as fault:
        raise InputError(
            f"{path} is not a whole safetensors file: {str(fault)[:400]}",
            "restore it from a copy, or write it again",
        ) from None


def _read_header(file: BufferedReader, size: int) -> tuple[Header, bytes]:
    """Return the header and all the bytes before the data."""
    file.seek(0)
    prefix = file.read(8)
    if len(prefix) < 8:
        raise _Malformed(f"it has {size} bytes and needs at least 8")
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER_BYTES or 8 + length > size:
        raise _Malformed(f"a header of {length:,} bytes is announced in a file of {size:,}")
    raw = file.read(length)
    if not raw.startswith(b"{"):
        raise _Malformed("the header does not begin with '{'")
    try:
        record = parse_json(raw)
    except ValueError as error:
        raise _Malformed(f"the header is not JSON: {error}") from None
    metadata = record.pop("__metadata__", {})
    if not _maps_text_to_text(metadata):
        raise _Malformed("__metadata__ must map strings to strings")
    tensors = {name: _tensor_info(name, entry) for name, entry in record.items()}
    _check_cover(tensors, size - 8 - length)
    return Header(metadata, tensors), prefix + raw


def _tensor_info(name: str, entry: object) -> TensorInfo:
    def malformed(fault: str) -> _Malformed:
        return _Malformed(f"tensor {name!r}: {fault}")

    if not _is_text(name):
        raise malformed("the name is not valid Unicode")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise malformed("its entry must have dtype, shape and data_offsets, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise malformed(f"dtype must be one of {' '.join(_DTYPES)}, not {dtype!r}")
    if not _are_sizes(shape) or len(shape) > _MAX_DIMENSIONS:
        raise malformed(f"shape must be a list of at most {_MAX_DIMENSIONS} whole numbers")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise malformed("data_offsets must be two whole numbers")
    itemsize = _DTYPES[dtype].itemsize
    if math.prod(n for n in shape if n) * itemsize >= 2**63:
        raise malformed(f"the shape {shape} is too large")
    begin, end = offsets
    if end - begin != math.prod(shape) * itemsize:
        raise malformed(
            f"{dtype} of shape {shape} takes {math.prod(shape) * itemsize} bytes, "
            f"its offsets {offsets} span {end - begin}"
        )
    return TensorInfo(dtype, tuple(shape), begin, end)


def _check_cover(tensors: Mapping[str, TensorInfo], size: int) -> None:
    """Raise unless the tensors cover the data's bytes, each exactly once."""
    covered = 0
    for name, info in sorted(tensors.items(), key=lambda item: item[1][2:]):
        if info.begin != covered:
            fault = "overlaps another" if info.begin < covered else "leaves a hole before it"
            raise _Malformed(f"tensor {name!r}: begins at {info.begin} and {fault}")
        covered = info.end
    if covered != size:
        fault = "it is cut off" if covered > size else "bytes follow that belong to no tensor"
        raise _Malformed(f"the tensors take {covered:,} bytes, the file has {size:,}: {fault}")


def _read_data(file: BufferedReader, start: int, size: int, mmap: bool) -> NDArray[np.uint8]:
    if mmap and size:  # no bytes cannot be mapped
        return np.asarray(np.memmap(file, np.uint8, mode="r", offset=start, shape=(size,)))
    data = np.empty(size, np.uint8)
    file.seek(start)
    if file.readinto(data.data) != size:
        raise _Malformed("it was cut off while it was read")
    return data


def _tensor(data: NDArray[np.uint8], name: str, info: TensorInfo) -> NDArray[Any]:
    raw = data[info.begin : info.end]
    if info.dtype == "BOOL" and raw.size and raw.max() > 1:
        raise _Malformed(f"tensor {name!r}: a BOOL is neither 0 nor 1")
    tensor: NDArray[Any] = raw.view(_DTYPES[info.dtype])
    if info.dtype == _BFLOAT16:  # the upper half of a float32
        tensor = (tensor.astype(np.uint32) << 16).view(np.float32)
    return (tensor if tensor.flags.aligned else tensor.copy()).reshape(info.shape)


def _are_sizes(values: object) -> bool:
    """Return whether this is a list of whole numbers below 2**63; a bool is not a number."""
    return isinstance(values, list) and all(type(n) is int and 0 <= n < 2**63 for n in values)


def _maps_text_to_text(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, [*value.keys(), *value.values()]))


def _is_text(value: object) -> bool:
    """Return whether this is valid Unicode: JSON's escapes can give half a surrogate pair."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
