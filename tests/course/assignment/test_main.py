"""The command: where the folders are, and what is wrong with arguments, in a line."""

import pytest

from cnnlab.course.assignment import __main__ as command
from cnnlab.course.assignment import folders


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "LESSONS: expected numbers of 00, 00b, 01, "),
        (["05", "99"], "got '99'"),
        (["05", "--due", "soon"], "DUE: expected a date such as 2030-01-31, got 'soon'"),
        (["05", "--seed", "x"], "invalid int value: 'x'"),
        (["05", "--title", "!"], "TITLE: expected letters or digits, got '!'"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    error = capsys.readouterr().err
    assert ended.value.code == 2 and said in error.splitlines()[-1]


def test_the_command_tells_both_folders(monkeypatch, tmp_path, capsys):
    def write(made, root, folder, seed):
        assert (made.name, made.due, seed) == ("lessons-00-05", "2030-01-31", 7)
        assert root == command.ROOT and folder == command.ROOT / "build" / "assignment"
        return tmp_path

    monkeypatch.setattr(folders, "write", write)
    assert command.main(["05", "00", "--due", "2030-01-31", "--seed", "7"]) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path / 'students'}: to hand out" in said
    assert f"{tmp_path / 'instructor'}: for you alone" in said
