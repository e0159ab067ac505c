"""cnnlab: one small convolutional neural network, parallelized in every way there is."""

__version__ = "0.1.0"
