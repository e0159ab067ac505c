import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.step import Layerwise
from tests.cuda.examples import NET, N, digits, trained


@pytest.mark.parametrize("fused, launches", [(False, 19), (True, 13)])
@pytest.mark.parametrize("replayed", [False, True])
def test_steps_are_those_of_the_reference(fused, launches, replayed):
    step = Layerwise(NET.parameters(seed=1), *digits(), batch=3, rate=0.5, fused=fused)
    assert step.n_launches == launches and step.steps_an_epoch == 3
    order = np.random.default_rng(2).permutation(N)
    step.start(order)
    run = step.graph() if replayed else step
    for _ in range(3):
        run()
    flat, loss = trained(order, 3, 0.5, 3)
    assert np.allclose(step.parameters().flat, flat, rtol=0, atol=2e-6)
    assert step.loss() == pytest.approx(loss, rel=1e-5)
    step.start(range(N))  # a new epoch begins at the first image of its order
    run()
    assert step.loss() != pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_has_no_faults_and_its_stages_no_conflicts(fused):
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
    assert len(traces) == step.n_launches
    assert [fault for trace in traces for fault in trace.faults()] == []
    for stage in step.stages:
        for call in stage:
            for written in (value for value, const in calls[call] if not const):
                others = [value for c in stage if c is not call for value, _ in calls[c]]
                assert not any(np.shares_memory(written, other) for other in others)
