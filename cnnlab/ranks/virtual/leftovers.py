"""What a run leaves at its end, and should not."""

from cnnlab.ranks.virtual.faults import Fault, written


def found(world) -> list[Fault]:
    """Collectives that not all have called, messages not received, requests not waited for."""
    faults = [call.fault() for call in world.calls.values()]
    for send in world.mail.left():
        if send.group not in world.calls:
            text = f"a message to rank {send.peer} with tag {send.tag} that is never received"
            faults.append(send.blame("call matching", text))
    for request in (request for requests in world.open for request in requests):
        text = f"a {request.kind} that is never waited for"
        faults.append(request.blame("request lifecycle", text))
    return faults


def leaks(world) -> list[Fault]:
    """Communicators and windows that are never freed."""
    left = sorted(world.resources.values(), key=lambda resource: resource[1])
    return [
        Fault("resource leak", rank, written(where), f"{what} is never freed")
        for what, rank, where in left
    ]
