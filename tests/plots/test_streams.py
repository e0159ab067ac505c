from cnnlab.lessons import lesson_57


def test_lines_predict_and_dots_count():
    ax = lesson_57.filling([0.01], [1, 64, 128], {"counted": [0.01, 0.4, 0.6]}, title="It fills")
    predicted, counted, half = ax.lines
    assert [round(y, 2) for y in predicted.get_ydata()] == [0.01, 0.47, 0.72]
    assert list(counted.get_ydata()) == [0.01, 0.4, 0.6] and counted.get_linestyle() == "None"
    assert list(half.get_ydata()) == [0.5, 0.5]


def test_bytes_lie_left_and_seconds_right():
    result = {"a": {2: (100, 1e-3), 4: (200, 2e-3)}, "b": {2: (10, 1e-4), 4: (20, 3e-4)}}
    left, right = lesson_57.by_ranks(result).figure.axes
    assert [list(line.get_ydata()) for line in left.lines] == [[100, 200], [10, 20]]
    assert [list(line.get_ydata()) for line in right.lines] == [[1e-3, 2e-3], [1e-4, 3e-4]]
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["a", "b"]


def test_dots_are_seeds_and_lines_their_means():
    result = {"a": {0.1: [0.8, 0.9], 0.01: [0.5]}}
    ax = lesson_57.streams_by_density(result, {"all": [0.9, 0.94]})
    dots, one, means, whole = (list(line.get_ydata()) for line in ax.lines)
    assert (dots, one) == ([0.8, 0.9], [0.5])
    assert [round(y, 3) for y in means] == [0.85, 0.5] and round(whole[0], 3) == 0.92
    assert ax.get_xlim()[0] > ax.get_xlim()[1]  # ever fewer to the right
