"""Products with weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _dispatch
from ..._operands._spec import device_of, floating
from ..._ops.activation import gelu_op
from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from ..._tensor import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor
        Shape (..., in_features).
    weight : Tensor
        Shape (out_features, in_features).
    bias : Tensor, optional
        Shape (out_features,).

    Returns
    -------
    Tensor
        Shape (..., out_features).
    """
    return _dispatch.common("linear", input, weight, optional=(bias,)).linear(input, weight, bias)


def linear_gelu(input: Tensor, weight: Tensor, bias: Tensor | None = None, approximate: str = "none") -> Tensor:
    """``gelu(linear(input, weight, bias), approximate)``, of one floating dtype.

    With ``"tanh"`` both are one kernel where cuBLASLt serves (not for float64): the result is then rounded once
    where two operations round twice, so that half types may differ in the last digit.

    Parameters
    ----------
    input : Tensor
        Shape (..., in_features).
    weight : Tensor
        Shape (out_features, in_features).
    bias : Tensor, optional
        Shape (out_features,).
    approximate : str
        ``"none"`` or ``"tanh"``, as for `gelu`.

    Returns
    -------
    Tensor
        Shape (..., out_features).
    """
    backend = _dispatch.common("linear_gelu", input, weight, optional=(bias,))
    return backend.linear_gelu(gelu_op("linear_gelu", approximate), input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for each k, plus ``bias[k]``.

    Parameters
    ----------
    input1, input2 : Tensor
        Shapes (..., in1_features) and (..., in2_features), equal but for the last size.
    weight : Tensor
        Shape (out_features, in1_features, in2_features).
    bias : Tensor, optional
        Shape (out_features,).

    Returns
    -------
    Tensor
        Shape (..., out_features).
    """
    _dispatch.common("bilinear", input1, input2, weight, optional=(bias,))
    device_of("bilinear", input1, input2, weight, bias)
    floating("bilinear", input1, input2, weight, bias)
    lead = input1.shape[:-1]
    if not input1.ndim or lead != input2.shape[:-1] or weight.shape[1:] != input1.shape[-1:] + input2.shape[-1:]:
        raise InvalidArgumentError(
            f"bilinear: got shapes {input1.shape} and {input2.shape} and a weight of shape {weight.shape}, "
            "expected (..., n), (..., m) and (out_features, n, m)"
        )
    count, first, second = weight.shape
    halfway = input1.reshape(*lead, 1, first) @ weight.permute(1, 0, 2).reshape(first, count * second)
    result = (halfway.reshape(*lead, count, second) @ input2.unsqueeze(-1)).squeeze(-1)
    return result if bias is None else result + bias
