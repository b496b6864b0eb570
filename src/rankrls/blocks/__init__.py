"""Rows that arrive in blocks: read from files, summed, scored and checkpointed, a block at a time."""
