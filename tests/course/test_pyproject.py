import json

import pytest

from cnnlab.course import pyproject
from tests.course.toy_lesson import GITHUB


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("", None),
        ('Homepage = "https://elsewhere.org/a"', None),
        (f'Repository = "{GITHUB}"', GITHUB),
        (f'Repository = "{GITHUB}.git"', GITHUB),
        (f'Repository = "{GITHUB}/"', GITHUB),
    ],
)
def test_the_address_comes_from_pyproject(tmp_path, line, address):
    file = tmp_path / "pyproject.toml"
    file.write_text(f'[project]\nname = "x"\n[project.urls]\n{line}\n')
    assert pyproject.repository(file) == address


@pytest.mark.parametrize("address", ["github.com/a/b", "https://host", 'https://a/b" --pre "'])
def test_an_impossible_address_is_refused(tmp_path, address):
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[project]\n[project.urls]\nRepository = {json.dumps(address)}\n")
    with pytest.raises(ValueError, match=r"\[project.urls\] Repository: expected https"):
        pyproject.repository(file)


def test_every_lower_bound_is_a_version(tmp_path):
    file = tmp_path / "pyproject.toml"
    file.write_text(
        '[project]\ndependencies = ["a>=1.2", "b"]\n'
        '[project.optional-dependencies]\nx = ["c>=3,<4"]\n'
    )
    assert pyproject.lowest(file) == ["a==1.2", "c==3"]
