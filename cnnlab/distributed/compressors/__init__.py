"""What ranks send instead of a gradient. COMPRESSORS is the only list of it."""

import functools
from collections.abc import Callable

from cnnlab.runtime import arguments, files
from cnnlab.runtime.arguments import Entry, listed

ROOM = "cnnlab.distributed.compressors"
COMPRESSORS = listed(
    Entry("none", "every number whole, in 32 bits", f"{ROOM}.base:Compressor"),
    Entry("fp16", "every number in 16 bits", f"{ROOM}.base:Halves"),
    Entry("int8", "the nearest level of a bucket's scale, in 8 bits", f"{ROOM}.bits:Nearest"),
    Entry("qsgd", "a level of a bucket's scale, by chance; qsgd4: in 4 bits", f"{ROOM}.bits:Qsgd"),
    Entry("terngrad", "minus, zero or plus the scale, by chance", f"{ROOM}.bits:TernGrad"),
    Entry("topk", "the largest numbers, as topk:0.01; the rest later", f"{ROOM}.topk:TopK"),
    Entry("streams", "as topk of all, its sum exact, in streams", f"{ROOM}.topk:Streams"),
    Entry(
        "dgc",
        "streams that keep their momentum; dgc:0.01,50 warms up the density",
        f"{ROOM}.topk:DeepGradientCompression",
    ),
    Entry("topq", "the largest of every 512, in 4 bits, as topq:16", f"{ROOM}.topk:TopLevels"),
    Entry("one_bit", "signs; what is lost is added to the next", f"{ROOM}.bits:OneBit"),
)


def compressor(text: str) -> Callable:
    """A function of (n, seed) that makes a compressor, from a text such as "qsgd4" or "topk:0.01".

    Raises ValueError for an unknown name, or an argument that it does not take.
    """
    name, _, argument = text.partition(":")
    if name not in COMPRESSORS and not argument:
        name = text.rstrip("0123456789")
        argument = text.removeprefix(name)
    kind = arguments.find("compress", name if name in COMPRESSORS else text, COMPRESSORS)
    files.keep_compiled()
    if not argument:
        return kind
    made = functools.partial(kind, argument=argument)
    made(1)  # an impossible argument is told now
    return made
