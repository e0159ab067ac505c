import pytest

from cnnlab.data import DataError, mnist

CONTENT = bytes(range(256)) * 400  # 102,400 bytes: more than SLOWEST


@pytest.fixture
def server(mirror):
    mirror.answer = lambda kind, file: None if kind == "404" else CONTENT
    return mirror


def test_the_content_arrives_whole(server):
    assert mnist.fetch(f"{server.url('good')}a.gz", "a.gz") == CONTENT
    assert server.asked == [("good", "a.gz")]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("404", "HTTPError 404"),
        ("cut", "the answer was cut short"),
        ("silent", "fewer than 32768 bytes in 0.5 s"),
        ("stalled", "fewer than 32768 bytes in 0.5 s"),
        ("dripping", "fewer than 32768 bytes in 0.5 s"),
    ],
)
def test_a_transfer_that_fails_or_is_too_slow_says_why(server, monkeypatch, kind, why):
    monkeypatch.setattr(mnist, "PATIENCE", 0.5 if why.endswith("0.5 s") else 30.0)
    with pytest.raises(DataError, match=f"^a.gz from here: {why}$"):
        mnist.fetch(f"{server.url(kind)}a.gz", "a.gz from here")


def test_an_answer_without_end_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(mnist, "MOST", 90_000)
    with pytest.raises(DataError, match=r"^a\.gz from here: more than 90,000 bytes$"):
        mnist.fetch(f"{server.url('good')}a.gz", "a.gz from here")


def test_a_server_that_is_not_there_is_a_failed_connection(server):
    url = server.url("good")
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError, match=r"a\.gz: the connection failed"):
        mnist.fetch(f"{url}a.gz", "a.gz")
