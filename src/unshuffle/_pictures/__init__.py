"""Pictures: decoding, reading many at once, copies on disk, templates."""
