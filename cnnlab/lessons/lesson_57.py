"""The exercises of lesson 57."""

import numpy as np

from cnnlab.check.exercises import kinds

N, K, STEPS, MOMENTUM = 12, 3, 8, 0.9


def kept(gradients, *, add=True, zero=True, by=abs):
    """What top-k with error feedback sends, step by step, and what is owed then; or a wrong one."""
    owed, sent = np.zeros(N), []
    for gradient in gradients:
        owed = owed + gradient if add else gradient.copy()
        places = np.sort(np.argsort(-by(owed), kind="stable")[:K])
        sent.append((places, owed[places]))
        if zero:
            owed[places] = 0
    return sent, owed


KEPT_MISTAKES = {
    "what is sent stays in the residual, and is sent again": {"zero": False},
    "what was owed is forgotten": {"add": False},
    "the largest are chosen with their sign: −5 is large, too": {"by": np.asarray},
}


def corrected(gradients, *, velocity_goes=True, residual_goes=True, of="velocity"):
    """What Deep Gradient Compression sends, step by step, and what is owed; or a wrong one."""
    velocity, owed, sent = np.zeros(N), np.zeros(N), []
    for gradient in gradients:
        velocity = MOMENTUM * velocity + gradient
        owed = owed + (velocity if of == "velocity" else gradient)
        places = np.sort(np.argsort(-abs(owed), kind="stable")[:K])
        sent.append((places, owed[places]))
        if residual_goes:
            owed[places] = 0
        if velocity_goes:
            velocity[places] = 0
    return sent, owed


CORRECTED_MISTAKES = {
    "the velocity goes on where it has been sent": {"velocity_goes": False},
    "what is sent stays in the residual, and is sent again": {"residual_goes": False},
    "gradients are owed and no velocities: nothing goes on from step to step": {"of": "gradient"},
    "both stay as they are where they were sent": {
        "velocity_goes": False, "residual_goes": False,
    },
}  # fmt: skip


def drawn(rule, mistakes) -> np.ndarray:
    """Gradients (STEPS, N) that lean to one side, so that velocities grow; all mistakes show."""
    rng = np.random.default_rng()
    while True:
        gradients = rng.normal(size=N) + 0.5 * rng.normal(size=(STEPS, N))
        right = rule(gradients)[0]
        if not any(alike(rule(gradients, **how)[0], right) for how in mistakes.values()):
            return gradients


def compared(step, rule, mistakes) -> str:
    """What is wrong with the steps of an answer; nothing if they are right."""
    gradients = drawn(rule, mistakes)
    got, expected = [], rule(gradients)[0]
    for gradient in gradients:
        given = gradient.copy()
        found = step(given)
        if not np.array_equal(given, gradient):
            return "the gradient is changed, and should be left as it is"
        if not isinstance(found, tuple) or len(found) != 2:
            return f"expected places and values, got {type(found).__name__}"
        order = np.argsort(found[0])
        got.append((np.asarray(found[0])[order], np.asarray(found[1])[order]))
    if alike(got, expected):
        return ""
    for words, how in mistakes.items():
        if alike(got, rule(gradients, **how)[0]):
            return words
    first = next(k for k in range(STEPS) if not alike(got[k : k + 1], expected[k : k + 1]))
    places, values = expected[first]
    return (
        f"step {first}: expected places {places.tolist()} with {values.round(3).tolist()}, "
        f"got {got[first][0].tolist()} with {got[first][1].round(3).tolist()}"
    )


def alike(got, expected) -> bool:
    """Whether the same numbers are sent from the same places."""
    return all(
        a.shape == c.shape and np.array_equal(a, c) and np.allclose(b, d)
        for (a, b), (c, d) in zip(got, expected, strict=True)
    )


def as_kept(answer) -> str:
    """What is wrong with top-k with error feedback; nothing if it is right."""
    residual = np.zeros(N)
    return compared(lambda g: answer(residual, g, K), kept, KEPT_MISTAKES)


def as_corrected(answer) -> str:
    """What is wrong with momentum correction; nothing if it is right."""
    velocity, residual = np.zeros((2, N))
    return compared(
        lambda g: answer(velocity, residual, g, K, MOMENTUM), corrected, CORRECTED_MISTAKES
    )


def as_merge(answer) -> str:
    """What is wrong with a sum of two streams; nothing if it is right."""
    rng = np.random.default_rng()
    for trial in range(20):
        streams, total = [], np.zeros(N)
        fewest = 0 if trial else N // 2 + 1  # the first two have some place in common
        for _ in range(2):
            places = np.sort(rng.choice(N, rng.integers(fewest, N), replace=False))
            values = rng.normal(size=places.size)
            total[places] += values
            streams += [places, values]
        places, values = answer(*(part.copy() for part in streams))
        expected = np.union1d(streams[0], streams[2])
        if len(places) != len(set(np.asarray(places).tolist())):
            return "a place is there twice: add up what both streams have for it"
        if np.any(np.diff(places) < 0):
            return "places are not in order"
        if not np.array_equal(places, expected):
            return f"expected places {expected.tolist()}, got {np.asarray(places).tolist()}"
        if not np.allclose(values, total[expected]):
            return "the places are right, their values are not: is what both have added up?"
    return ""


@kinds.number(
    "A place is free if no rank has taken it: 0.99 to the power of the ranks.",
    "The smallest whole number P with 0.99^P below one half.",
)
def ranks_to_half():
    """ln 2 is 0.69, and 1 % is small: about 0.69 / 0.01 ranks."""
    return 69


@kinds.formula(
    lambda rng: {
        "n": int(rng.integers(100, 100_000)),
        "place_bytes": int(rng.integers(1, 9)),
        "value_bytes": int(rng.integers(1, 9)),
    },
    "A stream of k numbers takes k (place_bytes + value_bytes), the array n value_bytes.",
    "As long is not longer: round down.",
)
def switch(n, place_bytes, value_bytes):
    """Half of n where both take 4 bytes; with short places and long values nearly all of it."""
    return n * value_bytes // (place_bytes + value_bytes)


@kinds.tested(
    as_kept,
    "residual += gradient, in place; then choose from the residual, by absolute value.",
    "Copy the values before you set residual[places] to zero.",
    tells=True,
)
def feedback(residual, gradient, k):
    """residual[places] with a list of places is a copy, so zeroing it afterwards is safe."""
    import numpy as np

    residual += gradient
    places = np.argsort(-abs(residual), kind="stable")[:k]
    values = residual[places]
    residual[places] = 0
    return places, values


@kinds.tested(
    as_merge,
    "Walk along both: take the smaller place; where they are equal, one place and the sum.",
    "Or let NumPy do it: np.union1d, and np.add.at or np.searchsorted.",
)
def merged(a_places, a, b_places, b):
    """The walk of the lesson's `merge` is faster: both are in order already."""
    import numpy as np

    places = np.union1d(a_places, b_places).astype(int)
    values = np.zeros(places.size)
    values[np.searchsorted(places, a_places)] += a
    values[np.searchsorted(places, b_places)] += b
    return places, values


@kinds.tested(
    as_corrected,
    "velocity = momentum · velocity + gradient, and the residual gains the velocity.",
    "What is sent is zeroed in both arrays, and nothing else is.",
    tells=True,
)
def correction(velocity, residual, gradient, k, momentum):
    """Both are zeroed where sent, or the same push would arrive twice."""
    import numpy as np

    velocity *= momentum
    velocity += gradient
    residual += velocity
    places = np.argsort(-abs(residual), kind="stable")[:k]
    values = residual[places]
    velocity[places] = residual[places] = 0
    return places, values
