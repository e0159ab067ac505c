"""One file over HTTP, from a mirror that may be slow, silent or wrong."""

import io
import threading
import warnings

from tqdm import TqdmWarning, tqdm

from cnnlab.data.idx_format import DataError

PATIENCE = 3.0  # seconds; a mirror that sends fewer than SLOWEST bytes in that time is given up
SLOWEST = 32_768
MOST = 50_000_000  # bytes: a little more than the largest file has when it is not compressed
PLAIN_WORDS = {
    "ConnectionError": "the connection failed",
    "ChunkedEncodingError": "the answer was cut short",
}


class Bounded(io.BytesIO):
    """Memory for an answer of at most MOST bytes; more raises DataError."""

    def write(self, data) -> int:
        if self.tell() + len(data) > MOST:
            raise DataError(f"more than {MOST:,} bytes")
        return super().write(data)


def fetch(url: str, where: str) -> bytes:
    """The content of `url`.

    Raises DataError, naming it as `where`, if the transfer fails, or is too slow or too long.

    The transfer has a thread of its own, because a socket's time-out stops neither a slow name
    server nor a server that sends a byte now and then.
    """
    with warnings.catch_warnings():  # pooch asks for notebook widgets, which are not needed
        warnings.simplefilter("ignore", TqdmWarning)
        import pooch
    problems: list[Exception] = []
    with (
        Bounded() as answer,  # closed on leaving: an abandoned thread ends at its next write
        tqdm(desc=where, total=1, unit="B", unit_scale=True, leave=False, delay=0.5) as bar,
    ):
        # This time-out only ends a thread that has been given up already.
        get = pooch.HTTPDownloader(progressbar=bar, chunk_size=8192, timeout=2 * PATIENCE)

        def transfer() -> None:
            try:
                get(url, answer, None)
            except Exception as error:  # any error is the caller's, see below
                problems.append(error)

        thread = threading.Thread(target=transfer, daemon=True)
        thread.start()
        while thread.is_alive():
            received = answer.tell()
            thread.join(PATIENCE)
            if thread.is_alive() and answer.tell() - received < SLOWEST:
                raise DataError(f"{where}: fewer than {SLOWEST} bytes in {PATIENCE:g} s")
        if problems:
            kind, response = type(problems[0]).__name__, getattr(problems[0], "response", None)
            why = str(problems[0]) if kind == "DataError" else PLAIN_WORDS.get(kind, kind)
            status = "" if response is None else f" {response.status_code}"
            raise DataError(f"{where}: {why}{status}") from problems[0]
        return answer.getvalue()
