"""The claims of the five papers, measured again: `python -m benchmarks.papers [NAME ...]`.

Each module of a paper holds its claims: what the paper says, the printed values, a function that
measures ours, and the rule that compares them. Results are in docs/papers/results, and the pages
of docs/papers are made from them and from the text in `prose`.
"""
