"""Documents from a folder of text files."""

from pathlib import Path

from unshuffle._files.paths import BadInput, by_reason, file_size, list_files, path_key
from unshuffle._files.tables import read_text_file
from unshuffle._run.types import Progress

TEXT_SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst", ".tex", ".org", ".log")
MAX_TEXT_BYTES = 64 * 2**20


def read_documents(
    path: Path, *, recursive: bool, on_progress: Progress
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Texts of a folder and their names, and files that are none with the reason."""
    documents, names = [], []
    listing = list_files(path, recursive=recursive)
    skipped = listing.skipped
    for done, (name, file) in enumerate(listing.files, start=1):
        try:
            documents.append(read_document(file, name))
            names.append(name)
        except (ValueError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            skipped.append((name, why.lower()))
        on_progress(done, len(listing.files))
    skipped.sort(key=lambda entry: path_key(entry[0]))
    if not documents:
        reasons = [f"{len(some):,} such as {some[0]}: {why}" for why, some in by_reason(skipped)]
        raise BadInput(
            f"{path} holds no readable text: {len(skipped):,} file(s) were skipped. "
            f"{'; '.join(reasons)}."
        )
    return documents, names, skipped


def read_document(path: Path, name: str) -> str:
    """Text of a file, which is called `name`; ValueError says in a few words why it has none."""
    if Path(name).suffix.lower() not in TEXT_SUFFIXES:
        raise BadInput("not the name of a text file")
    if file_size(path) > MAX_TEXT_BYTES:
        raise BadInput(f"larger than {MAX_TEXT_BYTES // 2**20} MB")
    try:
        text = read_text_file(path)
    except BadInput:
        raise BadInput("not text: it holds zero bytes") from None
    if not text.strip():
        raise BadInput("empty file")
    return text
