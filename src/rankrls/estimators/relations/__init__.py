"""The parts of ConditionalRankRLS and TwoStepRLS: objects with ids, fitted relations, and evaluation."""
