"""What the library needs of the machine: threads, progress, files, frames, memory. Knows nothing of ranking."""
