"""TensorPlay: tensors on the host and, with tensorplay-cuda, on NVIDIA GPUs.

Importing this package imports NumPy and nothing of any device.
"""

from importlib import import_module as _import_module
from math import e, inf, nan, pi
from pkgutil import extend_path as _extend_path
from typing import Any as _Any

# Other distributions put their parts into this package, perhaps from another folder.
__path__ = _extend_path(__path__, __name__)

from . import _functions, _placeholder, _plugins, _wheels, errors, random
from ._creation import (
    arange,
    empty,
    empty_like,
    empty_strided,
    eye,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._data import as_tensor, asarray, from_numpy, is_tensor, tensor
from ._defaults import (
    get_default_dtype,
    get_float32_matmul_precision,
    set_default_dtype,
    set_float32_matmul_precision,
)
from ._device import Device
from ._device import Device as device  # noqa: N813 (torch's name)
from ._dlpack import from_dlpack
from ._dtype import (
    DType,
    bfloat16,
    bool,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    float,
    float16,
    float32,
    float64,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    short,
    uint8,
)
from ._dtype import (
    DType as dtype,  # noqa: N813
)
from ._functions import *  # noqa: F403 (all of them)
from ._gradient import (
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from ._host.backend import backend as _host_backend
from ._limits import finfo, iinfo
from ._ops.activation import gelu, silu, softplus
from ._ops.choice import where
from ._ops.comparison import allclose, equal, isclose
from ._ops.contraction import tensordot
from ._ops.einsum import einsum
from ._ops.grids import meshgrid, tril, tril_indices, triu, triu_indices
from ._ops.joining import cat, dstack, hstack, stack, vstack
from ._ops.joining import cat as concat
from ._ops.joining import cat as concatenate
from ._ops.parts import imag, real, view_as_complex, view_as_real
from ._ops.promotion import can_cast, is_complex, is_floating_point, is_signed, promote_types, result_type
from ._ops.rearranging import diag, flip, fliplr, flipud, repeat_interleave, roll, rot90, tile
from ._ops.sampling import (
    bernoulli,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from ._ops.statistics import std_mean, var_mean
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
from ._pinned import pin_memory
from ._print import set_printoptions
from ._tensor import Tensor
from ._version import __version__
from .compiler import compile
from .errors import AcceleratorError, OutOfMemoryError
from .random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .serialization import load, save

__all__ = [
    "AcceleratorError",
    "DType",
    "Device",
    "OutOfMemoryError",
    "Tensor",
    "__version__",
    "adjoint",
    "allclose",
    "arange",
    "as_strided",
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bernoulli",
    "bfloat16",
    "bool",
    "broadcast_tensors",
    "broadcast_to",
    "can_cast",
    "cat",
    "cdouble",
    "cfloat",
    "chunk",
    "compile",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "device",
    "diag",
    "diagonal",
    "double",
    "dstack",
    "dtype",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "empty_strided",
    "equal",
    "errors",
    "eye",
    "finfo",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "gelu",
    "get_default_dtype",
    "get_float32_matmul_precision",
    "get_rng_state",
    "half",
    "hstack",
    "iinfo",
    "imag",
    "inf",
    "inference_mode",
    "initial_seed",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_signed",
    "is_tensor",
    "isclose",
    "linspace",
    "load",
    "logspace",
    "long",
    "manual_seed",
    "meshgrid",
    "moveaxis",
    "movedim",
    "multinomial",
    "nan",
    "narrow",
    "no_grad",
    "normal",
    "numel",
    "ones",
    "ones_like",
    "permute",
    "pi",
    "pin_memory",
    "promote_types",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random",
    "randperm",
    "ravel",
    "real",
    "repeat_interleave",
    "reshape",
    "result_type",
    "roll",
    "rot90",
    "save",
    "seed",
    "select",
    "set_default_dtype",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_printoptions",
    "set_rng_state",
    "short",
    "silu",
    "softplus",
    "split",
    "squeeze",
    "stack",
    "std_mean",
    "swapaxes",
    "swapdims",
    "t",
    "tensor",
    "tensor_split",
    "tensordot",
    "tile",
    "transpose",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "uint8",
    "unbind",
    "unflatten",
    "unsqueeze",
    "var_mean",
    "view_as_complex",
    "view_as_real",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
__all__ += [name for name in vars(_functions) if not name.startswith("_")]

_plugins.register(_host_backend)
_placeholder.fill_in(__name__)

# Parts that are imported when they are first named.
_PARTS = ("accelerator", "cuda", "nn", "testing")


def __getattr__(name: str) -> _Any:
    if name in _PARTS:
        part = f"{__name__}.{name}"
        try:
            return _import_module(part)
        except ModuleNotFoundError as error:
            if error.name != part:
                raise
            # AttributeError, so that hasattr answers.
            raise AttributeError(f"{part}: {_wheels.not_installed(f'tensorplay-{name}')}") from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
