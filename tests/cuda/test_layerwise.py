import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.step import Layerwise
from tests.cuda.examples import NET, digits


@pytest.mark.parametrize("fused, launches", [(False, 19), (True, 13)])
def test_a_step_has_no_faults_and_its_stages_no_conflicts(fused, launches):
    """A launch may not touch what another launch of its stage writes."""
    calls, prepare = {}, cuda.Kernels.prepare

    def noted(self, name, grid, block, *arguments, shared=0):
        call = prepare(self, name, grid, block, *arguments, shared=shared)
        calls[call] = [
            (value, parameter.const)
            for value, parameter in zip(arguments, self.parameters[name], strict=True)
            if parameter.array
        ]
        return call

    with pytest.MonkeyPatch.context() as patch, cuda.traced() as traces:
        patch.setattr(cuda.Kernels, "prepare", noted)
        step = Layerwise(NET.parameters(seed=1), *digits(), batch=2, fused=fused)
        step()
    assert len(traces) == launches
    assert [fault for trace in traces for fault in trace.faults()] == []
    for stage in step.stages:
        for call in stage:
            for written in (value for value, const in calls[call] if not const):
                others = [value for c in stage if c is not call for value, _ in calls[c]]
                assert not any(np.shares_memory(written, other) for other in others)
