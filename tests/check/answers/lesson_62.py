"""Answers to the exercises of lesson 62, right and wrong."""

from cnnlab.lessons.lesson_62 import buddy_free, challenge_mix, choice, last_uses


def from_the_end(tasks):
    """As the lesson does it, in sets."""
    dead, live = [], {"image"}
    for task in reversed(tasks):
        dead.append({*task.reads, *task.makes} - live)
        live = (live - {*task.makes}) | {*task.reads, "image"}
    return dead[::-1]


def by_last_touch(tasks):
    """What the exercise begins with: a tensor that is made again is kept all the time."""
    last = {}
    for k, task in enumerate(tasks):
        last |= dict.fromkeys((*task.reads, *task.makes), k)
    return [[n for n, at in last.items() if at == k and n != "image"] for k in range(len(tasks))]


def at_the_remake(tasks):
    """The old tensor dies only when the new one comes."""
    dead, last = by_last_touch(tasks), set()
    for names, task in zip(dead, tasks, strict=True):
        names.extend(last & {*task.makes})
        last |= {*task.makes}
    return dead


def with_the_images(tasks):
    return [sorted({*names, *({"image"} & {*task.reads})}) for names, task in dying(tasks)]


def reads_only(tasks):
    """What nobody reads is never freed."""
    reads = {name for task in tasks for name in task.reads}
    return [[name for name in names if name in reads] for names, _ in dying(tasks)]


def dying(tasks):
    return zip(last_uses.model()(tasks), tasks, strict=True)


def by_halves(empty, start, length):
    """From the set of all free units, as whole pieces as possible."""
    units = {u for s, n in (*empty.items(), (start, length)) for u in range(s, s + n)}
    pieces, size = {}, 64
    while size := size // 2:
        for s in range(0, 32, size):
            if units >= {*range(s, s + size)}:
                pieces[s] = size
                units -= {*range(s, s + size)}
    return pieces


def with_neighbours(empty, start, length):
    """As the pool of the lesson coalesces."""
    for other, n in list(empty.items()):
        if other + n == start or start + length == other:
            del empty[other]
            start, length = min(start, other), length + n
    return empty | {start: length}


def one_level(empty, start, length):
    if empty.get(start ^ length) == length:
        del empty[start ^ length]
        return empty | {min(start, start ^ length): 2 * length}
    return empty | {start: length}


def buddy_in_part(empty, start, length):
    """Whatever is empty at the buddy's place is taken for all of it."""
    while start ^ length in empty:
        del empty[start ^ length]
        start, length = min(start, start ^ length), 2 * length
    return empty | {start: length}


def by_waiting(uses, k):
    """From the nearest to the furthest, and the last of them."""
    waits = [(next((at - k for at in uses[name] if at > k), 999), name) for name in uses]
    return sorted(waits)[-1][1]


def last_of_all(uses, k):
    """By the last use, not by the next."""
    return max(uses, key=lambda name: uses[name][-1])


def without_the_task(uses, k):
    """As if the step had only begun."""
    return max(uses, key=lambda name: uses[name][0])


def nearest(uses, k):
    return min(uses, key=lambda name: min((at for at in uses[name] if at > k), default=999))


def by_loops(tasks, pieces, size, most):
    """With a stack, and a set of what is there."""
    makers = {task.name: task for task in tasks}
    dropped = {name: sum(map(size.get, piece)) > most for piece in pieces for name in piece}
    result, there, backward = [], set(makers) - {*dropped}, False
    for task in tasks:
        backward = backward or task.name == "loss"
        stack = [name for name in task.reads if backward and name in {*dropped} - there]
        while stack:
            needed = [name for name in makers[stack[-1]].reads if name in {*dropped} - there]
            if needed:
                stack += needed
            else:
                there.add(stack[-1])
                result.append(makers[stack.pop()])
        result.append(task)
        there -= {name for name, anew in dropped.items() if anew}
    return result


def mixed(anew):
    """The model answer with another rule for what is made anew."""
    return lambda tasks, pieces, size, most: challenge_mix.model()(
        tasks, pieces, size, anew(pieces, size, most)
    )


def without_sources(tasks, pieces, size, most):
    """Only what is read is made, not what it is made of."""
    makers = {task.name: task for task in tasks}
    missing, result = {name for piece in pieces for name in piece}, []
    loss = [task.name for task in tasks].index("loss")
    for task in tasks[loss:]:
        again = [name for name in task.reads if name in missing]
        missing -= {*again}
        result += [makers[name] for name in again] + [task]
    return tasks[:loss] + result


RIGHT = [
    (last_uses, from_the_end),
    (buddy_free, by_halves),
    (choice, by_waiting),
    (challenge_mix, by_loops),
]
WRONG = [
    (last_uses, by_last_touch, "expected"),
    (last_uses, at_the_remake, "expected"),
    (last_uses, with_the_images, "expected"),
    (last_uses, reads_only, "expected"),
    (buddy_free, lambda empty, start, length: empty | {start: length}, "expected"),
    (buddy_free, with_neighbours, "expected"),
    (buddy_free, one_level, "expected"),
    (buddy_free, buddy_in_part, "expected"),
    (choice, last_of_all, "expected"),
    (choice, without_the_task, "expected"),
    (choice, nearest, "expected"),
    (challenge_mix, mixed(lambda pieces, size, most: 0), "expected"),
    (challenge_mix, mixed(lambda pieces, size, most: 999), "expected"),
    (challenge_mix, mixed(lambda pieces, size, most: most - 1), "expected"),
    (challenge_mix, without_sources, "expected"),
    (challenge_mix, lambda tasks, pieces, size, most: tasks, "expected"),
]
