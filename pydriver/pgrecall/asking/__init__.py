"""What a question goes through: its time, its embedding, the reranking of what was found.

Logic that decides stands in the database. Here stands what it cannot do: reading dates out of
words, running models, and writing an answer for a language model.
"""
