"""The steps of a question in the driver: its time, its embedding, the reranking of its hits.

The database decides. The driver does what the database cannot: read dates in words, run models, and
write an answer for a language model.
"""
