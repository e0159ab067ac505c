"""Which kind of parameter server is asked for."""

from collections.abc import Callable

from cnnlab.distributed.enduring import Enduring
from cnnlab.distributed.groups import Groups
from cnnlab.distributed.server import Server
from cnnlab.distributed.servers import Servers
from cnnlab.runtime.arguments import one_of

LOST = {
    "end": "the job ends",
    "go-on": "the others do its work; with --staleness, under mpiexec on one machine",
}


class Serving(Server):
    """What `--ranks server` makes, by its options: a `Server`, or one of those that build on it.

    Raises ValueError where options do not go together.
    """

    def __new__(
        cls,
        comm,
        staleness: int | str = 0,
        compress: str | Callable | None = None,
        servers: int | None = None,
        groups: int | None = None,
        lost: str = "end",
    ) -> Server:
        """The server or servers for these ranks."""
        one_of("lost", lost, LOST)
        asked = {"--compress": compress, "--servers": servers, "--groups": groups}
        given = [option for option, value in asked.items() if value]
        given += ["--lost go-on"] * (lost == "go-on")
        if len(given) > 1 and set(given) != {"--compress", "--lost go-on"}:
            raise ValueError(f"{given[-1]}: expected no {given[0]} with it, got both")
        if servers:
            return Servers(comm, staleness, servers)
        if groups:
            return Groups(comm, staleness, groups)
        return (Enduring if lost == "go-on" else Server)(comm, staleness, compress)
