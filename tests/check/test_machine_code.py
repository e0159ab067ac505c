import numba
import numpy as np
import pytest

from cnnlab.check import machine_code
from cnnlab.kernels.registers import block, load, store


def test_vector_instructions_are_wanted_of_a_right_numba_kernel_only():
    @numba.njit(fastmath=True, error_model="numpy")
    def fast(y, dy, dz):
        y, dy, dz = y.reshape(y.size), dy.reshape(dy.size), dz.reshape(dz.size)
        for m in range(y.size):
            dz[m] = dy[m] * y[m] * (np.float32(1) - y[m])

    @numba.njit
    def slow(y, dy, dz):
        for i in np.ndindex(y.shape):
            dz[i] = np.float64(dy[i]) * y[i] * (1.0 - np.float64(y[i]))

    def plain(y, dy, dz):
        dz[:] = dy * y * (1 - y)

    for answer, word in (
        (fast, "vector instructions"),
        (slow, "no vector instructions"),
        (plain, "decorate it with @numba.njit"),
        (lambda y, dy, dz: None, "never written"),
    ):
        verdict = machine_code.kernel("sigmoid_backward", answer)
        assert verdict.passed is (answer is fast) and word in verdict.text


def test_a_kernel_that_is_not_compiled_has_no_machine_code():
    with pytest.raises(ValueError, match="is not compiled yet"):
        machine_code.vector_instructions(numba.njit(lambda x: x))


LOOPS = {
    "x86": """
.LBB0_1:
	vmovups	%ymm0, 32(%rsp)
	jne	.LBB0_1
.LBB0_2:
	vmovups	(%rdi), %ymm1
	je	.LBB0_9
	vmovaps	%ymm1, -64(%rsp)
	vfmadd231ps	%ymm1, %ymm2, %ymm3
	movq	-64(%rsp), %rdi
	jne	.LBB0_2
	vmovups	%ymm3, 96(%rsp)
""",
    "ARM": """
.LBB0_2:
	ldp	q1, q2, [x1]
	fmla	v3.4s, v1.4s, v2.4s
	str	q3, [sp, #16]
	ldr	x3, [sp, #8]
	cbnz	x0, .LBB0_2
	str	q3, [sp, #32]
""",
    "Apple": """
LBB0_2:
	ldr	q1, [x1]
	fmla.4s	v3, v1, v2
	stp	q3, q4, [sp, #16]
	b.ne	LBB0_2
	str	q3, [sp, #32]
""",
}


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
def test_vectors_on_the_stack_count_in_the_hot_loop_only(code):
    hot = machine_code.hot_loop(code)
    assert len(machine_code.ARITHMETIC.findall(hot)) == 1
    assert len(machine_code.SPILL.findall(hot)) == 1


def test_code_without_a_loop_has_no_hot_one():
    assert machine_code.hot_loop("\tret\n") == ""


def test_sums_that_do_not_fit_are_spilled():
    def keeping(n):
        @numba.njit(error_model="numpy")
        def sums(x, out):
            s = block(np.float32(0), n)
            for m in range(len(x)):
                s += x[m, 0] * load(x[m], 0, s)
            store(out, 0, s)

        sums.compile("(float32[:,::1], float32[::1])")
        return sums

    assert machine_code.spills(keeping(8)) == 0 < machine_code.spills(keeping(40))


def test_an_address_that_is_only_computed_is_no_access():
    lines = "\tleaq\t(%rax,%rbx), %rcx", "\t\tleaq\t8(%rax), %rcx", "\tmovss\t(%rax), %xmm0"
    assert [bool(machine_code.MEMORY.search(line)) for line in lines] == [False, False, True]


def test_what_a_loop_became_and_what_it_loads_and_stores():
    def scale(a, out):
        for m in range(a.size):
            out[m] = np.float32(3) * a[m]

    def chain(a, out):
        for m in range(1, a.size):
            out[m] = np.float32(3) * out[m - 1]

    def call(a, out):
        for m in range(a.size):
            out[m] = np.float32(3) * np.sin(a[m])

    a, said = np.ones(99, np.float32), {}
    for function in (scale, chain, call):
        kernel = numba.njit(function)
        kernel(a, np.ones_like(a))
        said[function.__name__] = machine_code.compiled(kernel)
        if function is scale:
            memory, instructions = machine_code.per_term(kernel)
            assert 1 <= memory <= 2 <= instructions  # a load and a store of one vector or of two
            assert list(machine_code.bodies(kernel)) == list(machine_code.loops(kernel))
    assert said["scale"] == "vectors" and said["chain"] == "one by one"
    assert said["call"] == "one by one" or numba.config.USING_SVML
