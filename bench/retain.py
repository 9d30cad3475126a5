"""Measure how fast facts are written, and what their links cost.

    python bench/retain.py --smoke
    python bench/retain.py --full --json retain.json

Facts are sentences with two entities each of a few thousand (one in ten names an entity that half
of a bank names), a time and an embedding. The embeddings are given, and not part of the time: words
are hashed to directions and averaged, so that sentences with words in common are alike; with
--vectors FILE.npy they are read from a file and used again with noise, 0.1 of their length, once
it has ended.

Banks of three sizes are filled with links deferred, linked, and where they hold more than 10,000
facts given a partial HNSW index, as index_plan() would. Then, through the driver, into each bank:

* <size>.facts_per_s_batch1, _batch100, _batch10000: facts retained a second, links written at once.
  Those without a size are of the largest bank.
* cost_ratio_<large>_vs_<small>: time a fact in the largest bank over that in the smallest, batches
  of 100. _batch1, _batch10000 the same for other batches.
* writers16_lost: 16 writers into one bank at once, with facts and entities in common: facts that
  are not there afterwards, or there twice, entities there twice, and errors.
* links_per_fact, link_bytes_per_fact, fact_bytes_per_fact: of the largest bank, indexes included;
  facts with their embeddings.
* hub.*: recall with the graph arm alone, of a question that names the entity half of the largest
  bank names, over the same question without it, and a retain of facts that mention it, over others.
* entity_links.*: what if links between facts of one entity were written, 50 at most an entity?
  Their bytes a fact, the time to write them, and to expand them rather than the mentions.
* distinct_scores: of link_expansion(), the share of distinct scores in the first 100, mean.
"""
