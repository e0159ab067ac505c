import matplotlib.pyplot as plt
import numpy as np

from cnnlab.lessons import lesson_50
from cnnlab.measure.timing import Timing


def test_the_matrix_of_im2col_is_drawn_with_its_sizes():
    image, matrix = lesson_50.unfolded(np.arange(20).reshape(4, 5), 2)
    assert image.get_title() == "the image: 20 pixels"
    assert matrix.get_title() == "its matrix: 48 numbers"
    first = [text.get_text() for text in matrix.texts[::12]]
    assert first == ["0", "1", "5", "6"]  # the first window, as a column
    plt.close("all")


def test_errors_are_drawn_over_tiles():
    ax = lesson_50.errors({3: {2: 1.5, 4: 20.0}, 5: {2: 9.0, 4: 21.0}})
    assert [list(line.get_ydata()) for line in ax.lines[:2]] == [[1.5, 20], [9, 21]]
    assert "20" in [text.get_text() for text in ax.texts]
    plt.close("all")


def test_each_cell_names_its_winner_and_pale_ones_are_unsure():
    def timings(**seconds):
        return {name: Timing(name, tuple(s)) for name, s in seconds.items()}

    sure = timings(vector=(2, 2, 2), FFT=(1, 1, 1))
    unsure = timings(vector=(2, 2, 2), FFT=(1, 1, 3))
    own = timings(vector=(1, 1, 1), FFT=(2, 2, 2))
    axes = {"p": ({"H": (8, 9)}, {"N": (1, 2)})}
    panel = {(8, 1): sure, (8, 2): unsure, (9, 1): own, (9, 2): own}
    ax = lesson_50.winners({"p": panel}, axes)[0]
    assert [text.get_text() for text in ax.texts] == ["FFT\n2.00×"] * 2 + ["vector"] * 2
    assert [patch.get_alpha() for patch in ax.patches] == [0.8, 0.3, 0.8, 0.8]
    assert ax.get_xlabel() == "N, batch" and ax.get_ylabel() == "H, image"
    plt.close("all")
