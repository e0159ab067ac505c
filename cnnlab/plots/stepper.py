"""A small animation to step through with the arrow keys, self-contained in one HTML output.

Without scripts (a sanitised notebook, a printed page) all frames are there side by side; a script
turns the same images into one at a time with a slider. Nothing is loaded, and no id is used, so any
number of steppers may be on a page.
"""

import base64
import io
from collections.abc import Callable, Sequence
from html import escape

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image  # which Matplotlib brings

from cnnlab.plots.style import description, style

MAX_BYTES = 100_000
SIZE, COLORS = (4.4, 2.8), 24  # inches of a drawing function's figure; so few make images small
DPI, CSS_DPI = 125, 100  # dots per inch of an image, and CSS pixels per inch on the page
SMALL = 300  # CSS pixels: the width of a frame among all the others
SCRIPT = """\
for (const root of document.querySelectorAll('.cnnlab-stepper:not([data-ready])')) {
  root.dataset.ready = '';
  const make = (tag, more) => Object.assign(document.createElement(tag), more);
  const [bar, box] = [make('div'), root.querySelector('.cnnlab-frames')];
  const frames = [...box.children], last = frames.length - 1, wide = root.dataset.width;
  const texts = frames.map(frame => frame.lastElementChild.textContent);
  const look = 'font:inherit;color:inherit;background:none;border:1px solid;border-radius:4px;'
    + 'min-width:2.2em;min-height:2.2em;cursor:pointer';
  const slider = make('input', {type: 'range', min: 0, max: last, value: 0});
  const said = make('output', {style: 'display:block;min-height:3em;margin:.3em 0'});
  const show = i => {
    slider.value = i = Math.max(0, Math.min(last, i));
    frames.forEach((frame, k) => {
      frame.style.display = k === i ? 'block' : 'none';
      frame.style.width = wide;
      frame.lastElementChild.style.display = 'none';
    });
    slider.setAttribute('aria-valuetext', said.textContent = texts[i]);
  };
  const button = (text, label, step) => {
    const made = make('button', {type: 'button', textContent: text, style: look});
    made.setAttribute('aria-label', label);
    made.addEventListener('click', () => show(+slider.value + step));
    return made;
  };
  slider.style.cssText = 'flex:1;min-width:0;accent-color:#0072b2';
  slider.setAttribute('aria-label', 'Frame: ' + root.getAttribute('aria-label'));
  slider.addEventListener('input', () => show(+slider.value));
  bar.style.cssText = 'display:flex;gap:.5em;align-items:center;max-width:' + wide;
  bar.append(button('\u2190', 'Previous frame', -1), slider, button('\u2192', 'Next frame', 1));
  box.before(bar, said);
  Object.assign(box, {tabIndex: 0, role: 'group', ariaLabel: 'Frames: the arrow keys step'});
  box.style.maxWidth = wide;
  root.addEventListener('keydown', event => {
    const at = {ArrowLeft: +slider.value - 1, ArrowRight: +slider.value + 1, Home: 0, End: last};
    if (!(event.key in at) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    show(at[event.key]);
  });
  show(0);
}
"""


class Stepper:
    """The frames as HTML, which a notebook shows and stores; `len` is the number of frames."""

    def __init__(self, title: str, n_frames: int, html: str):
        self.title, self.n_frames, self.html = title, n_frames, html

    def __len__(self) -> int:
        return self.n_frames

    def __repr__(self) -> str:
        return f"{self.title}: {self.n_frames} frames"

    def _repr_html_(self) -> str:
        return self.html


def stepper(
    frames: Sequence[Figure | Callable[[Axes], object]], *, title: str, captions: Sequence[str]
) -> Stepper:
    """An animation of figures of one size, or of functions that each draw on the axes given.

    Each frame has a caption, one sentence that says what happens in it. The bytes depend on nothing
    but the arguments. Raises ValueError for no frame, a caption missing or too many, an empty
    title, or more than MAX_BYTES bytes.
    """
    frames, captions = list(frames), [str(caption).strip() for caption in captions]
    if not frames:
        raise ValueError("frames: expected at least one, got none")
    if not str(title).strip():
        raise ValueError(f"title: expected some words, got {title!r}")
    if len(captions) != len(frames) or not all(captions):
        got = f"{len(captions)}, {captions.count('')} of them empty"
        raise ValueError(f"captions: expected one for each of {len(frames)} frames, got {got}")
    pages = [frame if isinstance(frame, Figure) else drawn(frame) for frame in frames]
    width, n = max(round(CSS_DPI * page.get_figwidth()) for page in pages), len(pages)
    parts = []
    for k, (page, caption) in enumerate(zip(pages, captions, strict=True), start=1):
        text = escape(f"{k} of {n}. {caption}")
        alt = escape(f"Frame {k} of {n}. {description(page, caption)}")
        parts.append(
            f'<div style="display:inline-block;width:{min(SMALL, width)}px;max-width:100%;'
            f'margin:0 8px 8px 0;vertical-align:top">'
            f'<img src="data:image/png;base64,{image(page)}" alt="{alt}" '
            f'style="width:100%;height:auto;background:#fff;border-radius:4px">'
            f'<div style="font-size:0.9em">{text}</div></div>'
        )
    label = escape(" ".join(str(title).split()))
    html = (
        f'<div class="cnnlab-stepper" role="group" aria-label="{label}" data-width="{width}px" '
        f'data-lm-suppress-shortcuts="true" style="max-width:100%;margin:0.5em 0">\n'
        f'<div style="font-weight:bold;margin-bottom:0.3em">{label}</div>\n'
        f'<div class="cnnlab-frames">\n{chr(10).join(parts)}\n</div>\n'
        f"<script>\n{SCRIPT}</script>\n</div>"
    )
    if (n_bytes := len(html.encode())) > MAX_BYTES:
        raise ValueError(f"frames: expected at most {MAX_BYTES:,} bytes in all, got {n_bytes:,}")
    return Stepper(str(title), n, html)


def frame(size: tuple[float, float] = SIZE, *shape: int, **look):
    """The Axes of a fresh figure in the style of the course, as `Figure.subplots` makes them."""
    with style():
        return Figure(size).subplots(*shape, **look)


def drawn(draw: Callable[[Axes], object]) -> Figure:
    """A figure of SIZE with what a function draws."""
    ax = frame()
    with style():
        draw(ax)
    return ax.figure


def image(page: Figure) -> str:
    """A figure as a PNG of few colours, in base64; nothing but its pixels is stored."""
    plt.close(page)  # a notebook shows it once, here
    file, small = io.BytesIO(), io.BytesIO()
    with style():
        page.savefig(file, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    picture = Image.open(file).convert("RGB")
    picture = picture.quantize(COLORS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    picture.save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()
