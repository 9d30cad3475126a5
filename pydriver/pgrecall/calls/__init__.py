"""All SQL statements of the driver, one module per subject.

``call`` makes statements and reads their rows, ``values`` converts what is sent.
"""

from pgrecall.calls import bank, browsing, graph, memories, operations, recall, reembed, retain

__all__ = ["bank", "browsing", "graph", "memories", "operations", "recall", "reembed", "retain"]
