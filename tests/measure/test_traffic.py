from cnnlab import cuda
from cnnlab.plots import challenge

SOURCE = """
extern "C" __global__ void sb(const float* y, const float* dy, float* dz, int size)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) dz[i] = dy[i] * y[i] * (1.0f - y[i]);
}
"""


def launching(source):
    kernels = cuda.Kernels(source)
    return lambda y, dy, dz: kernels.over("sb", y.size, y, dy, dz, y.size)


def test_bytes_are_counted_beside_the_rungs_and_the_least(capsys):
    y = launching(SOURCE)
    twice = launching(
        SOURCE.replace("if (i < size) dz", "if (i < size) dz[i] += 1; if (i < size) dz")
    )
    moved, least = challenge.count("sigmoid_backward", {"twice": twice, "mine": y})
    assert least == 3 * 4 * 6 * 24 * 24
    assert moved == {"twice": least * 5 // 3, "mine": least}
    said = "Your sigmoid_backward moves 1 times the least bytes, twice 1.67."
    ax = challenge.challenge_traffic("sigmoid_backward", y, {"twice": twice})
    assert ax.figure.get_suptitle() == "Your sigmoid_backward moves 1 times the least bytes"
    kilobytes = "69 kB, 1.67 times that", "41 kB, 1 times that"
    assert [text.get_text() for text in ax.texts] == ["any kernel must", *kilobytes]
    assert ax.lines[0].get_xdata()[0] == least / 1e3
    out = capsys.readouterr().out
    assert "no access is at fault" in out and out.endswith(f"{said}\n")


def test_nothing_is_counted_for_a_kernel_at_fault(capsys):
    unguarded = launching(SOURCE.replace("if (i < size) ", ""))
    assert challenge.challenge_traffic("sigmoid_backward", unguarded) is None
    assert "out of bounds" in capsys.readouterr().out


def test_an_open_challenge_is_no_wrong_answer(capsys):
    def mine(y, dy, dz): ...

    assert challenge.challenge_traffic("sigmoid_backward", mine) is None
    assert capsys.readouterr().out == "✗ sigmoid_backward: the challenge is still open\n"
