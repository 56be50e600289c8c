"""TensorPlay: tensors on the host and, with tensorplay-cuda, on NVIDIA GPUs.

Importing this package imports NumPy and nothing of any device.
"""

from importlib import import_module as _import_module
from pkgutil import extend_path as _extend_path
from typing import Any as _Any

# Other distributions put their parts into this package, perhaps from another folder.
__path__ = _extend_path(__path__, __name__)

from . import _placeholder, _plugins, errors, random
from ._creation import (
    arange,
    as_tensor,
    asarray,
    empty,
    empty_like,
    from_numpy,
    full,
    full_like,
    is_tensor,
    ones,
    ones_like,
    rand,
    randn,
    tensor,
    zeros,
    zeros_like,
)
from ._device import Device
from ._device import Device as device  # noqa: N813 (torch's name)
from ._dtype import (
    DType,
    bfloat16,
    bool,
    float,
    float16,
    float32,
    half,
    int,
    int32,
    int64,
    long,
)
from ._dtype import (
    DType as dtype,  # noqa: N813
)
from ._gradient import (
    inference_mode,
    no_grad,
)
from ._host import backend as _host_backend
from ._ops.comparison import allclose, equal
from ._ops.elementwise import (
    abs,
    add,
    clamp,
    cos,
    div,
    eq,
    erf,
    exp,
    ge,
    gelu,
    gt,
    le,
    log,
    logical_and,
    logical_not,
    logical_or,
    lt,
    masked_fill,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    pow,
    reciprocal,
    relu,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sub,
    tanh,
    where,
)
from ._ops.joining import cat, dstack, hstack, stack, vstack
from ._ops.joining import cat as concat
from ._ops.joining import cat as concatenate
from ._ops.products import index_select, matmul
from ._ops.rearranging import diag, flip, fliplr, flipud, repeat_interleave, roll, rot90, tile
from ._ops.reductions import (
    all,
    amax,
    amin,
    any,
    log_softmax,
    mean,
    softmax,
    sum,
)
from ._ops.view_functions import (
    adjoint,
    as_strided,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_tensors,
    broadcast_to,
    chunk,
    diagonal,
    flatten,
    moveaxis,
    movedim,
    narrow,
    numel,
    permute,
    ravel,
    reshape,
    select,
    split,
    squeeze,
    swapaxes,
    swapdims,
    t,
    tensor_split,
    transpose,
    unbind,
    unflatten,
    unsqueeze,
)
from ._tensor import Tensor
from ._version import __version__
from .errors import AcceleratorError, OutOfMemoryError
from .random import initial_seed, manual_seed
from .serialization import load, save

__all__ = [
    "AcceleratorError",
    "DType",
    "Device",
    "OutOfMemoryError",
    "Tensor",
    "__version__",
    "abs",
    "add",
    "adjoint",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arange",
    "as_strided",
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bfloat16",
    "bool",
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "chunk",
    "clamp",
    "concat",
    "concatenate",
    "cos",
    "device",
    "diag",
    "diagonal",
    "div",
    "dstack",
    "dtype",
    "empty",
    "empty_like",
    "eq",
    "equal",
    "erf",
    "errors",
    "exp",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "from_numpy",
    "full",
    "full_like",
    "ge",
    "gelu",
    "gt",
    "half",
    "hstack",
    "index_select",
    "inference_mode",
    "initial_seed",
    "int",
    "int32",
    "int64",
    "is_tensor",
    "le",
    "load",
    "log",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "long",
    "lt",
    "manual_seed",
    "masked_fill",
    "matmul",
    "maximum",
    "mean",
    "minimum",
    "moveaxis",
    "movedim",
    "mul",
    "narrow",
    "ne",
    "neg",
    "no_grad",
    "numel",
    "ones",
    "ones_like",
    "permute",
    "pow",
    "rand",
    "randn",
    "random",
    "ravel",
    "reciprocal",
    "relu",
    "repeat_interleave",
    "reshape",
    "roll",
    "rot90",
    "rsqrt",
    "save",
    "select",
    "sigmoid",
    "sin",
    "softmax",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "tanh",
    "tensor",
    "tensor_split",
    "tile",
    "transpose",
    "unbind",
    "unflatten",
    "unsqueeze",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

_plugins.register(_host_backend)
_placeholder.fill_in(__name__)

# Parts that are imported when they are first named.
_PARTS = ("accelerator", "compiler", "cuda", "nn", "testing")


def __getattr__(name: str) -> _Any:
    if name in _PARTS:
        part = f"{__name__}.{name}"
        try:
            return _import_module(part)
        except ModuleNotFoundError as error:
            if error.name != part:
                raise
            missing = f"tensorplay-{name}"
            # AttributeError, so that hasattr answers.
            raise AttributeError(f"{part}: {missing} is not installed: pip install {missing}") from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
