"""The rungs of lesson 05 without their sigmoid, made from their own source: the sums alone."""

import ast
import functools
import inspect

import numba
import numpy as np

from cnnlab.kernels.variants.one_core import RUNGS


@functools.cache
def sums_only(rung: str):
    """A rung that stops at the preactivation, compiled with the rung's options.

    It has the loops of the rung and its arguments, with z in the place of y.
    """
    kernel = RUNGS[rung]
    tree = _WithoutSigmoid().visit(ast.parse(inspect.getsource(kernel.py_func)))
    tree.body[0].decorator_list = []
    alone: dict = {"np": np}
    exec(compile(ast.fix_missing_locations(tree), inspect.getfile(kernel.py_func), "exec"), alone)
    return numba.jit(**kernel.targetoptions)(alone[kernel.__name__])


class _WithoutSigmoid(ast.NodeTransformer):
    """Drops loops that end in a division; where the sums are in there too, stores their total."""

    def visit_For(self, node: ast.For) -> ast.For | None:
        self.generic_visit(node)
        last = node.body[-1]
        value = getattr(last, "value", None)
        if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)):
            return node
        if not any(isinstance(statement, ast.For) for statement in node.body):
            return None
        exponents = (n.operand for n in ast.walk(value) if isinstance(n, ast.UnaryOp))
        last.value = next(exponents)  # of exp(-total) the total
        return node
