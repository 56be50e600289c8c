"""Elementwise functions of two operands and more, of which some may be numbers.

The operands broadcast, and their dtypes are promoted: Python numbers are weaker than tensors without dimensions, and
those weaker than other tensors.
"""

from __future__ import annotations

from .._handle import Handle
from . import arithmetic, choice, composed
from .families import binary, in_place


class Binary(Handle):
    """The methods. Functions of the same names are made of them: `tensorplay._functions`."""

    __slots__ = ()

    add, add_ = arithmetic.add, arithmetic.add_
    sub, sub_ = arithmetic.sub, arithmetic.sub_
    subtract, subtract_ = sub, sub_
    mul, mul_ = binary("mul", "input * other; of bools: and.")
    multiply, multiply_ = mul, mul_
    div, div_ = arithmetic.div, arithmetic.div_
    divide, divide_ = div, div_
    true_divide, true_divide_ = div, div_
    floor_divide, floor_divide_ = binary("floor_divide", "input / other, rounded downwards; 0 for integers / 0.")
    remainder, remainder_ = binary("remainder", "What `floor_divide` leaves, of the sign of other; 0 for integers / 0.")
    fmod, fmod_ = binary("fmod", "What a division that rounds towards 0 leaves; 0 for integers % 0.")
    pow, pow_ = arithmetic.pow, arithmetic.pow_
    float_power, float_power_ = arithmetic.float_power, in_place(arithmetic.float_power)
    atan2, atan2_ = binary("atan2", "The angle of the point (other, input), in radians.")
    arctan2, arctan2_ = atan2, atan2_
    hypot, hypot_ = binary("hypot", "sqrt(input^2 + other^2).")
    copysign, copysign_ = binary("copysign", "The magnitude of input with the sign of other.")

    maximum = binary("maximum", "The larger of both; nan where either is nan.")[0]
    minimum = binary("minimum", "The smaller of both; nan where either is nan.")[0]
    fmax = binary("fmax", "The larger of both; of a number and nan the number.")[0]
    fmin = binary("fmin", "The smaller of both; of a number and nan the number.")[0]

    lerp, lerp_ = composed.lerp, in_place(composed.lerp)
    addcmul, addcmul_ = composed.addcmul, in_place(composed.addcmul)
    addcdiv, addcdiv_ = composed.addcdiv, in_place(composed.addcdiv)
    clamp, clamp_ = choice.clamp, in_place(choice.clamp)
    clip, clip_ = clamp, clamp_
    clamp_min, clamp_min_ = choice.clamp_min, in_place(choice.clamp_min)
    clamp_max, clamp_max_ = choice.clamp_max, in_place(choice.clamp_max)
    masked_fill, masked_fill_ = choice.masked_fill, in_place(choice.masked_fill)

    eq, eq_ = binary("eq", "input == other; bool.")
    ne, ne_ = binary("ne", "input != other; bool.")
    not_equal, not_equal_ = ne, ne_
    lt, lt_ = binary("lt", "input < other; bool.")
    less, less_ = lt, lt_
    le, le_ = binary("le", "input <= other; bool.")
    less_equal, less_equal_ = le, le_
    gt, gt_ = binary("gt", "input > other; bool.")
    greater, greater_ = gt, gt_
    ge, ge_ = binary("ge", "input >= other; bool.")
    greater_equal, greater_equal_ = ge, ge_

    logical_and, logical_and_ = binary("logical_and", "Whether both are not 0; bool.")
    logical_or, logical_or_ = binary("logical_or", "Whether one of them is not 0; bool.")
    logical_xor, logical_xor_ = binary("logical_xor", "Whether just one of them is not 0; bool.")
    bitwise_and, bitwise_and_ = binary("bitwise_and", "The bits that both have; bool and integers.")
    bitwise_or, bitwise_or_ = binary("bitwise_or", "The bits that one of them has; bool and integers.")
    bitwise_xor, bitwise_xor_ = binary("bitwise_xor", "The bits that just one of them has; bool and integers.")
    bitwise_left_shift, bitwise_left_shift_ = binary("bitwise_left_shift", "input * 2^other, cut to the dtype's bits.")
    bitwise_right_shift, bitwise_right_shift_ = binary("bitwise_right_shift", "input / 2^other, rounded downwards.")
