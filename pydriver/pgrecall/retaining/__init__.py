"""What a fact goes through on its way into a bank: it is checked, embedded, batched and linked."""
