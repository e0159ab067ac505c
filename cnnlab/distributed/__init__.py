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
)
