"""Messages that have not met yet: which send belongs to which receive."""

from cnnlab.ranks.virtual.messages import ANY, Request


class Mail:
    """Sends and receives that have not met yet, in the order in which they were posted.

    Messages of one rank to another do not overtake each other, and a message goes to the receive
    that was posted first. A receive from any source is undecided until it is known which message
    arrives first, and so is each receive after it that competes with it.
    """

    def __init__(self):
        self.sends: dict[int, list[Request]] = {}  # by receiver
        self.receives: dict[int, list[Request]] = {}

    def post_send(self, send: Request) -> Request | None:
        """The receive that waits for this send; else it is kept until one comes."""
        receive = self.first(send)
        if receive and not receive.any_source:
            self.receives[send.peer].remove(receive)
            return receive
        self.sends.setdefault(send.peer, []).append(send)
        return None

    def post_receive(self, receive: Request) -> Request | None:
        """The send that is there for this receive; else it is kept until one comes."""
        if not receive.any_source:
            for send in self.sends.get(receive.rank, ()):
                if fits(send, receive):
                    if self.first(send):
                        break
                    self.sends[receive.rank].remove(send)
                    return send
        self.receives.setdefault(receive.rank, []).append(receive)
        return None

    def first(self, send: Request) -> Request | None:
        """The receive that a send would go to."""
        for receive in self.receives.get(send.peer, ()):
            if fits(send, receive):
                return receive
        return None

    def undecided(self, rank: int) -> list[tuple[float, Request, Request]]:
        """When they arrive, and which: for each source, its next message and the receive for it.

        Only those are undecided whose receive was posted already; all others have met.
        """
        if not self.receives.get(rank) or not self.sends.get(rank):
            return []
        heads: dict[int, tuple[float, Request, Request]] = {}
        for send in self.sends[rank]:
            if send.rank not in heads and (receive := self.first(send)):
                heads[send.rank] = send.here, send, receive
        return list(heads.values())

    def pair(self, send: Request, receive: Request) -> None:
        """They have met."""
        self.sends[receive.rank].remove(send)
        self.receives[receive.rank].remove(receive)

    def there(self, probe: Request) -> list[tuple[float, Request, Request]]:
        """When they arrive, and which: the messages that a probe would find, one of each source."""
        heads: dict[int, tuple[float, Request, Request]] = {}
        for send in self.sends.get(probe.rank, ()):
            if send.rank not in heads and fits(send, probe):
                heads[send.rank] = send.here, send, probe
        return list(heads.values())

    def left(self) -> list[Request]:
        """Messages that nobody has received."""
        return [send for sends in self.sends.values() for send in sends]


def fits(send: Request, receive: Request) -> bool:
    """Whether a receive takes a send, by communicator, source and tag."""
    return (
        send.group == receive.group
        and receive.peer in (ANY, send.rank)
        and receive.tag in (ANY, send.tag)
    )
