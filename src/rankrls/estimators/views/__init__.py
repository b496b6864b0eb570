"""The parts of CoRankRLS."""
