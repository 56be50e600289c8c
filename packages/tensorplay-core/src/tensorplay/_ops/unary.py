"""Elementwise functions of one tensor.

Those that give fractions compute bool and integers in the default dtype.
"""

from __future__ import annotations

from .._handle import Handle
from . import choice, composed
from .families import in_place, unary


class Unary(Handle):
    """The methods. Functions of the same names are made of them: `tensorplay._functions`."""

    __slots__ = ()

    neg, neg_ = unary("neg", "-input; bool is refused.")
    negative, negative_ = neg, neg_
    abs, abs_ = unary("abs", "Absolute value; of complex numbers the real magnitude.")
    absolute, absolute_ = abs, abs_
    sign, sign_ = unary("sign", "1, 0 or -1 by the sign of the element; 0 for nan.")
    conj = composed.conj
    conj_physical, conj_physical_ = unary("conj", "The complex conjugate, as a copy.")
    reciprocal, reciprocal_ = unary("reciprocal", "1 / input.")
    square, square_ = composed.square, in_place(composed.square)
    sqrt, sqrt_ = unary("sqrt", "Square root; nan for negative elements.")
    rsqrt, rsqrt_ = unary("rsqrt", "1 / sqrt(input).")

    exp, exp_ = unary("exp", "e to the power of each element.")
    exp2, exp2_ = unary("exp2", "2 to the power of each element.")
    expm1, expm1_ = unary("expm1", "exp(input) - 1, exact for small elements.")
    log, log_ = unary("log", "Natural logarithm.")
    log2, log2_ = unary("log2", "Logarithm to the base 2.")
    log10, log10_ = unary("log10", "Logarithm to the base 10.")
    log1p, log1p_ = unary("log1p", "log(1 + input), exact for small elements.")

    sin, sin_ = unary("sin", "Sine of radians.")
    cos, cos_ = unary("cos", "Cosine of radians.")
    tan, tan_ = unary("tan", "Tangent of radians.")
    asin, asin_ = unary("asin", "Inverse sine, in radians.")
    arcsin, arcsin_ = asin, asin_
    acos, acos_ = unary("acos", "Inverse cosine, in radians.")
    arccos, arccos_ = acos, acos_
    atan, atan_ = unary("atan", "Inverse tangent, in radians.")
    arctan, arctan_ = atan, atan_
    sinh, sinh_ = unary("sinh", "Hyperbolic sine.")
    cosh, cosh_ = unary("cosh", "Hyperbolic cosine.")
    tanh, tanh_ = unary("tanh", "Hyperbolic tangent.")
    asinh, asinh_ = unary("asinh", "Inverse hyperbolic sine.")
    arcsinh, arcsinh_ = asinh, asinh_
    acosh, acosh_ = unary("acosh", "Inverse hyperbolic cosine.")
    arccosh, arccosh_ = acosh, acosh_
    atanh, atanh_ = unary("atanh", "Inverse hyperbolic tangent.")
    arctanh, arctanh_ = atanh, atanh_

    erf, erf_ = unary("erf", "Error function.")
    erfc, erfc_ = unary("erfc", "1 - erf(input), exact for large elements.")
    logit, logit_ = composed.logit, in_place(composed.logit)
    sigmoid, sigmoid_ = unary("sigmoid", "1 / (1 + exp(-input)).")
    relu, relu_ = unary("relu", "The larger of 0 and the element; nan stays nan, bool is refused.")

    floor, floor_ = unary("floor", "The largest whole number that is not above the element.")
    ceil, ceil_ = unary("ceil", "The smallest whole number that is not below the element.")
    trunc, trunc_ = unary("trunc", "The element without its fraction.")
    fix, fix_ = trunc, trunc_
    frac, frac_ = unary("frac", "The fraction, with the element's sign; floating dtypes.")
    round, round_ = composed.round, in_place(composed.round)

    nan_to_num, nan_to_num_ = choice.nan_to_num, in_place(choice.nan_to_num)
    isnan = unary("isnan", "Whether the element is nan; bool.")[0]
    isinf = unary("isinf", "Whether the element is infinite; bool.")[0]
    isfinite = unary("isfinite", "Whether the element is neither infinite nor nan; bool.")[0]
    signbit = unary("signbit", "Whether the element has a minus sign, as -0 has; bool.")[0]
    logical_not, logical_not_ = unary("logical_not", "Whether the element is 0; bool.")
    bitwise_not, bitwise_not_ = unary("bitwise_not", "Each bit the other way; of bools: not.")

    positive = composed.positive
