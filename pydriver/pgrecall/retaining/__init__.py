"""Prepare facts for a bank: check, embed, batch and link them."""
