"""What an operation takes: one function for each method of `tensorplay._backend.Backend`.

Each has the method's arguments, raises the exception for what cannot be done, and otherwise returns
what the result is. Only descriptions are read (shape, strides, dtype, device), so tensors of every
backend serve. The host backend calls these functions first; a native backend calls one only after its
own check has refused, to word the refusal.
"""

from ._creation import arange, copy_, copy_from_host_, empty, fill_, from_host, full, to
from ._elementwise import binary, unary, where
from ._indexing import gather, index, index_put_, scatter_
from ._products import addmm, linear, linear_gelu, matmul
from ._random import normal_, random_bits_, uniform_
from ._reductions import arg_reduce, argsort, layer_norm, reduce, scan, softmax
from ._rows import embedding, index_select
from ._spec import Spec, check_device, device_of, into, scalar_dtype
from ._views import (
    as_strided,
    contiguous,
    expand,
    flip,
    permute,
    reshape,
    select,
    slice,
    squeeze,
    transpose,
    unsqueeze,
    view,
    view_dtype,
)

__all__ = [
    "Spec",
    "addmm",
    "arange",
    "arg_reduce",
    "argsort",
    "as_strided",
    "binary",
    "check_device",
    "contiguous",
    "copy_",
    "copy_from_host_",
    "device_of",
    "embedding",
    "empty",
    "expand",
    "fill_",
    "flip",
    "from_host",
    "full",
    "gather",
    "index",
    "index_put_",
    "index_select",
    "into",
    "layer_norm",
    "linear",
    "linear_gelu",
    "matmul",
    "normal_",
    "permute",
    "random_bits_",
    "reduce",
    "reshape",
    "scalar_dtype",
    "scan",
    "scatter_",
    "select",
    "slice",
    "softmax",
    "squeeze",
    "to",
    "transpose",
    "unary",
    "uniform_",
    "unsqueeze",
    "view",
    "view_dtype",
    "where",
]
