"""Layers, and what models are built from: torch's names, arguments and behaviour, without autograd."""

from . import functional, init, utils
from .activation import GELU, ReLU, Sigmoid, Softmax, Tanh
from .container import ModuleDict, ModuleList, Sequential
from .dropout import Dropout
from .embedding import Embedding
from .linear import Identity, Linear
from .module import Module
from .normalization import LayerNorm
from .parameter import Parameter

__all__ = [
    "GELU",
    "Dropout",
    "Embedding",
    "Identity",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "functional",
    "init",
    "utils",
]
