"""Small language models that show why attention is needed.

In the order of the story: `onehot` (words as vectors, multiplication as lookup), `markov` (the next
word depends on the last ones; `chain` draws it), `skips` (each earlier word votes), `masks` (which
of them decide), `handwired` (the same as a transformer), `embedding` and `heads` (what is added to
make it small and learnable). `ngrams` are the strongest of the counting kind. All of them are a
`model.LanguageModel` over the integers of `text`; `sentences` and `stories` are what they learn,
`counts` how they count. `learned` is a one-layer GPT that finds the same by itself, `transformer` a
GPT beside the others, `coreference` attention that was designed. `toys`, `held_out`, `comparison`,
`contest` and `results` are what `tt compare-markov` tells.
"""
