"""The idea: preferences F with F'F = L, features, sums over the rows, and ridge regression on (F Phi, F y)."""
