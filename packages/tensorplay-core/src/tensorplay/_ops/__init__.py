"""Operations as functions of tensors, by family.

Most of them are methods of `Tensor` too: the same function objects, so that each has one signature and
one docstring.
"""
