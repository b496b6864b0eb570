"""More candidate parses of the GENIA sentences, by link-grammar: as many as the papers' protocols use for BioInfer.

    python3 benchmarks/papers/candidates.py --data DIR --folder DIR/parse-ranking-genia-30 [--parses 30]

parse-ranking-genia has at most 20 parses of a sentence. This script parses its sentences again, without null links and
with at most 1,000 linkages, merges parses with equal links, draws some at random if there are more, and scores each by
F1 against the gold dependencies (word pairs in any direction, without punctuation). It needs link-grammar 5.12 with its
English dictionary and Python bindings (Debian: python3-link-grammar, link-grammar-dictionaries-en) and nothing else.
"""

import argparse
import json
import lzma
import random
from pathlib import Path

LIMIT, SECONDS = 1000, 20


def token_of_characters(tokens):
    """The number of the token at each character of the sentence; -1 at spaces between tokens."""
    place = []
    for i, token in enumerate(tokens):
        place += [i] * len(token) + [-1]
    return place


def links_of(linkage, place):
    """(left, right, label) of the links between two tokens, without links to the wall or within a token."""
    import linkgrammar.clinkgrammar as binding

    def token(word):
        start, end = linkage.word_char_start(word), linkage.word_char_end(word)
        return place[start] if 0 <= start < min(end, len(place)) else -1

    found, obj = [], linkage._obj
    for k in range(binding.linkage_get_num_links(obj)):
        left, right = token(binding.linkage_get_link_lword(obj, k)), token(binding.linkage_get_link_rword(obj, k))
        if left >= 0 and right >= 0 and left != right:
            found.append((left, right, binding.linkage_get_link_label(obj, k)))
    return tuple(sorted(found))


def f1(links, gold):
    """F1 of the linked word pairs against the gold dependencies."""
    points = {i for i, (_, relation) in enumerate(gold) if relation == "punct"}
    true = {frozenset((i, head)) for i, (head, relation) in enumerate(gold) if head >= 0 and relation != "punct"}
    pairs = {frozenset((left, right)) for left, right, _ in links if left not in points and right not in points}
    return 2 * len(pairs & true) / (len(pairs) + len(true)) if pairs else 0.0


def parsed(sentence, dictionary, options, n_parses, rng):
    """The sentence with its candidates; None if it has no complete parse."""
    from linkgrammar import Sentence

    tokens, gold = sentence["tokens"], sentence["gold"]
    place, found = token_of_characters(tokens), {}
    for linkage in Sentence(" ".join(tokens), dictionary, options).parse():
        found.setdefault(links_of(linkage, place), (linkage.disjunct_cost(), linkage.link_cost()))
    parses = [
        {"rank": rank, "f1": round(f1(links, gold), 6), "dis": round(dis, 4), "len": length, "links": links}
        for rank, (links, (dis, length)) in enumerate(found.items())
    ]
    some = sorted(rng.sample(range(len(parses)), min(n_parses, len(parses))))
    kept = {name: sentence[name] for name in ("sid", "tokens", "pos", "gold")}
    return kept | {"n_distinct": len(parses), "parses": [parses[i] for i in some]} if parses else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds parse-ranking-genia")
    parser.add_argument("--folder", type=Path, required=True, help="where to write the new set")
    parser.add_argument("--parses", type=int, default=30, help="of a sentence, at most")
    arguments = parser.parse_args()
    from linkgrammar import Dictionary, ParseOptions

    dictionary = Dictionary("en")
    options = ParseOptions(
        verbosity=0, linkage_limit=LIMIT, max_parse_time=SECONDS, max_null_count=0, repeatable_rand=True
    )
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((arguments.data / "parse-ranking-genia").glob("genia-*.jsonl.xz")):
        rng, done, draft = random.Random(path.name), 0, arguments.folder / f".{path.name}"
        with lzma.open(path, "rt") as lines, lzma.open(draft, "wt") as out:
            for line in lines:
                found = parsed(json.loads(line), dictionary, options, arguments.parses, rng)
                if found is not None:
                    out.write(json.dumps(found) + "\n")
                    done += 1
        draft.replace(arguments.folder / path.name)
        print(f"{path.name}: {done:,} sentences", flush=True)


if __name__ == "__main__":
    main()
