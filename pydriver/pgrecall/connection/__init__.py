"""The way to the server: what is sent where, when and within which time, and who is told of it."""
