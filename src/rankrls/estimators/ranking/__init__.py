"""The parts of RankRLS: its fits, updates, confidence, explanations and paths."""
