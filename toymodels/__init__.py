"""Small language models that show why attention is needed.

In the order of the story: `onehot` (words as vectors, multiplication as lookup), `markov` (the next
word depends on the last ones; `chain` draws it), `skips` (each earlier word votes), `masks` (which
of them decide), `handwired` (the same as a transformer), `embedding` and `heads` (what is added to
make it small and learnable). `ngrams` are the strongest of the counting kind. All of them are a
`model.LanguageModel` over the tokens of `text`; `sentences` and `stories` are the languages that
they learn, `counts` stores the counts. `learned` is a one-layer GPT that finds the same by itself,
`transformer` a GPT beside the others, `designed_coreference` attention with designed weights.
`held_out` splits a text, and `comparison` measures models on the part that was held out:
`for row in compare(split, candidates(split)): print(row)`.
"""
