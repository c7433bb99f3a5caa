"""Files on disk: safetensors, strict JSON, atomic writing, and a lock against two writers."""

from tinygrad_tf.storage.atomic import reading, write_atomically, writing
from tinygrad_tf.storage.lock import RunLock
from tinygrad_tf.storage.safetensors import (
    Header,
    TensorInfo,
    load_safetensors,
    read_header,
    save_safetensors,
)
from tinygrad_tf.storage.strict_json import read_json, write_json

__all__ = [
    "Header",
    "RunLock",
    "TensorInfo",
    "load_safetensors",
    "read_header",
    "read_json",
    "reading",
    "save_safetensors",
    "write_atomically",
    "write_json",
    "writing",
]
