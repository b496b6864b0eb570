"""The attack: random problems over the whole parameter space, against oracles that import nothing of the library.

`python -m tests.attack --cases 100000 --jobs 2` runs it (`make attack`), `python -m tests.attack --seed 7 --case 123`
repeats one case and prints a script of it. See docs/testing.md.
"""
