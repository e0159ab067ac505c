import argparse
import re

import numpy as np
import pytest

from cnnlab.runtime.arguments import at_least, one_of, parse_positive, parse_whole, positive


def refused(check, *arguments):
    with pytest.raises(ValueError) as caught:
        check(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("value", [2, 3, np.int32(2)])
def test_whole_numbers_from_the_least_pass(value):
    at_least("n", value, 2)


@pytest.mark.parametrize("value", [1, -1, 2.0, np.float32(3), True, "3", None])
def test_other_values_are_no_whole_numbers(value):
    message = refused(at_least, "n", value, 2)
    assert message == f"n: expected a whole number of at least 2, got {value!r}"


def test_true_is_no_number():
    assert refused(at_least, "n", True, 0) == ("n: expected a whole number of at least 0, got True")


@pytest.mark.parametrize("value", [1, 0.1, np.float32(2), 1e300])
def test_positive_numbers_pass(value):
    positive("rate", value)


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), "1", None, 1j])
def test_other_values_are_not_positive(value):
    assert refused(positive, "rate", value) == f"rate: expected a positive number, got {value!r}"


def test_an_unknown_name_is_refused_with_the_known_ones():
    one_of("kind", "max", {"max": 1, "average": 2})
    assert refused(one_of, "kind", "min", {"max": 1, "average": 2}) == (
        "kind: expected one of max, average, got 'min'"
    )
    assert re.search("got None$", refused(one_of, "kind", None, ["max"]))


@pytest.mark.parametrize(
    "parse, text, expected",
    [
        (parse_whole, "0", "a whole number of at least 1, got 0"),
        (parse_whole, "1.5", "a whole number of at least 1, got '1.5'"),
        (parse_positive, "-1", "a positive number, got -1.0"),
        (parse_positive, "nan", "a positive number, got nan"),
        (parse_positive, "fast", "a positive number, got 'fast'"),
    ],
)
def test_an_options_text_is_a_number_or_argparses_error(parse, text, expected):
    assert parse("12") == 12
    with pytest.raises(argparse.ArgumentTypeError, match=f"^expected {re.escape(expected)}$"):
        parse(text)
