"""What the library needs from the machine: threads, progress, files, frames, memory. Knows nothing about ranking."""
