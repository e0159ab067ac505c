import base64
import io

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from cnnlab.course.images import lighten, without_loss


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", compress_level=1)
    return file.getvalue()


def picture(alpha):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 60, 4), np.uint8)
    pixels[..., 3] = alpha
    return pixels


@pytest.mark.parametrize("alpha, mode", [(255, "RGB"), (254, "RGBA")])
def test_an_image_keeps_its_pixels_and_loses_bytes(alpha, mode):
    heavy = png(picture(alpha))
    light = without_loss(heavy)
    image = Image.open(io.BytesIO(light))
    assert len(light) < len(heavy) and image.mode == mode
    assert (np.asarray(image.convert("RGBA")) == picture(alpha)).all()
    assert without_loss(light) == light


def test_a_notebook_has_light_images_and_nothing_else_changes():
    heavy = base64.b64encode(png(picture(255))).decode()
    data = {"image/png": heavy, "text/plain": "a figure"}
    shown = new_output("display_data", data, metadata={"image/png": {"alt": "Noise"}})
    said = new_output("stream", name="stdout", text="hello")
    nb = new_notebook(cells=[new_markdown_cell("x"), new_code_cell("y", outputs=[said, shown])])
    lighten(nb)
    one, other = nb.cells[1].outputs
    assert one == said and other.metadata == shown.metadata
    assert other.data["text/plain"] == "a figure"
    assert len(other.data["image/png"]) < len(heavy)
