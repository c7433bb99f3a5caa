"""What all tests share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tinygrad_tf.storage.run_directory import RunDirectory

# Shared machines are slow at times: a deadline would fail tests that are right.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The directory of real corpora beside the project; the test skips where it is absent."""
    directory = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not directory.is_dir():
        pytest.skip("the real corpora are not here")
    return directory


@pytest.fixture
def outcome() -> Callable[[Path], tuple[Any, ...]]:
    """All that must be equal of two runs that did the same: weights, optimizer, losses."""

    def read(run: Path) -> tuple[Any, ...]:
        bytes_of = [(run / f"{name}.safetensors").read_bytes() for name in ("model", "optimizer")]
        told = [
            {n: v for n, v in record.items() if n not in ("elapsed", "tokens_per_second")}
            for record in RunDirectory(run).read_metrics()
            if record["event"] in ("step", "eval")
        ]
        return (*bytes_of, json.dumps(told, indent=1))

    return read
