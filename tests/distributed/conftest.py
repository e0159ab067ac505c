from tests.ranks.conftest import no_memory_left

__all__ = ["no_memory_left"]
