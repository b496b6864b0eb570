"""Run the attack, or one case of it."""

import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # problems are tiny: more threads only get in each other's way
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

from . import run, trial


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one only, and print its script")
    parser.add_argument("--category", choices=list(run.categories()), help="take all cases from one category")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, default=20, help="deviations to print")
    parser.add_argument("--tally", metavar="FILE", help="add to the counts in a file, to run the cases part by part")
    parser.add_argument("--compiled", action="store_true", help="use compiled code for problems of any size")
    args = parser.parse_args(argv)
    if args.compiled:
        os.environ[run.COMPILED] = "1"
    if args.case is not None:
        outcome = run.run_case(args.seed, args.case, args.category)
        print(f"{outcome.script}\n\n# {outcome.category}, case {outcome.case}: {outcome.end} {outcome.message}")
        return outcome.end == trial.DEVIATES
    tally = run.Tally() if args.tally is None else run.Tally.read(args.tally)
    run.run(range(args.first, args.first + args.cases), args.seed, args.jobs, args.category, progress, tally)
    if args.tally is not None:
        tally.save(args.tally)
    for outcome in tally.deviations[: args.show]:
        only = f" --category {outcome.category!r}" if args.category else ""
        print(f"\npython -m tests.attack --seed {args.seed} --case {outcome.case}{only}")
        print(f"{outcome.category}: {outcome.message}\n{outcome.script}")
    print(f"\n{tally.table()}\n\n{len(tally.deviations)} deviate")
    return bool(tally.deviations)


def progress(tally):
    done = sum(sum(counts.values()) for counts in tally.counts.values())
    for outcome in tally.deviations[tally.told :]:
        print(f"case {outcome.case}, {outcome.category}: {outcome.message}", file=sys.stderr)
    tally.told = len(tally.deviations)
    print(f"{done} cases, {tally.told} deviations", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
