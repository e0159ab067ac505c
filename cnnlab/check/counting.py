"""Numbers that count the multiplications they take part in."""

import operator
from dataclasses import dataclass


@dataclass
class Tally:
    """Multiplications counted: of two numbers that count, and of one by a constant."""

    products: int = 0
    by_constants: int = 0


class Counted:
    """A number that counts its multiplications in a `tally`, which its results share."""

    __array_ufunc__ = None  # NumPy's numbers leave the product to this one

    def __init__(self, value: float, tally: Tally):
        self.value, self.tally = float(value), tally

    def _with(self, other, operation) -> "Counted":
        return Counted(operation(self.value, getattr(other, "value", other)), self.tally)

    def __mul__(self, other):
        if isinstance(other, Counted):
            self.tally.products += 1
        else:
            self.tally.by_constants += 1
        return self._with(other, operator.mul)

    def __add__(self, other):
        return self._with(other, operator.add)

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def __rsub__(self, other):
        return -self + other

    def __neg__(self):
        return Counted(-self.value, self.tally)

    def __truediv__(self, constant):
        return self * (1 / constant)

    __rmul__, __radd__ = __mul__, __add__
