from cnnlab.ranks.virtual.history import History


def test_what_a_rank_hears_of_came_before():
    history = History(3)
    assert history.of(0) is None
    history.learn(1, None)
    history.begin()
    event = history.count(0)
    assert not history.is_before(event, 0, 2)
    history.learn(1, history.of(0))
    history.learn(2, history.of(1))  # through another rank
    assert history.is_before(event, 0, 2) and not history.is_before(None, 0, 2)
    assert not history.is_before(history.count(0), 0, 2)
