import numpy as np
import pytest

from cnnlab.ranks.virtual import World
from cnnlab.training import Method

FACTS = {"data": (np.arange(6.0), np.arange(3)), "plan": {"seed": 1}, "parameters": np.ones(4)}


@pytest.mark.parametrize(
    "name, other",
    [
        ("data", (np.arange(6.0), np.arange(3)[::-1])),
        ("data", (np.arange(6.0) + 1e-9, np.arange(3))),
        ("plan", {"seed": 2}),
        ("parameters", np.ones(4) - np.eye(4)[0] * 1e-12),
    ],
)
def test_ranks_that_disagree_say_about_what(name, other):
    def program(comm):
        Method(comm).agree(FACTS | {name: other} if comm.rank else FACTS)

    message = f"ranks: expected the same {name} on all, rank 0 has .*, rank 1 has"
    with pytest.raises(ValueError, match=message):
        World(2).run(program)
