"""What a server's ledger notes, and what it says of its promises."""

import pytest

from cnnlab.distributed.ledger import Ledger


def ledger(times, lead):
    of = Ledger(2, len(times))
    of.times[:], of.lead = times, lead
    return of


@pytest.mark.parametrize(
    "times, lead, told",
    [
        ([1, 1, 1], 2, []),
        ([1, 0, 0], 0, ["image 1: expected 1 gradient applied, got 0; 2 such images"]),
        ([2, 1, 1], 3, ["image 0: expected 1 gradient applied, got 2; 1 such images",
                        "lead: expected at most 2 steps, got 3"]),
    ],
)  # fmt: skip
def test_what_is_lost_applied_twice_or_too_far_ahead_is_told(times, lead, told):
    assert ledger(times, lead).faults(2) == told


def test_a_lead_is_over_those_who_are_here():
    of = Ledger(3, 2)
    of.applied(0, slice(0, 1), together=False)
    of.applied(1, slice(1, 2), together=False)
    assert of.leads(0) == 1
    of.here[2] = False
    assert of.leads(0) == 0


def test_it_notes_leads_and_what_a_gradient_has_missed():
    of = Ledger(2, 6)
    of.goes_on(0)
    of.goes_on(1)
    for first in (0, 1, 2):
        of.applied(0, slice(first, first + 1), together=False)
        of.goes_on(0)
    of.applied(1, slice(3, 6), together=False)
    assert (of.lead, of.leads(0), of.leads(1)) == (3, 2, 0)
    assert of.missed == {0: 3, 3: 1} and of.faults(3) == []
    assert of.faults(2) == ["lead: expected at most 2 steps, got 3"]
