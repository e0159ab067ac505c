"""What the kernels of a source take, read from its text, and the arguments that fit."""

import math
import numbers
import re
from typing import NamedTuple

import numpy as np

NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
HEAD = re.compile(r"__(?:launch_bounds|align)__\s*\([^)]*\)|__(?:restrict|restrict__)\b")
KERNEL = re.compile(
    r"(template\s*<[^>]*>\s*)?([\w\s\"]*?)\b__global__\s+([\w\s]*?)(\w+)\s*"
    r"\(((?:[^()]|\([^()]*\))*)\)"
)
ROWS = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*(?:\[[^]]*\]\s*)+")  # (*x)[28]: a pointer to rows
ALIAS = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*([\w\s]+?)\s*;")
NUMBERS = {
    "bool": np.bool_, "char": np.int8, "signed char": np.int8, "unsigned char": np.uint8,
    "short": np.int16, "unsigned short": np.uint16, "int": np.int32, "unsigned": np.uint32,
    "long": np.int64, "unsigned long": np.uint64, "float": np.float32, "double": np.float64,
}  # fmt: skip
TRUTHS, WHOLE = (bool, np.bool_), (int, np.integer)
FLOAT_MOST = 3.4028234663852886e38
SHORTER = {
    "unsigned int": "unsigned", "uint": "unsigned", "signed": "int", "signed int": "int",
    "short int": "short", "unsigned short int": "unsigned short", "long int": "long",
    "unsigned long int": "unsigned long", "long long": "long", "long long int": "long",
    "unsigned long long": "unsigned long", "unsigned long long int": "unsigned long",
    "size_t": "unsigned long", "uchar": "unsigned char", "ushort": "unsigned short",
    "int8_t": "signed char", "uint8_t": "unsigned char", "int16_t": "short",
    "uint16_t": "unsigned short", "int32_t": "int", "uint32_t": "unsigned", "int64_t": "long",
    "uint64_t": "unsigned long", "ptrdiff_t": "long",
}  # fmt: skip
VECTORS = {f"{kind}{n}": (NUMBERS[kind], n) for kind in ("float", "int") for n in (2, 3, 4)}


class Parameter(NamedTuple):
    """A parameter of a kernel: its name, its type (say, "float*"), and whether it is const."""

    name: str
    kind: str
    const: bool

    @property
    def array(self) -> bool:
        return self.kind.endswith("*")


def code(source: str) -> str:
    """The source with its comments blank, so that lines and columns stay."""

    return NOT_CODE.sub(lambda r: r[0] if r[0][0] == '"' else re.sub(r"[^\n]", " ", r[0]), source)


def said(text: str, at: int) -> str:
    """The line at a place of the source: its number, and what it says."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}: {text.splitlines()[line - 1].strip()}"


def function_in(source: str, name: str) -> re.Match:
    """Where a source defines a function, from its first line to its last; ValueError if nowhere."""
    pattern = rf"^[^\n/]*\b{re.escape(name)}\(.*?^}}"
    if result := re.search(pattern, source, re.MULTILINE | re.DOTALL):
        return result
    raise ValueError(f"source: expected a function {name}, got none")


def kernels_of(source: str) -> dict[str, list[Parameter]]:
    """The parameters of each kernel of a source, by the kernel's name.

    Raises ValueError for a source without a kernel, and for a kernel that cannot be launched.
    """
    text = HEAD.sub(lambda result: " " * len(result[0]), code(source))
    aliases = {a or c: b or d for b, a, c, d in ALIAS.findall(text)}
    result = {}
    for kernel in KERNEL.finditer(text):
        template, _, kind, name, inside = kernel.groups()
        line = said(source, kernel.end(4))  # that of the name
        if template:
            raise ValueError(
                f"source: {name}: expected a kernel without template parameters, got "
                f"{template.strip()}: make it a __device__ function that a kernel calls: {line}"
            )
        if "void" not in kind.split():
            got = kind.strip() or "no type"
            raise ValueError(f"source: {name}: expected void, got {got}: {line}")
        try:
            result[name] = parameters(inside, aliases)
        except ValueError as problem:
            raise ValueError(f"{problem}: {line}") from None
    if not result:
        raise ValueError("source: expected a __global__ function, got none")
    return result


def parameters(text: str, aliases: dict[str, str] | None = None) -> list[Parameter]:
    """The parameters of a kernel, from the text between its parentheses.

    `aliases` are the source's own names of types. Raises ValueError for an unknown type.
    """
    result = []
    text = ROWS.sub(r"*\1", text)
    for parameter in text.split(",") if text.strip() not in ("", "void") else ():
        star = "*" if "*" in parameter or "[" in parameter else ""
        *words, name = re.sub(r"[*]|\[[^]]*\]", " ", parameter).split() or [""]
        kind = " ".join(word for word in words if word not in ("const", "volatile", "__restrict__"))
        while aliases and kind in aliases:
            kind = " ".join(word for word in aliases[kind].split() if word != "const")
        kind = SHORTER.get(kind, kind)
        known = NUMBERS | VECTORS if star else NUMBERS
        if kind not in known or parameter.count("*") + parameter.count("[") > 1:
            raise ValueError(
                f"source: expected parameters of {', '.join(NUMBERS)}, pointers to them or to "
                f"vectors such as float4, got {' '.join(parameter.split())!r}"
            )
        const = "const" in re.split(r"[*[]", parameter)[0].split()
        result.append(Parameter(name, kind + star, const))
    return result


def checked(kernel: str, parameter: Parameter, value):
    """An argument of a kernel, as its parameter's type; raises TypeError or ValueError if unfit."""
    name, kind, const = parameter
    if not parameter.array:
        return number(f"{kernel}: {name}", kind, value)
    dtype, many = VECTORS.get(kind[:-1]) or (NUMBERS[kind[:-1]], 1)
    known = isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__")
    if not known or value.dtype != dtype:
        got = f"the number {value}" if isinstance(value, np.generic) else type(value).__name__
        got = value.dtype if known else got
        raise TypeError(f"{kernel}: {name}: expected an array of {np.dtype(dtype)}, got {got}")
    wrong = None
    if not value.flags.c_contiguous:
        wrong = f"a C-contiguous array, got strides {value.strides}"
    elif not const and not getattr(value.flags, "writeable", True):
        wrong = "an array to write to, got one that is read-only"
    elif value.size % many:
        wrong = f"a multiple of {many} elements, got {value.size}"
    if wrong:
        raise ValueError(f"{kernel}: {name}: expected {wrong}")
    return value


def number(name: str, kind: str, value):
    """A number as a C type; raises TypeError if it is none, ValueError if it does not fit."""
    dtype = np.dtype(NUMBERS[kind])
    limits = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else None
    wanted = TRUTHS if kind == "bool" else WHOLE if limits else numbers.Real
    if not isinstance(value, wanted) or (kind != "bool" and isinstance(value, TRUTHS)):
        got = f"an array of {value.dtype}" if np.ndim(value) else repr(value)
        raise TypeError(f"{name}: expected a number of type {kind}, got {got}")
    if limits and not limits[0] <= value <= limits[1]:
        raise ValueError(f"{name}: expected {kind}, {limits[0]} to {limits[1]}, got {value}")
    if kind == "float" and FLOAT_MOST < abs(value) < math.inf:
        raise ValueError(f"{name}: expected float, got {value}, which is too large for it")
    return NUMBERS[kind](value)


def address(array) -> int:
    """Where an array of NumPy or CuPy begins, in its memory."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return array.__cuda_array_interface__["data"][0]


def overlapping(arrays: list) -> list[list[int]]:
    """The numbers of the arrays, grouped: those that share memory lie in one group."""
    groups, end = [], 0
    for number in sorted(range(len(arrays)), key=lambda i: address(arrays[i])):
        start, size = address(arrays[number]), arrays[number].nbytes
        if groups and start < end:
            groups[-1].append(number)
        else:
            groups.append([number])
        end = max(end, start + size)
    return [sorted(group) for group in groups]
