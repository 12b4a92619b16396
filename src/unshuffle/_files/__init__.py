"""Files: paths, tables, documents, and results that are written whole or not at all."""
