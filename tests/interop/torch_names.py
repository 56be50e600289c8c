"""Writes docs/guide/torch_names.txt anew, for the torch that is installed: ``python tests/interop/torch_names.py``.

A name is taken when torch documents it, or when tensorplay has it too; internals, symbolic numbers, and what is of
quantized and sparse tensors only, are not. Remarks stay.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "extensions"))

from torch_names import ABSENT, LIST, Name, ours, sections  # noqa: E402 (the path is set above)

INTERNAL = re.compile(
    r"_.*|AVG|SUM|AggregationType|DispatchKey|Script.*|Sym.*|sym_.*|Tag|DisableTorch.*|(?!narrow_).*_copy|.*_type_.*"
    r"|parse_.*|import_ir.*|init_num_threads|thread_safe_generator|unify_type_list|quantized_.*|fake_quantize.*"
    r"|native_.*|has_.*|handle_torch_function|boolean_dispatch|Optional|Union|.*_with_indices|hash_tensor"
    r"|segment_reduce|sspaddmm|hspmm|smm|typename|fork|wait"
    r"|.+(Storage|Tensor)|cudaStatus|CudaError|DeferredCudaCallError|default_generators"
    r"|conv_tbc|(is_)?(ipu|xla|mtia|xpu|hpu)|is_(mps|vulkan)|q_.*|qscheme"
    r"|streams|supports_capture|parallel|Container"
)

#: Kinds of parameters that say nothing of what is taken.
VARIABLE = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}

#: What torch documents on pages, and not in a docstring.
WITHOUT_DOCSTRINGS = {
    "torch": "Generator Size Tensor abs accelerator amp autograd compiler cuda default_generator device distributions"
    " dtype fft finfo iinfo jit layout linalg memory_format multiprocessing nn random relu sparse special tril",
    "torch.Tensor": "index_reduce",
    "torch.accelerator": "graphs memory",
    "torch.cuda": "comm gds green_contexts",
    "torch.cuda.Event": "cuda_event device",
    "torch.cuda.Stream": "cuda_stream device device_index",
    "torch.nn": "functional init utils",
}


def names(section: str, owner: Any) -> list[str]:
    """What a module or a class of torch gives away, in the order of the alphabet."""
    listed = getattr(owner, "__all__", None) or dir(owner)
    if section in ("torch.cuda.Event", "torch.cuda.Stream"):
        listed = vars(owner)  # without the methods of torch's own stream, which are not public there
    if section == "torch":
        listed = {*listed, *(name for name, value in vars(owner).items() if is_dtype(name, value))}
    if section == "torch.nn":
        listed = {*torch.nn.modules.__all__, "Buffer", "DataParallel", "Parameter", "ParameterList"}
    if section == "torch.nn.init":
        listed = [name for name in listed if name.endswith("_") or name == "calculate_gain"]
    found = {name for name in listed if not INTERNAL.fullmatch(name) and is_told(section, owner, name)}
    too = {name for name in dir(owner) if not name.startswith("_") and is_shared(section, owner, name)}
    return sorted(found | too | set(WITHOUT_DOCSTRINGS.get(section, "").split()), key=lambda name: (name.lower(), name))


def is_dtype(name: str, value: Any) -> bool:
    """Whether a name is that of a dtype of whole bytes, not quantized."""
    return isinstance(value, torch.dtype) and not re.match(r"q|bit|u?int[1-7]$|float[48]_", name)


def is_shared(section: str, owner: Any, name: str) -> bool:
    """Whether torch and we have a name that is no module."""
    values = getattr(owner, name, ABSENT), ours(section, name)
    return ABSENT not in values and not any(isinstance(value, ModuleType) for value in values)


def is_told(section: str, owner: Any, name: str) -> bool:
    """Whether a name is documented, as far as docstrings tell."""
    value = inspect.getattr_static(owner, name)
    if isinstance(value, torch.dtype):
        return is_dtype(name, value)
    if isinstance(value, ModuleType):
        return section in ("torch.cuda", "torch.nn.utils")
    if section.startswith("torch.nn.f") and (isinstance(value, type) or not callable(value)):
        return False
    return section in ("torch.cuda", "torch.accelerator") or bool(getattr(value, "__doc__", None))


def arguments(section: str, owner: Any, name: str) -> str | None:
    """The arguments' names in parentheses; None where torch does not tell them."""
    value = getattr(owner, name, None)
    if name in ("arctanh_", "atanh_"):
        return "()"  # torch's docstring has an argument that the method does not take
    own = section == "torch" and isinstance(value, type)  # of torch's C classes the docstring says what they are
    if own or isinstance(value, (property, ModuleType, torch.dtype, float)) or not callable(value):
        return None
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except ValueError:
        return from_docstring(name, (inspect.getdoc(value) or "").strip())
    words: list[str] = []
    for parameter in parameters:
        if parameter.name.startswith("_") or parameter.name == "self" or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY) and "*" not in words:
            words.append("*")
        if parameter.kind is not parameter.VAR_POSITIONAL:
            words.append(parameter.name)
    if set(words) <= {"*"} and {parameter.kind for parameter in parameters} & VARIABLE:
        return from_docstring(name, (inspect.getdoc(value) or "").strip())
    return joined(words)


def from_docstring(name: str, text: str) -> str | None:
    """The arguments' names from a docstring's first line, ``abs(input: Tensor, *, out: Tensor | None) -> Tensor``."""
    match = re.match(re.escape(name) + r"\((.*?)\)\s*(->|→|\n|$)", text, re.S)
    if match is None:
        return None
    plain = re.sub(r"\[[^\]]*\]|\([^)]*\)|\\", "", match[1])
    words: list[str] = []
    for part in (part.strip() for part in plain.split(",")):
        if part.startswith("*"):
            words += ["*"] if "*" not in words else []
        elif word := re.match(r"([A-Za-z_]\w*)\s*([:=].*)?$", part, re.S):
            words += [word[1]] if not word[1].startswith("_") else []
        elif part not in ("", "/"):
            return None
    return joined(words)


def joined(words: list[str]) -> str:
    """Names in parentheses, without a star behind which nothing stands."""
    return f"({', '.join(words[:-1] if words[-1:] == ['*'] else words)})"


def main() -> None:
    """Writes the list."""
    lines = []
    for section, known in sections().items():
        owner: Any = torch
        for part in section.split(".")[1:]:
            owner = getattr(owner, part)
        remarks: dict[str, Name] = {name.name: name for name in known}
        lines.append(f"[{section}]")
        for name in names(section, owner):
            remark = remarks[name].remark if name in remarks else ""
            lines.append(f"{name}{arguments(section, owner, name) or ''}{': ' if remark else ''}{remark}")
        lines.append("")
    LIST.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
