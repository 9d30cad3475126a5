"""Every statement the driver sends, a module for each kind of thing that it is about.

``call`` has what makes a statement and reads its rows, ``values`` what is sent in it.
"""

from pgrecall.calls import bank, browsing, graph, memories, operations, recall, reembed, retain

__all__ = ["bank", "browsing", "graph", "memories", "operations", "recall", "reembed", "retain"]
