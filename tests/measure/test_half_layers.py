from cnnlab.lessons import lesson_52
from cnnlab.network import EIGHT, Conv


def test_whole_and_half_layers_are_timed_in_turn():
    result = lesson_52.half_layers(EIGHT, 2, repeats=3)
    assert tuple(result) == lesson_52.HALVES
    assert all(timing.n == 3 and timing.median > 0 for timing in result.values())


def test_half_of_a_layer_is_half_of_its_outputs(monkeypatch):
    shapes = []

    class Noting:
        def kernel(self, name):
            return lambda *arrays: shapes.append((name, *(array.shape for array in arrays)))

    monkeypatch.setattr(lesson_52, "find", lambda name: Noting())
    place = next(place for place in EIGHT.places if isinstance(place.layer, Conv))
    (c, _, w), (f, rows, columns), k = place.input_shape, place.shape, place.layer.kernel
    for half, filters, some in zip(
        lesson_52.HALVES, (f, f // 2, f), (rows, rows, rows // 2), strict=True
    ):
        shapes.clear()
        lesson_52.passes(place, 2, half)()
        x, weights, y = (2, c, some + k - 1, w), (filters, c, k, k), (2, filters, some, columns)
        assert shapes == [
            ("conv_forward", x, weights, (filters,), y),
            ("conv_backward_input", y, weights, x),
            ("conv_backward_weights", x, y, weights),
        ]
