"""One file over HTTP, from a mirror that may be slow, silent or wrong."""

import io
import threading
import warnings

from tqdm import TqdmWarning, tqdm

from cnnlab.data.idx_format import DataError

PATIENCE = 3.0  # seconds; a mirror that sends fewer than SLOWEST bytes in that time is given up
SLOWEST = 32_768
PLAIN_WORDS = {
    "ConnectionError": "the connection failed",
    "ChunkedEncodingError": "the answer was cut short",
}


def fetch(url: str, where: str) -> bytes:
    """The content of `url`. Raises DataError, naming it as `where`, if it fails or is too slow.

    The transfer has a thread of its own, because a socket's time-out stops neither a slow name
    server nor a server that sends a byte now and then.
    """
    with warnings.catch_warnings():  # pooch asks for notebook widgets, which are not needed
        warnings.simplefilter("ignore", TqdmWarning)
        import pooch
    problems: list[Exception] = []
    with (
        io.BytesIO() as answer,  # closed on leaving: an abandoned thread ends at its next write
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
            why = PLAIN_WORDS.get(kind, kind)
            status = "" if response is None else f" {response.status_code}"
            raise DataError(f"{where}: {why}{status}") from problems[0]
        return answer.getvalue()
