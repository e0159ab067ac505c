"""A communicator of virtual ranks, with the interface of mpi4py's."""

from cnnlab.ranks.virtual.collectives import Collectives
from cnnlab.ranks.virtual.faults import site, written
from cnnlab.ranks.virtual.messages import ANY
from cnnlab.ranks.virtual.point_to_point import PointToPoint
from cnnlab.ranks.virtual.window import Window

NOT_HERE = "the virtual world does not know"


class Comm(PointToPoint, Collectives):
    """The ranks of a world, as one of them sees them; or some of them, see `Split`."""

    ANY_SOURCE = ANY_TAG = ANY

    def __init__(self, world, rank: int, members: tuple[int, ...] = (), group: object = 0):
        self.world, self.members, self.group = world, members or tuple(range(world.size)), group
        self.me = rank
        self.rank, self.size = self.members.index(rank), len(self.members)
        self._calls, self._freed = 0, None

    def Get_rank(self) -> int:
        """This rank's number."""
        return self.rank

    def Get_size(self) -> int:
        """The number of ranks."""
        return self.size

    def __getattr__(self, name):
        raise AttributeError(f"comm.{name}: {NOT_HERE} it")

    def Free(self) -> None:
        """Give a communicator of `Split` back; it is of no use from then on."""
        self._usable()
        if (self.group, self.me) not in self.world.resources:
            raise ValueError("comm: expected a communicator of Split, got that of all ranks")
        del self.world.resources[self.group, self.me]
        self._freed = site()

    def _usable(self) -> None:
        if self._freed:
            raise ValueError(
                f"comm: expected a communicator, got one freed at {written(self._freed)}"
            )

    def window(self, memory, disp_unit: int = 1) -> Window:
        """A window on an array of each rank; programs for both worlds call `mpi.Win.Create`."""
        return Window(self, memory, disp_unit)

    def compute(self, seconds: float) -> None:
        """Let this rank compute for so many virtual seconds."""
        self.world.compute(self.me, seconds)

    def clock(self) -> float:
        """The time of this rank, in virtual seconds."""
        return self.world.clock(self.me)
