"""The wheel for students: the package with the exercises' checks and hints, without answers."""

import shutil
import tempfile
from pathlib import Path

from cnnlab.course import handout
from cnnlab.course.assignment.stripped import without_answers
from cnnlab.runtime.files import replacing

EXERCISES = Path("cnnlab", "lessons")


def write_wheel(root: Path, folder: Path) -> Path:
    """Build the wheel of the checkout `root` without answers; return its path in `folder`.

    The same checkout gives the same bytes. Raises RuntimeError if it cannot be built.
    """
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, "copy")
        ours = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / "cnnlab", copy / "cnnlab", ignore=ours)
        shutil.copytree(root / "data" / "measurements", copy / "data" / "measurements")
        for name in handout.BUILT_FROM:
            shutil.copy(root / name, copy)
        for file in sorted((copy / EXERCISES).glob("lesson_*.py")):
            file.write_text(without_answers(root / EXERCISES / file.name), encoding="utf-8")
        built = handout.build_wheel(copy, Path(temporary))
        with replacing(folder / built.name) as file:
            file.write(built.read_bytes())
    return folder / built.name
