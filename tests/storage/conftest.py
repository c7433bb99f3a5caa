"""A new run directory."""

from pathlib import Path

import pytest

from tests.storage.small_run import CONFIG, refuse_warning
from tinygrad_tf.storage.run_directory import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create(tmp_path / "runs" / "one", on_warning=refuse_warning)
    run.write_config(CONFIG)
    return run
