"""Damage model files in thousands of ways: `python tests/fuzz_models.py [count] [seed] [--use]`.

Run in a separate process with limits of memory and time. A file with a wrong checksum must be refused; one forged with
a matching checksum must be refused or be some model. Anything else ends the process with an error. With --use, models
from forged files are also asked to predict, which may fail but not crash.
"""

import contextlib
import copy
import hashlib
import json
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import (
    ConditionalRankRLS,
    CoRankRLS,
    ModelFileError,
    RankingPursuit,
    RankRLS,
    TransductiveRankRLS,
    View,
    load,
    persistence,
    save,
)
from rankrls.persistence import reading

PREFIX = struct.Struct("<16sIQ")
SECONDS, ROOM = 10, 2 << 30  # for one file; above what the process has
CODE = ("exec", "compile", "import", "subprocess.Popen", "os.system", "os.exec", "pickle.find_class", "marshal.loads")

rng = np.random.default_rng(0)
X, qid = rng.normal(size=(30, 4)), np.repeat(np.arange(6), 5)
y = rng.integers(0, 3, 30).astype(float)
unscored = np.where(qid > 3, np.nan, y)
MODELS = [
    lambda: make_pipeline(StandardScaler(), RankRLS(1.0, kernel="rbf", basis=4)).fit(X, y, rankrls__qid=qid),
    lambda: RankRLS().fit(X, y, qid=qid),
    lambda: RankRLS(1.0, kernel="rbf").fit(sparse.csr_array(X), y, qid=qid),
    lambda: CoRankRLS(1.0, 1.0, views=[View([0, 2]), View(None, "poly", 3)], random_state=0).fit(X, unscored, qid=qid),
    lambda: TransductiveRankRLS(1.0).fit(X, unscored, qid=qid),
    lambda: ConditionalRankRLS(1.0, kernel="rbf").fit_edges(X, [(i % 15, i) for i in range(30)], np.arange(30.0)),
    lambda: RankingPursuit(2).fit(X, y, qid=qid),
]


def forged(header: bytes, body: bytes, version: int = persistence.VERSION) -> bytes:
    """A file with a matching checksum."""
    data = PREFIX.pack(persistence.MAGIC, version, len(header)) + header + body
    return data + hashlib.sha256(data).digest()


def parts(data: bytes) -> tuple[bytes, bytes]:
    start, length = PREFIX.size, PREFIX.unpack_from(data)[2]
    return data[start : start + length], data[start + length : -32]


def damaged(data: bytes, pick: random.Random) -> bytes:
    """Some bytes changed, cut out, doubled or inserted."""
    found = bytearray(data)
    for _ in range(pick.randint(1, 4)):
        place = pick.randrange(len(found) + 1)
        other = pick.randrange(len(found) + 1)
        first, last = sorted((place, other))
        kind = pick.randrange(6)
        if kind == 0:
            found[place:] = b""
        elif kind == 1:
            found[first : min(last, first + 40)] = b""
        elif kind == 2:
            found[place:place] = found[first : first + 40]
        elif kind == 3:
            found[place:place] = pick.randbytes(pick.randint(1, 9))
        elif place < len(found):
            found[place] ^= pick.randint(1, 255)
    return bytes(found)


def places(node, found):
    """Every node of a tree: its parent and key."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        found.append((node, key))
        places(value, found)
    return found


def something(pick: random.Random, tree):
    """A value that does not belong in a header."""
    simple = [
        None,
        True,
        -1,
        0,
        1,
        7,
        10**9,
        10**30,
        -(10**18),
        0.5,
        1e308,
        float("nan"),
        "",
        "x",
        "F",
        "object",
        [],
        {},
    ]
    nodes = [
        {"$": "array", "number": pick.randint(-2, 9)},
        {"$": "object", "class": pick.choice(list(persistence.CLASSES)), "state": {}},
        {
            "$": pick.choice(
                ["int", "float", "tuple", "dict", "slice", "scalar", "objects", "sparse", "dtype", "metric"]
            )
        },
        {"$": "int", "text": "9" * pick.choice([1, 399, 5000])},
        {"$": "float", "text": pick.choice(["inf", "nan", "1e999", "__import__('os')"])},
        {"$": "dtype", "text": pick.choice(["<f8", "|O8", "<U999999", "<U0", "<M8[ns]", "<f3"])},
        {"$": "objects", "shape": [pick.choice([0, 2, 10**9])], "items": [1, 2]},
        {
            "$": "sparse",
            "format": pick.choice(["csr", "csc", "coo", "dia"]),
            "kind": pick.choice(["array", "matrix", "x"]),
            "shape": [pick.choice([2, 10**9]), pick.choice([2, 10**12])],
            "parts": [{"$": "array", "number": pick.randint(0, 5)} for _ in range(3)],
        },
        [[[[[[]]]]]] * pick.randint(1, 50),
        copy.deepcopy(pick.choice([holder[key] for holder, key in places(tree, [])])),
    ]
    return pick.choice([pick.choice(simple), pick.choice(nodes)])


def forged_tree(data: bytes, pick: random.Random) -> bytes:
    """Change, remove or insert values of the header."""
    header, body = parts(data)
    tree = json.loads(header)
    for _ in range(pick.randint(1, 3)):
        found = places(tree, [])
        if not found:
            break
        holder, key = pick.choice(found)
        kind = pick.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(key, something(pick, tree))
        elif kind == 1:
            holder[pick.choice(["__class__", "__dict__", "predict", "fit", "$", "order", "routing", "x"])] = something(
                pick, tree
            )
        elif kind == 2 and isinstance(holder[key], int):
            holder[key] += pick.choice([-1, 1, 64, 10**6])
        else:
            holder[key] = something(pick, tree)
    return forged(json.dumps(tree).encode(), body)


def forged_text(data: bytes, pick: random.Random) -> bytes:
    header, body = parts(data)
    return forged(damaged(header, pick), body)


def forged_body(data: bytes, pick: random.Random) -> bytes:
    header, body = parts(data)
    return forged(header, damaged(body, pick), pick.choice([0, 1, 1, 1, 2, 2**32 - 1]))


def bounded() -> dict:
    """Limit memory and time, and record any code that runs while `watching`."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(SystemExit("a file takes too long")))
    state = {"watching": False}

    def hook(event, args):
        if state["watching"] and event.startswith(CODE):
            state["watching"] = False
            traceback.print_stack()
            raise SystemExit(f"a file ran code: {event} {args[0]}")

    sys.addaudithook(hook)
    return state


def main(count: int = 6000, seed: int = 0, use: bool = False) -> Counter:
    pick, outcome = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        path = Path(folder) / "m"
        originals = []
        for make in MODELS:
            save(make(), path)
            load(path)  # with whatever has to be imported
            originals.append(path.read_bytes())
        for cls in persistence.CLASSES.values():
            reading.parameters(cls)  # inspect parses signatures
        state = bounded()
        warnings.simplefilter("error")
        for _ in range(count):
            whole = pick.choice(originals)
            kind = pick.choice([damaged, forged_text, forged_tree, forged_tree, forged_body])
            data = kind(whole, pick)
            path.write_bytes(data)
            tracemalloc.start()
            signal.alarm(SECONDS)
            state["watching"] = True
            try:
                model = load(path)
                end = "loaded"
            except ModelFileError:
                end = "refused"
            finally:
                state["watching"] = False
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 64 * len(data) + (4 << 20), f"{peak} bytes for a file of {len(data)}"
            assert end == "refused" or kind is not damaged or data == whole, "a damaged file was read"
            outcome[kind.__name__, end] += 1
            if use and end == "loaded":
                with contextlib.suppress(Exception):
                    model.predict(X.copy())
            signal.alarm(0)
    return outcome


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word != "--use"]
    for (kind, end), times in sorted(main(*numbers, use="--use" in sys.argv).items()):
        print(f"{kind} {end} {times}")
