"""The network as data: its layers, and the parameters that they ask for."""

from cnnlab.network.layers import (
    AveragePool,
    Conv,
    Dense,
    Layer,
    MaxPool,
    Pool,
    ReLU,
    Shape,
    Sigmoid,
)
from cnnlab.network.network import (
    EIGHT,
    LENET5,
    NETWORKS,
    REPORT,
    REPORT_FORM,
    Network,
    Parameters,
    Place,
    report_network,
)

__all__ = [
    "EIGHT", "LENET5", "NETWORKS", "REPORT", "REPORT_FORM", "AveragePool", "Conv", "Dense", "Layer",
    "MaxPool", "Network", "Parameters", "Place", "Pool", "ReLU", "Shape", "Sigmoid",
    "report_network",
]  # fmt: skip
