"""From CUDA C to C++: what a compiler for this CPU does not understand is rewritten in place."""

import re

from cnnlab.cuda.arguments import code, said
from cnnlab.cuda.emulator.compiler import joined

HEADERS = "device.h", "warp.h", "functions.h"
INCLUDED = re.compile(
    r'#[ \t]*include[ \t]*[<"](?:(?:cuda_runtime|cuda_runtime_api|cuda|device_launch_parameters|'
    r"assert|float|limits|math|stdint|stdio|stdlib|string)\.h|"
    r'c(?:assert|float|limits|math|stdint|stdio|stdlib|string))[>"]'
)
UNSUPPORTED = re.compile(
    r"cooperative_groups|\bcg::|#[ \t]*include[^\n]*|<<<|__managed__|__cluster_dims__|\basm\b|"
    r"\bwmma\b|\bcuda::|\bcuda[A-Z]\w*|\b(?:texture|surface)\b|\btex[123]D\w*|\bcurand\w*|__nv_bfloat16|"
    r"\bhalf2\b|\bint\s+main\b|\b(?:malloc|calloc|realloc|free|new|delete)\b"
)
ALIGN = r"(?:__align__|alignas)\s*\(\s*\w+\s*\)"
SHARED = re.compile(
    rf"((?:\b(?:static|extern|volatile|const)\s+|{ALIGN}\s*)*)__shared__\s+"
    rf"((?:(?:volatile|const|struct|{ALIGN})\s+)*)"
    r"((?:unsigned|signed|long|short)\b(?:\s+(?:int|char|long|short|double)\b)*|[\w:]+(?:\s*<[^;<>]*>)?)"
    r"([^;]+);"
)
DECLARATOR = re.compile(r"\s*([\s*]*)(\w+)\s*((?:\[[^]]*\]\s*)*)$")
GLOBAL = re.compile(r"__(?:device|constant)__\s+([^;{}()=]*?\w\s*(?:\[[^]]*\]\s*)*)(?==|;|\{)")
NOT_CODE = re.compile(r'"[^"\n]*"|^[ \t]*#[^\n]*|__global__[^;{}()]*\([^()]*\)\s*;', re.MULTILINE)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)([^\n]*)", re.MULTILINE)
FUNCTION = re.compile(r"(?<![^;{}])([^;{}=]*[\w>)][\s*&]+)(\w+)\s*\([^()]*\)\s*(?:->[^;{}()]*)?\{")
CALL = re.compile(r"(?<![.>])\b(?!(?:if|for|while|switch|constexpr)\b|_)(\w+)\s*(?:<[\w ,:*]*>)?\(")
HOST = "abort atexit atof atoi bsearch exit fopen getenv puts qsort rand srand strtod strtol system"
RUN = """
EXPORT const char* run_{name}(void** arguments, const unsigned* sizes, size_t shared)
{{
    auto call = [](void** each) {{ emulator::call({name}, each); }};
    return emulator::run(call, arguments, sizes, shared);
}}
"""
NOTE = 'emulator::note_global("{0}", {0});'


def translate(source: str, kernels: list[str]) -> str:
    """The C++ for a CUDA source: the headers before it, a C function to run each kernel after it.

    Raises ValueError for CUDA that the emulator does not know, with the line that has it.
    """
    body = INCLUDED.sub("", code(source))
    if result := UNSUPPORTED.search(re.sub(r'"[^"\n]*"', '""', body)):
        at = body.index(result[0])
        raise ValueError(f"source: the emulator does not know {result[0]}: {said(source, at)}")
    undeclared(body)
    globals_ = [name for result in GLOBAL.findall(body) for name in declared(result)]
    body = SHARED.sub(lambda result: shared_variables(result, body), body)
    if result := re.search(r"__shared__", body):
        what, where = "this use of __shared__", said(body, result.start())
        raise ValueError(f"source: the emulator does not know {what}: {where}")
    if re.search(r"_sync\b", body):  # a thread that returns early takes no part in shuffles
        body = re.sub(r"\breturn\s*;", "{ emulator::left(); return; }", body)
    runs = "".join(RUN.format(name=name) for name in kernels)
    notes = " ".join(NOTE.format(name) for name in globals_)
    runs += f'extern "C" void emulator_globals() {{ {notes} }}\n'
    return f'{joined(HEADERS)}\n#line 1 "kernel.cu"\n{body}\n#line 1 "run"\n{runs}'


def undeclared(body: str) -> None:
    """Refuse a call of a kernel, or of a function that is not for the device, with a ValueError."""
    macros = dict(MACRO.findall(body))
    device = {"__device__", "constexpr", *(m for m in macros if "__device__" in macros[m])}
    text = NOT_CODE.sub(lambda result: re.sub(r"[^\n]", " ", result[0]), body)
    heads = {head.start(2): head for head in FUNCTION.finditer(text)}
    refused = {*HOST.split(), *(head[2] for head in heads.values())}
    refused -= {h[2] for h in heads.values() if device & {*re.findall(r"\w+", h[1])}} | {*macros}
    for call in CALL.finditer(text):
        if call[1] in refused and call.start() not in heads:
            where = said(body, call.start())
            raise ValueError(f"source: expected a __device__ function, got {call[1]}: {where}")


def declared(text: str) -> list[str]:
    """The names that a declaration of variables declares: `int a, b[3]` gives a and b."""
    parts = re.sub(r"\[[^]]*\]|\*", " ", text).split(",")
    return [part.split()[-1] for part in parts]


def shared_variables(declaration: re.Match, text: str) -> str:
    """The C++ for a declaration of __shared__ variables, on one line to keep line numbers."""
    first, between, kind, variables = declaration.groups()
    words = f"{first} {between}"
    align = " ".join(re.findall(ALIGN, words))
    kind = " ".join((["volatile"] if "volatile" in words else []) + [kind])
    made = []
    for variable in variables.replace("\n", " ").split(","):
        result = DECLARATOR.fullmatch(variable)
        if not result:
            raise ValueError(
                "source: expected __shared__ variables without initial values, got "
                f"{said(text, declaration.start())}"
            )
        stars, name, extents = result.groups()
        extents = extents.strip()
        if "extern" in words.split():
            before = text[: declaration.start()]
            inside = before.count("{") > before.count("}")
            call = f'emulator::shared<{kind}{stars}>("{name}")'
            outside = f'static const emulator::Dynamic<{kind}{stars}> {name}{{"{name}"}};'
            made.append(f"{kind}{stars}* {name} = {call};" if inside else outside)
            continue
        made.append(
            f"typedef {align} {kind}{stars} {name}_type{extents}; "
            f"static emulator::Shared<{name}_type> {name}_room; "
            f'{name}_type& {name} = emulator::shared("{name}", {name}_room);'
        )
    return " ".join(made)


# --- loops that say which iteration a thread is in, so that a trace knows who is in step ---------

LOOP = re.compile(r"\b(do\b|for\b(?=\s*\()|while\b(?=\s*\())\s*")
TAIL = re.compile(r"[^;]*?;?\s*\bwhile\b")  # of do: after its block, or its one statement
CONSTANT = re.compile(r"\bconstexpr\b[^;={]*\)\s*\{")  # a function whose loops must stay


def counted(source: str) -> str:
    """C++ whose loops count their iterations, see `emulator::Loop` in device.h; lines stay.

    Threads that are at one place, in the same iteration of each loop around it, are in step there.
    A loop over a range is left as it is, and so is a `do` without braces.
    """
    if CONSTANT.search(source):
        return source
    inserted, tails = [], set()
    for number, result in enumerate(LOOP.finditer(source), 1):
        start = result.end()
        if result.start() in tails:
            continue
        end, semicolons = closing(source, start) if source[start] in "({" else (start, [])
        if result[1] == "do":
            if tail := TAIL.match(source, end):
                tails.add(tail.end() - len("while"))
            if source[start] != "{":
                continue
            added = [(start + 1, "emulator_loop.next();")]
        elif result[1] == "while":
            added = [(start + 1, "emulator_loop.next() && ("), (end - 1, ")")]
        elif len(semicolons) == 2:
            first, last = semicolons
            empty = not source[first + 1 : last].strip()
            added = [(first + 1, " emulator_loop.next()" + ("" if empty else " && ("))]
            added += [] if empty else [(last, ")")]
        else:
            continue
        head = f"for (emulator::Loop emulator_loop({number}); emulator_loop.once();) "
        inserted += [(result.start(), head), *added]
    for at, text in sorted(inserted, reverse=True):
        source = source[:at] + text + source[at:]
    return source


def closing(source: str, start: int) -> tuple[int, list[int]]:
    """Where the bracket that opens at `start` has closed; the semicolons directly in it."""
    depth, semicolons = 0, []
    for at in range(start, len(source)):
        depth += (source[at] in "([{") - (source[at] in ")]}")
        if source[at] == ";" and depth == 1:
            semicolons.append(at)
        if not depth:
            return at + 1, semicolons
    return len(source), semicolons
