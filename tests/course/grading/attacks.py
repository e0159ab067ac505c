"""Answers that attack the grader: each with what it is told, and it gets no points.

All answer exercise 1 of lesson 06, the product of two numbers, whose answer is `my_sums`. What an
answer has seen it tells by raising it: the verdict shows that.
"""

# The body of `def my_sums(latency, per_cycle)`, and a word of the verdict.
BODIES = {
    "prints that it has passed": ('print("✓ PASS: all tests passed")', "expected a number"),
    "leaves with status 0": ("import sys; sys.exit(0)", "raised SystemExit"),
    "leaves at once": ("import os; os._exit(0)", "ended without a result"),
    "raises what nobody catches": ("raise KeyboardInterrupt", "ended"),
    "raises what has no words": (
        """
        class Wordless(Exception):
            def __str__(self): raise Wordless
        raise Wordless""",
        "ended",
    ),
    "forks for ever": (
        """
        import os
        while True:
            os.fork()""",
        "BlockingIOError|too much memory",
    ),
    "lets its child answer": (
        """
        import os
        if os.fork(): os._exit(0)
        return latency * per_cycle + 1""",
        "ended|too large",
    ),
    "loops for ever": ("while True: pass", "not done after 2 seconds"),
    "loops for ever in compiled code": (
        """
        import numba
        @numba.njit
        def forever(x):
            while x < 2: x = x / 2 + 0.5
            return x
        return forever(0.5)""",
        "not done after 2 seconds",
    ),
    "sleeps, and takes no signal": (
        """
        import signal, time
        for s in range(1, 32):
            try: signal.signal(s, signal.SIG_IGN)
            except OSError: pass
        time.sleep(1000)""",
        "not done after 2 seconds",
    ),
    "eats memory": ("return len(bytearray(1 << 40))", "MemoryError"),
    "eats memory bit by bit": (
        """
        kept = []
        while True: kept.append(bytearray(1 << 26))""",
        "MemoryError|too much memory",
    ),
    "eats memory in many processes": (
        """
        import os, time
        for _ in range(3):
            if not os.fork(): break
        kept = b"x" * (400 << 20)
        time.sleep(1000)""",
        "too much memory",
    ),
    "recurses for ever": ("return my_sums(latency, per_cycle)", "RecursionError"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "ended by SIGSEGV"),
    "kills its parent": (
        """
        import os, signal, time
        os.kill(os.getppid(), signal.SIGKILL)  # process 0: all of its group
        time.sleep(0.5)
        raise RuntimeError(f"the parent is {os.getppid()}")""",
        "the parent is 0",
    ),
    "kills all it may": ("import os; os.kill(-1, 9); os.killpg(0, 9)", "my_sums|sums under way"),
    "prints 100 MB": ('print("x" * (100 << 20), flush=True)', "File too large"),
    "fills the disk": (
        'open("filler", "wb").write(bytes(100 << 20))',
        "File too large",
    ),
    "returns 300 MB": (
        "import numpy as np; return np.zeros(300 << 20, np.uint8)",
        "expected at most 256 MB",
    ),
    "returns more numbers than there is memory": (
        "import numpy as np; return np.broadcast_to(1.0, (10**6, 10**6, 10))",
        "no value",
    ),
    "returns what equals everything": (
        """
        class Any:
            def __eq__(self, other): return True
            def __float__(self): return 1.0
        return Any()""",
        "expected numbers, words, lists or arrays",
    ),
    "returns a number that lies": (
        """
        class Lies(float):
            def __eq__(self, other): return True
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
        return Lies(-1)""",
        "too small",
    ),
    "returns NaN": ('return float("nan")', "expected a number"),
    "returns a pickle that runs code": (
        """
        import numpy as np, os
        class Bomb:
            def __reduce__(self): return os.system, ("touch /tmp/bomb",)
        return np.array([Bomb()])""",
        "expected numbers, words, lists or arrays",
    ),
    "writes to every file descriptor": (
        """
        import os
        for fd in range(3, 64):
            try: os.write(fd, b"x" * 4096)
            except OSError: pass""",
        "gave no result|MB",
    ),
    "sends a result of its own": (
        """
        import json, os, struct
        text = json.dumps({"value": True, "after": ["list", []], "sizes": []}).encode()
        for fd in range(3, 64):
            try: os.write(fd, struct.pack("<QQ", len(text), 0) + text)
            except OSError: pass
        return True""",
        "sums under way",
    ),
    "patches the checks": (
        """
        from cnnlab.check import verdict
        verdict.number_verdict = lambda *a, **k: verdict.Verdict(True, "right")
        verdict.np.isclose = lambda *a, **k: True
        return 0""",
        "too small|ModuleNotFoundError|ImportError",
    ),
    "patches numpy": (
        """
        import numpy as np
        np.isclose = np.allclose = lambda *a, **k: True
        np.isnan = lambda *a: False
        return 0""",
        "too small",
    ),
    "patches the wire": (
        """
        from cnnlab.course.grading import values, wire
        wire.Peer.pack = lambda *a: True
        values.Memory.bytes = lambda *a: []
        return 0""",
        "sums under way",
    ),
    "asks the model": (
        """
        from cnnlab.lessons import lesson_06
        return lesson_06.sums_under_way.model()(latency, per_cycle)""",
        "raised (ModuleNotFound|Import)Error",
    ),
    "looks for the answers on the disk": (
        """
        import os
        found = []
        for d, folders, files in os.walk("/"):
            folders[:] = {*folders} - {"site-packages", "usr", "proc", "lib", "lib64", "etc"}
            found += [f for f in files if f in ("lesson_06.py", "06_registers.ipynb", "seed")]
        raise RuntimeError(f"found {len(found)} files {found[:3]}")""",
        "found 0 files",
    ),
    "looks for other processes": (
        """
        import os
        found = [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
        raise RuntimeError(f"saw {len(found)} others")""",
        "saw 0 others",
    ),
    "looks for secrets around it": (
        """
        import os
        raise RuntimeError(f"the secret is {os.environ.get('SECRET_OF_THE_GRADER')}")""",
        "the secret is None",
    ),
    "sniffs the call stack": (
        """
        import gc, sys
        frame, seen = sys._getframe(), []
        while frame:
            seen += [*frame.f_locals, *frame.f_globals]
            frame = frame.f_back
        seen += [str(o) for o in gc.get_objects() if isinstance(o, (int, float))]
        found = {"expected", "model", "seed", "rng", "numbers"} & {*seen}
        raise RuntimeError(f"found {sorted(found)}")""",
        r"found \[\]",
    ),
    "opens the network": (
        """
        import socket
        socket.create_connection(("192.0.2.1", 80), timeout=1)""",
        "unreachable",
    ),
    "mounts over the walls": (
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        got = [libc.umount2(b"/proc", 2), libc.chroot(b"."), libc.setns(0, 0)]
        got += [libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)]
        raise RuntimeError(f"allowed {4 - got.count(-1)}")""",
        "allowed 0",
    ),
    "writes to the system": (
        """
        import os
        done = 0
        for place in ("/usr", "/etc", "/cnnlab-course", os.path.dirname(os.__file__)):
            try: done += bool(open(place + "/written", "w"))
            except OSError: pass
        raise RuntimeError(f"wrote {done} files")""",
        "wrote 0 files",
    ),
}

# Whole cells in place of the answer: the code, and a word of the verdict.
CELLS = {
    "answers with the exercise": (
        "from cnnlab.lessons import lesson_06 as exercise\n"
        "my_sums = exercise.sums_under_way.model()",
        "raised (ModuleNotFound|Import)Error",
    ),
    "has a syntax error": ("def my_sums(latency, per_cycle) return latency", "no answer found"),
    "is a number, and should be a function": ("my_sums = 8", "expected a function"),
    "is still empty": ("def my_sums(latency, per_cycle):\n    '''Later.'''\n    ...", "not yet"),
    "is deleted": ("x = 1", "no answer found"),
    "attacks while it is defined": (
        "import os\nmy_sums = os._exit(0) or (lambda latency, per_cycle: latency * per_cycle)",
        "ended without a result",
    ),
    "checks itself": (
        "class exercise:\n    @staticmethod\n    def sums_under_way(f): print('✓ right')\n"
        "def my_sums(latency, per_cycle): return 1",
        "too small|too large",
    ),
    "is right first, and wrong then": (
        "def my_sums(latency, per_cycle): return latency * per_cycle\n"
        "def my_sums(latency, per_cycle): return 0",
        "too small",
    ),
    "is right for what the lesson may draw": (
        "import numpy as np\n"
        "rng = np.random.default_rng(0)\n"
        "known = {(int(rng.integers(2, 9)), int(rng.integers(1, 5))) for _ in range(20)}\n"
        "def my_sums(latency, per_cycle):\n"
        "    return latency * per_cycle if (latency, per_cycle) in known else 0",
        "too small",
    ),
}
