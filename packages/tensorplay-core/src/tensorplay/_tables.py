"""Made by libtensorplay/tables.py from the .def files of libtensorplay. Do not edit."""

# name: (code, itemsize in bytes, category)
DTYPES: dict[str, tuple[int, int, str]] = {
    "bool": (0, 1, "BOOL"),
    "int32": (1, 4, "INT"),
    "int64": (2, 8, "INT"),
    "float16": (3, 2, "FLOAT"),
    "bfloat16": (4, 2, "FLOAT"),
    "float32": (5, 4, "FLOAT"),
}

# PROMOTION[left][right]
PROMOTION: dict[str, dict[str, str]] = {
    "bool": {
        "bool": "bool",
        "int32": "int32",
        "int64": "int64",
        "float16": "float16",
        "bfloat16": "bfloat16",
        "float32": "float32",
    },
    "int32": {
        "bool": "int32",
        "int32": "int32",
        "int64": "int64",
        "float16": "float16",
        "bfloat16": "bfloat16",
        "float32": "float32",
    },
    "int64": {
        "bool": "int64",
        "int32": "int64",
        "int64": "int64",
        "float16": "float16",
        "bfloat16": "bfloat16",
        "float32": "float32",
    },
    "float16": {
        "bool": "float16",
        "int32": "float16",
        "int64": "float16",
        "float16": "float16",
        "bfloat16": "float32",
        "float32": "float32",
    },
    "bfloat16": {
        "bool": "bfloat16",
        "int32": "bfloat16",
        "int64": "bfloat16",
        "float16": "float32",
        "bfloat16": "bfloat16",
        "float32": "float32",
    },
    "float32": {
        "bool": "float32",
        "int32": "float32",
        "int64": "float32",
        "float16": "float32",
        "bfloat16": "float32",
        "float32": "float32",
    },
}

# name: (code, rule)
UNARY: dict[str, tuple[int, str]] = {
    "neg": (0, "NUMERIC"),
    "abs": (1, "SAME"),
    "sqrt": (2, "FLOAT"),
    "rsqrt": (3, "FLOAT"),
    "exp": (4, "FLOAT"),
    "log": (5, "FLOAT"),
    "tanh": (6, "FLOAT"),
    "erf": (7, "FLOAT"),
    "sigmoid": (8, "FLOAT"),
    "relu": (9, "NUMERIC"),
    "gelu": (10, "FLOAT"),
    "gelu_tanh": (11, "FLOAT"),
    "reciprocal": (12, "FLOAT"),
    "sin": (13, "FLOAT"),
    "cos": (14, "FLOAT"),
    "logical_not": (15, "BOOL"),
}

# name: (code, rule)
BINARY: dict[str, tuple[int, str]] = {
    "add": (0, "SAME"),
    "sub": (1, "NUMERIC"),
    "mul": (2, "SAME"),
    "div": (3, "FLOAT"),
    "pow": (4, "NUMERIC"),
    "maximum": (5, "SAME"),
    "minimum": (6, "SAME"),
    "eq": (7, "BOOL"),
    "ne": (8, "BOOL"),
    "lt": (9, "BOOL"),
    "le": (10, "BOOL"),
    "gt": (11, "BOOL"),
    "ge": (12, "BOOL"),
    "logical_and": (13, "BOOL"),
    "logical_or": (14, "BOOL"),
}

# name: (code, rule)
REDUCE: dict[str, tuple[int, str]] = {
    "sum": (0, "SUM"),
    "mean": (1, "FLOAT"),
    "amax": (2, "SAME"),
    "amin": (3, "SAME"),
    "any": (4, "BOOL"),
    "all": (5, "BOOL"),
}
