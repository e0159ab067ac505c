import pytest

from cnnlab.ranks.virtual import Link


@pytest.mark.parametrize(
    "text, latency, bandwidth",
    [("10us,1GB/s", 1e-5, 1e9), ("2 ms, 300 MB/s", 2e-3, 3e8), ("0.5µs,12.5GB/s", 5e-7, 1.25e10)],
)
def test_a_link_is_read_from_its_text(text, latency, bandwidth):
    link = Link.parse(text)
    assert (link.latency, link.bandwidth) == pytest.approx((latency, bandwidth))


@pytest.mark.parametrize("text", ["", "10us", "1GB/s,10us", "10 parsec,1GB/s", "10us,1GB"])
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r"^link: expected a text such as 10us,1GB/s, got "):
        Link.parse(text)


@pytest.mark.parametrize("name", ["latency", "call", "eager", "bandwidth"])
def test_a_negative_number_is_refused_by_name(name):
    with pytest.raises(ValueError, match=rf"^{name}: expected"):
        Link(**{name: -1})


def test_a_link_says_what_it_is_and_how_long_bytes_take():
    assert str(Link(2e-6, 2e9)) == "links of 2 µs and 2 GB/s"
    assert str(Link(2e-3, 1e8)) == "links of 2 ms and 100 MB/s"
    assert str(Link(0, 20)) == "links of 0 µs and 20 B/s"
    assert Link(1, 4e3).sending(8000) == 2
