"""The stored outputs of a lesson's cells that need a C++ compiler, shown where there is none."""

import ast
import re
import sys
from pathlib import Path

from cnnlab.cuda.emulator.compiler import NONE, NoCompiler, compiler


def names_bound(source: str) -> set[str]:
    """The names that a cell binds, in plain Python or by a cell magic, whose line names them."""
    if source.startswith("%%"):
        return set(re.findall(r"[^\W\d]\w*", source.partition("\n")[0])[1:])
    nodes = list(ast.walk(ast.parse(re.sub("^[%!].*", "", source, flags=re.MULTILINE))))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return bound | {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def outputs(folder: Path) -> dict[str, list]:
    """The stored outputs of each code cell of the notebooks in a folder, by the cell's source."""
    import nbformat

    books = [nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))]
    cells = [cell for nb in books for cell in nb.cells if cell.cell_type == "code"]
    return {cell.source.strip(): cell.outputs for cell in cells}


def stand_in(shell) -> None:
    """Have cells that need a C++ compiler, where there is none, show what is stored of them.

    So do cells that lack a name for that reason. They end without an error, and the names that
    they would have bound are removed, so that no later cell takes an older value. The notebooks in
    the current folder are read at once, before a run replaces their outputs.
    """
    from IPython.display import display

    try:
        compiler()
        return
    except NoCompiler as problem:
        print(f"{problem}; until then cells that need it show what is stored")
    stored, missing, run = outputs(Path()), set(), shell.run_code

    def instead(error) -> bool:  # a check puts what it has caught into its own words
        unknown = re.search(r"name '(\w+)' is not defined", str(error))
        return NONE in str(error) or (unknown is not None and unknown[1] in missing)

    def report(shell, kind, error, trace, tb_offset=None) -> None:
        if not instead(error):
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    async def run_code(code, result=None, **options):
        raised = await run(code, result, **options)
        if raised and result and instead(result.error_in_exec):
            result.error_in_exec, source = None, result.info.raw_cell.strip()
            bound = names_bound(source)
            missing.update(bound)
            for name in bound & shell.user_ns.keys():
                del shell.user_ns[name]
            rows = stored.get(source)
            if rows is None:
                print("without a C++ compiler, and no output of this cell is stored")
            elif rows:
                print("without a C++ compiler, as stored, from another machine:")
            for row in rows or []:
                if row.output_type == "stream":
                    sys.stdout.write(row.text)
                elif row.output_type != "error":
                    display(row.data, metadata=row.metadata, raw=True)
        return raised

    shell.run_code = run_code
    shell.set_custom_exc((Exception,), report)
