"""Elementwise nonlinearities."""

from __future__ import annotations

from .._tensor import Tensor
from . import functional
from .module import Module


class _InPlace(Module):
    """A nonlinearity that may write its result into its input; `_shown` are the arguments that `repr` always shows."""

    _shown: tuple[str, ...] = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)}" for name in self._shown]
        return ", ".join([*shown, "inplace=True"] if self.inplace else shown)


class ReLU(_InPlace):
    """``max(x, 0)``.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.relu(input, self.inplace)


class ReLU6(_InPlace):
    """The nearest number from 0 to 6.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.relu6(input, self.inplace)


class LeakyReLU(_InPlace):
    """``x`` above 0, else ``x * negative_slope``.

    Parameters
    ----------
    negative_slope : float
        The factor.
    inplace : bool
        Whether the result is written into the input.
    """

    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_InPlace):
    """``x`` above 0, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float
        The factor.
    inplace : bool
        Whether the result is written into the input.
    """

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.elu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """`ELU` with the factors that keep mean 0 and variance 1.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.selu(input, self.inplace)


class CELU(_InPlace):
    """``x`` above 0, else ``alpha * (exp(x / alpha) - 1)``.

    Parameters
    ----------
    alpha : float
        The factor, not 0.
    inplace : bool
        Whether the result is written into the input.
    """

    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """``x Φ(x)`` with the normal distribution Φ.

    Parameters
    ----------
    approximate : str
        ``"none"``: exact; ``"tanh"``: torch's approximation by tanh.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace):
    """``x * sigmoid(x)``.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.silu(input, self.inplace)


class Mish(_InPlace):
    """``x * tanh(softplus(x))``.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.mish(input, self.inplace)


class Hardswish(_InPlace):
    """``x * relu6(x + 3) / 6``.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.hardswish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """``relu6(x + 3) / 6``.

    Parameters
    ----------
    inplace : bool
        Whether the result is written into the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.hardsigmoid(input, self.inplace)


class Hardtanh(_InPlace):
    """The nearest number from `min_val` to `max_val`.

    Parameters
    ----------
    min_val, max_val : float
        The limits.
    inplace : bool
        Whether the result is written into the input.
    """

    _shown = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``.

    Parameters
    ----------
    beta : float
        The steepness.
    threshold : float
        Where ``beta * x`` is above it, the result is ``x``.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.softsign(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.sigmoid(input)


class LogSigmoid(Module):
    """``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return functional.logsigmoid(input)


class GLU(Module):
    """The first half of a dimension times the sigmoid of the second half.

    Parameters
    ----------
    dim : int
        The dimension.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Any shape to that shape with half the size in `dim`."""
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
