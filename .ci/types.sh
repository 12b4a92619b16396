#!/usr/bin/env bash
# Checks the types in the JavaScript of both pages, which are in its comments; needs node.
set -euo pipefail
cd "$(dirname "$0")/.."
tsc=(npx --yes --package typescript@5 tsc)
if ! "${tsc[@]}" --version >/dev/null 2>&1; then
  echo "types.sh: TypeScript is not available, so the types in JavaScript were not checked"
  [ -z "${UNSHUFFLE_REQUIRE:-}" ]
  exit
fi
"${tsc[@]}" --noEmit --allowJs --checkJs --strict \
  --target es2022 --module es2022 --moduleResolution bundler --lib es2022,dom,dom.iterable \
  src/unshuffle/images/page/page.js src/unshuffle/web/page/{wall,match,collage}/main.js
