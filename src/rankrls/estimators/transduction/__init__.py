"""The parts of TransductiveRankRLS."""
