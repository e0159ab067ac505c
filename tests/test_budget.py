"""The house stays small: lines of code by room, beside their budgets."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, TESTS, NOTEBOOKS = ROOT / "cnnlab", ROOT / "tests", ROOT / "notebooks"

LIBRARY, LESSON, COURSE, SHARE, FILES = 21_000, 250, 1_500, 0.75, 130
ON_AVERAGE = 240  # lines of a lesson's file: may only shrink
# Files of lessons that are not yet written again, and may be no longer than now.
LONG = {"50": 435, "51": 395}


def lines(folder, without=()) -> int:
    """The lines of Python, CUDA C and C++ below a folder, some of its folders left out."""
    files = (file for file in folder.rglob("*.*") if file.suffix in (".py", ".cu", ".h"))
    inside = (file for file in files if file.relative_to(folder).parts[0] not in without)
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in inside)


def rooms() -> dict[str, tuple[int, float]]:
    """Lines and budget by room; the rooms of the library share one."""
    lessons = len(list(NOTEBOOKS.glob("*.ipynb")))
    library = lines(PACKAGE, without=("lessons", "course"))
    return {
        "the library": (library, LIBRARY),
        "cnnlab/lessons": (lines(PACKAGE / "lessons"), ON_AVERAGE * lessons),
        "cnnlab/course": (lines(PACKAGE / "course"), COURSE),
        "tests": (lines(TESTS), SHARE * lines(PACKAGE)),
    }


def table() -> str:
    """Rooms, their lines and budgets, as text."""
    rows = [f"{name:18} {n:7,} of {budget:9,.0f}" for name, (n, budget) in rooms().items()]
    parts = {folder.name: lines(folder) for folder in PACKAGE.iterdir() if folder.is_dir()}
    rows += [f"  {name:16} {n:7,}" for name, n in sorted(parts.items()) if n]
    return "\n".join(rows)


def test_every_room_keeps_to_its_budget():
    assert not {name: (n, budget) for name, (n, budget) in rooms().items() if n > budget}, table()


def test_the_library_has_few_files():
    files = [file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py")]
    assert len([file for file in files if file.parts[0] not in ("lessons", "course")]) <= FILES


def test_no_lesson_needs_more_than_a_few_functions():
    lengths = {
        file.stem.removeprefix("lesson_"): len(file.read_text(encoding="utf-8").splitlines())
        for file in (PACKAGE / "lessons").glob("lesson_*.py")
    }
    assert not {name: n for name, n in lengths.items() if n > max(LESSON, LONG.get(name, 0))}
    assert not {name for name in LONG if lengths[name] <= LESSON}, "take these off the list"


if __name__ == "__main__":
    print(table())
