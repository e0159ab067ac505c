"""From CUDA C to C++: what a compiler for this CPU does not understand is rewritten in place."""

import re
from pathlib import Path

from cnnlab.cuda.arguments import code, said

HERE = Path(__file__).parent
BEFORE = "switch.h", "device.h", "warp.h", "functions.h"  # which the kernels need
AFTER = "faults.h", "schedule.h"  # with functions of the host
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
NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
SCOPE = re.compile(rf"\b(?:namespace|struct|class|union)\b(?:\s*{ALIGN})?[^()=]*$|\bextern\s*$")
FUNCTION = re.compile(r"(\boperator\b\W*|::\w+|\w+)(?:<[^()]*>)?\s*\(")
VALUE = re.compile(r"=\s*(?:\[.*)?$|\)\s*:[^:].*[\w>]\s*$", re.DOTALL)  # or a lambda; of a member
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
    macros, body = MACRO.findall(body), without_host(body)
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
    before, after = ("\n".join(map(header, names)) for names in (BEFORE, AFTER))
    undefined = "".join(f"#undef {name}\n" for name, _ in [("memcpy", ""), ("memset", ""), *macros])
    after = f"{undefined}#pragma GCC diagnostic pop\n{after}\n{runs}"
    return f'{before}\n#line 1 "kernel.cu"\n{body}\n#line 1 "run"\n{after}'


def header(name: str) -> str:
    """The text of one of the emulator's headers."""
    return (HERE / name).read_text(encoding="utf-8")


def without_host(body: str) -> str:
    """The source, in which functions of the host are no more than declared, as such."""
    marks, device = {"__device__", "__global__", "constexpr"}, set()
    for name, words in MACRO.findall(body):
        marks |= {name} if marks & {*re.findall(r"\w+", words)} else set()
    text = NOT_CODE.sub(lambda r: re.sub(r"[^\n]", " ", r[0]), body)
    start, at, kept, result = 0, 0, 0, ""
    while piece := re.compile("[;{}]").search(text, at):
        head, first, at = text[start : piece.start()], start, piece.end()
        inside = piece[0] == "{" and not SCOPE.search(head)
        at = closing(text, piece.start())[0] if inside else at
        value = VALUE.search(head)
        if value and inside:
            continue
        start, function = at, None if value else FUNCTION.search(head)
        if function and marks & {*re.findall(r"\w+", head)}:
            device.add(function[1])
        elif function and inside and function[1] not in device and function[1][0] != ":":
            end = (
                first + re.search(r"\)\s*:(?!:)|$", head).start()
            )  # where a constructor's values are
            declaration = body[kept : end + (text[end] == ")")] + " HOST_ONLY;"
            if "->" in head:  # behind it, the attribute would be one of the type
                declaration = re.sub(r"(?s)(.*)\bauto\b", r"\1HOST_ONLY auto", body[kept:end]) + ";"
            result += declaration + "\n" * body.count("\n", end, at)
            kept = at
    return result + body[kept:]


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
