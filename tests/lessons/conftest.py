from tests.plots.conftest import closed  # noqa: F401
