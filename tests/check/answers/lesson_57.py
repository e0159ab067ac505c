"""Answers to the exercises of lesson 57, right and wrong."""

import numpy as np

from cnnlab.lessons.lesson_57 import correction, feedback, merged, ranks_to_half, switch


def largest(values, k, by=abs):
    return np.sort(np.argpartition(-by(values), k)[:k])


def feedback_by(add=True, zero=True, by=abs, copy=True):
    def step(residual, gradient, k):
        if add:
            residual += gradient
        else:
            residual[:] = gradient
        places = largest(residual, k, by)
        values = residual[places]
        if zero:
            residual[places] = 0
        return places, values if copy else residual[places]

    return step


def spoils_the_gradient(residual, gradient, k):
    gradient += residual
    places = largest(gradient, k)
    values = gradient[places].copy()
    residual[:] = gradient
    residual[places] = 0
    return places, values


def correction_by(velocity_goes=True, residual_goes=True, gradients=False, everywhere=False):
    def step(velocity, residual, gradient, k, momentum):
        velocity[:] = momentum * velocity + gradient
        residual += gradient if gradients else velocity
        places = largest(residual, k)
        values = residual[places]
        if residual_goes:
            residual[places] = 0
        if velocity_goes:
            velocity[... if everywhere else places] = 0
        return places, values

    return step


def sends_the_velocity(velocity, residual, gradient, k, momentum):
    velocity[:] = momentum * velocity + gradient
    places = largest(velocity, k)
    values = velocity[places]
    velocity[places] = 0
    return places, values


def walked(a_places, a, b_places, b):
    total = dict(zip(a_places.tolist(), a.tolist(), strict=True))
    for place, value in zip(b_places.tolist(), b.tolist(), strict=True):
        total[place] = total.get(place, 0) + value
    places = np.array(sorted(total), int)
    return places, np.array([total[place] for place in places.tolist()])


def one_after_the_other(a_places, a, b_places, b):
    return np.concatenate([a_places, b_places]), np.concatenate([a, b])


def out_of_order(a_places, a, b_places, b):
    places, values = walked(a_places, a, b_places, b)
    return places[::-1], values[::-1]


def the_second_wins(a_places, a, b_places, b):
    places, _ = walked(a_places, a, b_places, b)
    values = np.zeros(places.size)
    values[np.searchsorted(places, a_places)] = a
    values[np.searchsorted(places, b_places)] = b
    return places, values


def only_what_both_have(a_places, a, b_places, b):
    places = np.intersect1d(a_places, b_places)
    return places, a[np.isin(a_places, places)] + b[np.isin(b_places, places)]


RIGHT = [
    (ranks_to_half, int(np.ceil(np.log(0.5) / np.log(0.99)))),
    (switch, lambda n, place_bytes, value_bytes: int(
        n * value_bytes / (place_bytes + value_bytes) + 1e-9)),
    (feedback, feedback_by()),
    (merged, walked),
    (correction, correction_by()),
]  # fmt: skip
WRONG = [
    (ranks_to_half, 70, "too large"),
    (switch, lambda n, place_bytes, value_bytes: n // 2, "switch("),
    (switch, lambda n, place_bytes, value_bytes: n * place_bytes // (place_bytes + value_bytes),
     "switch("),
    (feedback, feedback_by(zero=False), "sent again"),
    (feedback, feedback_by(add=False), "forgotten"),
    (feedback, feedback_by(by=np.asarray), "with their sign"),
    (feedback, feedback_by(copy=False), "expected places"),
    (feedback, spoils_the_gradient, "gradient is changed"),
    (merged, one_after_the_other, "there twice"),
    (merged, out_of_order, "not in order"),
    (merged, the_second_wins, "values are not"),
    (merged, only_what_both_have, "expected places"),
    (correction, correction_by(velocity_goes=False), "velocity goes on"),
    (correction, correction_by(residual_goes=False), "sent again"),
    (correction, correction_by(velocity_goes=False, residual_goes=False), "both stay"),
    (correction, correction_by(gradients=True), "nothing goes on"),
    (correction, sends_the_velocity, "expected places"),
]  # fmt: skip
