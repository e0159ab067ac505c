import numpy as np
import pytest

from cnnlab import cuda
from cnnlab.cuda.step import Step
from cnnlab.kernels import KERNELS
from cnnlab.kernels.composition import loss_and_gradients
from cnnlab.network import report_network

NET = report_network(height=14, width=13, filters=3, kernel=3, pool=2, classes=4)
N = 11


def digits(seed=0):
    rng = np.random.default_rng(seed)
    images = rng.uniform(0, 1, (N, *NET.image_shape)).astype(np.float32)
    return images, rng.integers(0, NET.classes, N)


def trained(order, batch, rate, steps):
    """The same steps, by the reference."""
    images, labels = digits()
    params = NET.parameters(seed=1, dtype=np.float64)
    grads = params.copy()
    for i in range(steps):
        chosen = order[i * batch : (i + 1) * batch]
        x = images[chosen].astype(np.float64)
        loss = loss_and_gradients(KERNELS["reference"], params, x, labels[chosen], grads)
        params.flat -= rate / batch * grads.flat
    return params.flat, loss / batch


@pytest.mark.parametrize("fused, launches", [(False, 19), (True, 13)])
@pytest.mark.parametrize("replayed", [False, True])
def test_steps_are_those_of_the_reference(fused, launches, replayed):
    step = Step(NET.parameters(seed=1), *digits(), batch=3, rate=0.5, fused=fused)
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
def test_a_saturated_loss_is_the_references_and_that_of_nan_is_nan(fused):
    (images, labels), params = digits(), NET.parameters(seed=1)
    params.flat *= 3000
    exact = NET.parameters(seed=1, dtype=np.float64)
    exact.flat *= 3000
    whole = loss_and_gradients(
        KERNELS["reference"], exact, images.astype(np.float64), labels, NET.zeros(np.float64)
    )
    assert whole > 100  # so there is much that is saturated and wrong
    step = Step(params, images, labels, batch=N, rate=0.5, fused=fused)
    step.start(range(N))
    step()
    assert step.loss() * N == pytest.approx(whole, rel=1e-4)
    images[1, 0, 5, 6] = np.nan
    step = Step(NET.parameters(seed=1), images, labels, batch=N, rate=0.5, fused=fused)
    step.start(range(N))
    step()
    assert np.isnan(step.loss())


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
        step = Step(NET.parameters(seed=1), *digits(), batch=2, fused=fused)
        step()
    assert len(traces) == step.n_launches
    assert [fault for trace in traces for fault in trace.faults()] == []
    for stage in step.stages:
        for call in stage:
            for written in (value for value, const in calls[call] if not const):
                others = [value for c in stage if c is not call for value, _ in calls[c]]
                assert not any(np.shares_memory(written, other) for other in others)


def test_after_the_last_image_comes_the_first():
    step = Step(NET.parameters(seed=1), *digits(), batch=4, rate=0.5)
    order = np.arange(N)[::-1]  # not 0 first, which may also lie beyond the end of an array
    step.start(order)
    for _ in range(4):
        step()
    flat, _ = trained(np.resize(order, 16), 4, 0.5, 4)
    assert np.allclose(step.parameters().flat, flat, rtol=0, atol=2e-6)


def test_the_parameters_given_are_not_changed():
    params = NET.parameters(seed=1)
    before = params.flat.copy()
    step = Step(params, *digits(), batch=2)
    step()
    assert np.array_equal(params.flat, before)
    assert not np.array_equal(step.parameters().flat, before)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="batch: expected 1 to 11 images, got 12"):
        Step(NET.parameters(seed=1), *digits(), batch=12)
    step = Step(NET.parameters(seed=1), *digits(), batch=2)
    with pytest.raises(
        ValueError, match=r"order: expected a permutation of 11 numbers, got \[0 0 0 \.\.\. 0 0 0\]"
    ):
        step.start([0] * N)
