"""The attack: random problems over the whole parameter space, compared with oracles that import nothing of the library.

`python -m tests.attack --cases 100000 --jobs 2` (`make attack`) runs it, `python -m tests.attack --seed 7 --case 123`
repeats one case and prints it as a script. See docs/testing.md.
"""
