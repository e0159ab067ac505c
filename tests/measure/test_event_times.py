import pytest

from cnnlab.kernels import device
from cnnlab.plots.challenge import event_times
from tests.cuda.stand_in import Array
from tests.cuda.test_cupy_device import stand_in  # noqa: F401

pytestmark = pytest.mark.usefixtures("stand_in")


@pytest.mark.parametrize("operation", ["conv_backward_input", "conv_backward_bias"])
def test_events_time_kernels_whose_arrays_stay_there(operation):
    given = []

    def noted(*arrays):
        given.append(arrays)
        getattr(device, operation)(*arrays)

    timings = event_times(operation, {"one": noted, "other": noted}, batch=2, repeats=3)
    samples = {name: timing.samples for name, timing in timings.items()}
    assert samples == dict.fromkeys(("one", "other"), (0.002,) * 3)
    assert len(given) == (1 + 3) * 2  # each is checked first
    assert all(isinstance(array, Array) for arrays in given for array in arrays)


def test_events_time_nothing_that_is_wrong():
    with pytest.raises(AssertionError):
        event_times("conv_backward_bias", {"nothing": lambda dz, db: None}, batch=2)
