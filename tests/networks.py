"""Networks of the report's form, with other sizes."""

from cnnlab.network import Conv, Dense, Network, Pool, Sigmoid


def report_network(
    channels=1, height=28, width=28, *, filters=6, kernel=5, pool=4, classes=10
) -> Network:
    layers = Conv(filters, kernel), Sigmoid(), Pool(pool), Sigmoid(), Dense(classes), Sigmoid()
    return Network(layers, (channels, height, width))
