"""How many examples hypothesis draws: the profile of the run, a fifth of it, or five times it.

`tests/conftest.py` has the profiles. `few` is for tests that fit a model to each example, `many`
for those that cost next to nothing and look for what is rare.
"""

from hypothesis import settings

few = settings(max_examples=max(settings.default.max_examples // 5, 2))
many = settings(max_examples=5 * settings.default.max_examples)
