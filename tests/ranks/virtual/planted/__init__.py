"""Rank programs with a fault each, and the nearest programs without.

The line that is to blame is marked. All are for two ranks or more, with MPI's interface alone.
"""

from tests.ranks.virtual.planted import buffers, calls, choices, parameters

# Of each class: the rank that is to blame, a program, and one that is right.
PLANTED = parameters.PLANTED | calls.PLANTED | buffers.PLANTED | choices.PLANTED
