"""Which kind of server is made of the options, and which of these exclude each other."""

import pytest

from cnnlab.distributed.groups import Groups
from cnnlab.distributed.server import Server
from cnnlab.distributed.servers import Servers
from cnnlab.distributed.serving import Serving
from cnnlab.ranks.virtual import World


@pytest.mark.parametrize(
    "options, kind", [({}, Server), ({"servers": 2}, Servers), ({"groups": 2}, Groups)]
)
def test_options_choose_the_kind(options, kind):
    made = World(5).run(lambda comm: Serving(comm, 3, **options))[0]
    assert type(made) is kind and made.staleness == 3


@pytest.mark.parametrize(
    "options, text",
    [
        ({"servers": 2, "groups": 2}, "--groups: expected no --servers with it, got both"),
        ({"servers": 2, "compress": "int8"}, "--servers: expected no --compress with it, got"),
        ({"groups": 2, "lost": "go-on"}, "--lost go-on: expected no --groups with it, got both"),
        ({"lost": "never"}, "lost: expected one of end, go-on, got 'never'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        Serving(None, 1, **options)
