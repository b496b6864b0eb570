"""The parts of RankingPursuit."""
