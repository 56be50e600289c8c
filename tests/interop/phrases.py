"""What random programs are made of: expressions with gaps.

An expression is Python in which `lib` is torch or tensorplay. A gap `{name}` is filled by the method of that name of
`filling.Filler`.
"""

from __future__ import annotations

UNARY = [
    "neg", "abs", "sign", "sqrt", "rsqrt", "square", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid",
    "logit", "relu", "floor", "ceil", "round", "trunc", "frac", "reciprocal", "isnan", "isinf", "isfinite",
    "logical_not", "bitwise_not", "signbit",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "atan2", "hypot", "copysign", "maximum",
    "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="]
REDUCE = [
    "sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "any", "all", "var", "std", "logsumexp", "count_nonzero",
]  # fmt: skip
# Without an out= in torch, or with a mask that leaves nothing to write.
NOT_INTO_OUT = {"isnan", "isinf", "isfinite", "relu", "logit"}
NOT_IN_PLACE = {"isnan", "isinf", "isfinite", "signbit", "maximum", "minimum", "fmax", "fmin"}

#: By what is responsible: the owner of a disagreement.
PHRASES: dict[str, list[str]] = {
    "elementwise": [
        *(f"lib.{op}({{x}})" for op in UNARY),
        *(f"{{x}}.{op}()" for op in UNARY),
        *(f"{{x}}.{op}_()" for op in UNARY if op not in NOT_IN_PLACE),
        *(f"lib.{op}({{x}}, out={{out}})" for op in UNARY if op not in NOT_INTO_OUT),
        "lib.nn.functional.gelu({x})", "lib.nn.functional.gelu({x}, approximate='tanh')",
        "lib.nn.functional.silu({x})", "lib.nn.functional.softplus({x})", "lib.round({x}, decimals={small})",
        "lib.clamp({x}, {number}, {number})", "lib.clamp({x}, min={operand})", "{x}.clamp(max={number})",
        "lib.logit({x}, 0.1)", "{x}.real", "{x}.imag", "lib.conj({x}) + 0", "-{x}", "~{x}", "abs({x})",
    ],
    "binary": [
        *(f"lib.{op}({{x}}, {{operand}})" for op in BINARY),
        *(f"{{x}}.{op}({{operand}})" for op in BINARY),
        *(f"{{x}}.{op}_({{operand}})" for op in BINARY if op not in NOT_IN_PLACE and op != "hypot"),
        *(f"lib.{op}({{x}}, {{y}}, out={{out}})" for op in BINARY),
        *(f"{{x}} {op} {{operand}}" for op in OPERATORS),
        *(f"{{number}} {op} {{x}}" for op in OPERATORS),
        "lib.div({x}, {operand}, rounding_mode='floor')", "lib.div({x}, {operand}, rounding_mode='trunc')",
        "lib.lerp({x}, {y}, {number})", "lib.addcmul({x}, {y}, {y}, value={number})",
        "lib.addcdiv({x}, {y}, {y}, value={number})", "lib.where({mask}, {x}, {operand})",
        "lib.add({x}, {operand}, alpha={number})", "lib.sub({x}, {operand}, alpha={number})",
        "{x}.masked_fill({mask}, {number})", "{x}.masked_fill_({mask}, {number})", "lib.isclose({x}, {y})",
        "lib.allclose({x}, {y})", "lib.equal({x}, {y})", "lib.result_type({x}, {operand})",
        "lib.can_cast(lib.{dtype}, lib.{dtype})", "lib.promote_types(lib.{dtype}, lib.{dtype})",
    ],
    "reductions": [
        *(f"lib.{op}({{x}})" for op in REDUCE if op != "logsumexp"),
        *(f"{{x}}.{op}({{dim}})" for op in REDUCE),
        *(f"{{x}}.{op}({{dim}}, keepdim={{flag}})" for op in REDUCE if op != "count_nonzero"),
        *(f"lib.{op}({{x}}, {{dims}})" for op in REDUCE if op not in ("argmax", "argmin", "prod")),
        *(f"lib.{op}({{x}}, {{dims}}, keepdim={{flag}})" for op in ("sum", "mean", "amax", "amin", "var", "std")),
        *(f"lib.{op}({{x}}, {{dim}}, dtype=lib.{{dtype}})" for op in ("sum", "mean", "prod", "cumsum", "cumprod")),
        "lib.max({x})", "lib.min({x})", "lib.max({x}, {dim})", "lib.min({x}, {dim}, keepdim={flag})",
        "lib.var({x}, {dims}, correction={positive})", "lib.norm({x})", "lib.norm({x}, {order}, {dim})",
        "{x}.norm({order})", "lib.softmax({x}, {dim})", "lib.log_softmax({x}, {dim})", "{x}.cumsum({dim})",
        "{x}.cumprod({dim})", "lib.sort({x}, dim={dim}, stable=True)",
        "lib.sort({x}, descending={flag}, stable=True)", "lib.argsort({x}, dim={dim}, stable=True)",
        "lib.topk({x}, {small}, dim={dim})[0]", "lib.topk({x}, 1, largest={flag})[0]", "lib.unique({x})",
        "lib.unique({x}, return_counts=True)", "lib.unique({x}, return_inverse=True)", "lib.unique({x}, dim={dim})",
        "lib.nonzero({x})", "lib.nonzero({x}, as_tuple=True)", "lib.argwhere({x})", "lib.where({x})",
    ],
    "shape": [
        "{x}.view({shape})", "{x}.reshape({shape})", "lib.reshape({x}, {shape})", "{x}.permute({order_of})",
        "{x}.transpose({dim}, {dim})", "{x}.t()", "{x}.T", "{x}.mT", "{x}.squeeze()", "{x}.squeeze({dim})",
        "{x}.unsqueeze({dim})", "{x}.expand({larger})", "lib.broadcast_to({x}, {larger})",
        "{x}.flatten({dim}, {dim})", "{x}.flatten()", "{x}.unflatten({dim}, (-1, 1))",
        "lib.movedim({x}, {dim}, {dim})", "{x}.narrow({dim}, {small}, {small})", "{x}.select({dim}, {small})",
        "{x}.chunk({positive}, {dim})", "{x}.split({positive}, {dim})", "{x}.unbind({dim})",
        "lib.cat([{x}, {y}], {dim})", "lib.cat([{x}, {x}])", "lib.stack([{x}, {y}], {dim})",
        "lib.stack([{x}, {x}], {dim})", "{x}.flip({dim})", "lib.flip({x}, {dim_tuple})",
        "lib.roll({x}, {small}, {dim})", "lib.roll({x}, {small})", "{x}.repeat({larger})", "lib.tile({x}, {larger})",
        "lib.nn.functional.pad({x}, {padding})", "lib.nn.functional.pad({x}, {padding}, value={number})",
        "{x}.contiguous()", "{x}.clone()", "{x}.tril({small})", "lib.triu({x}, {small})", "lib.tril({x})",
        "{x}.is_contiguous()", "layout({given}.transpose({dim}, {dim}))", "layout({given}.reshape({shape}))",
        "layout({given}.permute({order_of}))", "layout({given}[{key}])", "layout({given}.expand({larger}))",
        "{x}.to(lib.{dtype})", "{x}.type_as({y})", "{x}.float()", "{x}.int()", "{x}.bool()", "{x}.half()",
        "{x}.double()", "{x}.long()", "{x}.copy_({y})", "{x}.fill_({number})", "{x}.zero_()", "{x}.expand_as({y})",
        "{x}.size({dim})", "{x}.numel()", "{x}.tolist()", "repr({x})", "len({x})", "bool({x})", "int({x})",
        "float({x})", "{x}.item()", "lib.squeeze({x}, {dim})", "lib.swapaxes({x}, {dim}, {dim})",
        "{x}.view(lib.{dtype}).clone()", "[row for row in {x}]", "{x}.element_size()",
        "{x}.as_strided((2, 2), (1, 1))", "lib.narrow({x}, {dim}, 0, 1)",
    ],
    "index": [
        "{x}[{key}]", "{x}[{key}]", "{x}[{key}]", "{x}[{mask}]", "{x}[{near_mask}]", "{x}[{index}]",
        "{x}[{index}, {index}]", "{x}[..., {index}]", "put({x}, {key_of}, {number})", "put({x}, {key_of}, {number})",
        "put({x}, {mask}, {number})", "put({x}, {near_mask}, {number})", "put({x}, {index}, {scalar})",
        "put({x}, {key_of}, {scalar})", "{x}.gather({dim}, {index_like})", "lib.gather({x}, {dim}, {index_like})",
        "{x}.scatter({dim}, {index_like}, {number})", "{x}.scatter({dim}, {index_like}, {x})",
        "{x}.scatter_add({dim}, {index_like}, {x})", "{x}.scatter_({dim}, {index_like}, {number})",
        "{x}.index_select({dim}, {index})", "{x}.index_add({dim}, {index}, {y})",
        "{x}.index_add_({dim}, {index}, {x})", "{x}.index_put(({index},), {y})",
        "{x}.index_put_(({index},), {scalar}, accumulate=True)",
        "{x}.index_put(({index}, {index}), {scalar}, accumulate={flag})",
        "lib.take_along_dim({x}, {index_like}, {dim})", "lib.masked_select({x}, {mask})",
        "{x}.index_fill({dim}, {index}, {number})", "{x}.masked_scatter({mask}, {x})",
    ],
    "creation": [
        "lib.zeros({larger}, dtype=lib.{dtype}, device=device)", "lib.ones({larger}, device=device)",
        "lib.full({larger}, {number}, device=device)",
        "lib.full({larger}, {number}, dtype=lib.{dtype}, device=device)", "lib.zeros_like({x})",
        "lib.ones_like({x}, dtype=lib.{dtype})", "lib.full_like({x}, {number})", "{x}.new_zeros({larger})",
        "{x}.new_full({larger}, {number})", "{x}.new_ones({larger}, dtype=lib.{dtype})",
        "lib.arange({finite}, device=device)", "lib.arange({finite}, {finite}, device=device)",
        "lib.arange({finite}, {finite}, {finite}, device=device)", "{x}.new_tensor([1, 2])",
        "lib.arange({finite}, {finite}, dtype=lib.{dtype}, device=device)",
        "lib.linspace({finite}, {finite}, {positive}, device=device)",
        "lib.linspace({finite}, {finite}, {positive}, dtype=lib.{dtype}, device=device)",
        "lib.eye({positive}, device=device)", "lib.eye({positive}, {positive}, dtype=lib.{dtype}, device=device)",
        "lib.meshgrid({x}, {y}, indexing='ij')", "lib.meshgrid({x}, {x}, indexing='xy')",
        "lib.tensor([[{number}, {number}], [1, {number}]], device=device)",
        "lib.tensor({number}, dtype=lib.{dtype}, device=device)", "lib.asarray([{number}, {number}], device=device)",
        "lib.finfo(lib.{dtype}).max", "lib.finfo(lib.{dtype}).eps", "lib.iinfo(lib.{dtype}).min",
    ],
}  # fmt: skip
