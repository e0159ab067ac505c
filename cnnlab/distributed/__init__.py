"""Ways for ranks to train together. METHODS is the only list of them."""

from cnnlab.runtime.arguments import Entry, listed

ROOM = "cnnlab.distributed"
CUT, MEAN = f"{ROOM}.pipeline", f"{ROOM}.averaging"
METHODS = listed(
    Entry("alone", "every batch whole, in one process", "cnnlab.training.method:Method"),
    Entry("data", "each rank a share of every batch", f"{ROOM}.data_parallel:DataParallel"),
    Entry("layers", "each rank a share of every layer", f"{ROOM}.data_parallel:LayerParallel"),
    Entry("model", "each rank holds a share of every layer", f"{CUT}:ModelParallel"),
    Entry("pipeline", "each rank some of the layers", f"{CUT}:Pipeline"),
    Entry("hybrid", "a grid of ranks: data, pipeline and model", f"{CUT}:Hybrid"),
    Entry("sharded", "as data, nothing held twice", f"{ROOM}.sharded:Sharded"),
    Entry("local", "each rank steps on its own; now and then the average of all", f"{MEAN}:Local"),
    Entry("elastic", "each rank its own model, on a spring to a centre", f"{MEAN}:Elastic"),
    Entry("gossip", "each rank its own model, averaged with its neighbours'", f"{MEAN}:Gossip"),
    Entry(
        "server",
        "rank 0 keeps the parameters, the others send it gradients",
        f"{ROOM}.server:Server",
    ),
)
