"""Ways for ranks to train together. METHODS is the only list of them."""

from cnnlab.runtime.registry import Entry, listed

METHODS = listed(
    Entry("alone", "every batch whole, in one process", "cnnlab.training.method:Method"),
    Entry(
        "data", "each rank a share of every batch", "cnnlab.distributed.data_parallel:DataParallel"
    ),
    Entry(
        "layers",
        "each rank a share of every layer",
        "cnnlab.distributed.layer_parallel:LayerParallel",
    ),
    Entry(
        "model",
        "each rank holds a share of every layer",
        "cnnlab.distributed.model_parallel:ModelParallel",
    ),
    Entry("pipeline", "each rank some of the layers", "cnnlab.distributed.pipeline:Pipeline"),
    Entry(
        "hybrid",
        "a grid of ranks: data, pipeline and model",
        "cnnlab.distributed.hybrid:Hybrid",
    ),
    Entry(
        "sharded",
        "as data, nothing held twice",
        "cnnlab.distributed.sharded:Sharded",
    ),
    Entry(
        "local",
        "each rank steps on its own; now and then the average of all",
        "cnnlab.distributed.local:Local",
    ),
    Entry(
        "elastic",
        "each rank its own model, on a spring to a centre",
        "cnnlab.distributed.elastic:Elastic",
    ),
    Entry(
        "gossip",
        "each rank its own model, averaged with its neighbours'",
        "cnnlab.distributed.gossip:Gossip",
    ),
    Entry(
        "server",
        "rank 0 keeps the parameters, the others send it gradients",
        "cnnlab.distributed.serving:Serving",
    ),
)
