"""Ways for ranks to train together. METHODS is the only list of them."""

from cnnlab.runtime.arguments import Entry, listed

METHODS = listed(
    Entry("alone", "every batch whole, in one process", "cnnlab.training.method:Method"),
    Entry(
        "data", "each rank a share of every batch", "cnnlab.distributed.data_parallel:DataParallel"
    ),
    Entry(
        "layers",
        "each rank a share of every layer",
        "cnnlab.distributed.data_parallel:LayerParallel",
    ),
    Entry(
        "model",
        "each rank holds a share of every layer",
        "cnnlab.distributed.model:ModelParallel",
    ),
    Entry("pipeline", "each rank some of the layers", "cnnlab.distributed.pipeline:Pipeline"),
    Entry(
        "hybrid",
        "a grid of ranks: data, pipeline and model",
        "cnnlab.distributed.pipeline:Hybrid",
    ),
    Entry(
        "sharded",
        "as data, nothing held twice",
        "cnnlab.distributed.sharded:Sharded",
    ),
    Entry(
        "local",
        "each rank steps on its own; now and then the average of all",
        "cnnlab.distributed.averaging:Local",
    ),
    Entry(
        "elastic",
        "each rank its own model, on a spring to a centre",
        "cnnlab.distributed.averaging:Elastic",
    ),
    Entry(
        "gossip",
        "each rank its own model, averaged with its neighbours'",
        "cnnlab.distributed.averaging:Gossip",
    ),
    Entry(
        "server",
        "rank 0 keeps the parameters, the others send it gradients",
        "cnnlab.distributed.server:Server",
    ),
)
