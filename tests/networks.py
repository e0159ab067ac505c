"""Networks of the report's form, with other sizes; and one with most kinds of layers."""

from cnnlab.network import AveragePool, Conv, Dense, MaxPool, Network, Pool, ReLU, Sigmoid


def report_network(
    channels=1, height=28, width=28, *, filters=6, kernel=5, pool=4, classes=10
) -> Network:
    layers = Conv(filters, kernel), Sigmoid(), Pool(pool), Sigmoid(), Dense(classes), Sigmoid()
    return Network(layers, (channels, height, width))


# Windows that leave rows over, fixed weights, and a layer below the first that learns.
MIXED = Network(
    (
        *(MaxPool(2), Conv(3, 2), ReLU(), AveragePool(2), Conv(5, 3), Pool(2), Sigmoid()),
        *(Dense(4), Sigmoid()),
    ),
    (2, 19, 23),
)
