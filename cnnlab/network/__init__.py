"""The network as data: its layers, and the parameters that they ask for."""

from cnnlab.network.layers import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Dense,
    Layer,
    MaxPool,
    Pad,
    Pool,
    ReLU,
    Shape,
    Sigmoid,
)
from cnnlab.network.network import (
    EIGHT,
    INCEPTION,
    LENET5,
    NETWORKS,
    REPORT,
    REPORT_FORM,
    RESIDUAL,
    Network,
    Parameters,
    Place,
    report_network,
)

__all__ = [
    "EIGHT", "INCEPTION", "LENET5", "NETWORKS", "REPORT", "REPORT_FORM", "RESIDUAL", "Add",
    "AveragePool", "Concat", "Conv", "Dense", "Layer", "MaxPool", "Network", "Pad", "Parameters",
    "Place", "Pool", "ReLU", "Shape", "Sigmoid", "report_network",
]  # fmt: skip
