"""Layers as functions: torch's names, arguments and meaning."""

from .._ops.activation import gelu, softplus
from .._ops.padding import pad
from ._functional.activation import (
    celu,
    elu,
    glu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
)
from ._functional.adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_max_pool1d, adaptive_max_pool2d
from ._functional.attention import scaled_dot_product_attention
from ._functional.convolution import conv1d, conv2d
from ._functional.distance import cosine_similarity, normalize
from ._functional.dropout import dropout, dropout2d
from ._functional.embedding import embedding, one_hot
from ._functional.linear import bilinear, linear, linear_gelu
from ._functional.loss import cross_entropy, l1_loss, mse_loss, nll_loss
from ._functional.normalization import batch_norm, group_norm, layer_norm, rms_norm
from ._functional.pooling import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from ._functional.resizing import interpolate

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "celu",
    "conv1d",
    "conv2d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout2d",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "linear_gelu",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "tanh",
]
