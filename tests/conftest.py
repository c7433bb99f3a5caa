"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
