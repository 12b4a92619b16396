"""The order of the gallery: by topic, and from simple to special within each."""

from pathlib import Path

TOPICS = {
    "matching": (
        "two_views",
        "two_languages",
        "two_encoders",
        "translating_between_encoders",
        "several_kernels",
        "missing_partners",
        "three_collections",
        "how_large",
    ),
    "trust and known pairs": ("when_not_to_trust", "known_pairs"),
    "layout": (
        "colors_on_grid",
        "digits_on_shapes",
        "growing_layout",
        "album_summary",
        "photo_collage",
    ),
    "alignment": ("morphing_digits", "components_of_digits", "aligning_zeros"),
    "sets": ("classify_sets", "set_kernels", "telling_point"),
    "orbits": ("orbit_on_a_sphere", "orbit_of_digits", "orbit_with_log_trace"),
    "assignment": ("facility_layout", "noisy_graphs"),
}
_ORDER = [f"plot_{name}" for names in TOPICS.values() for name in names]


class ByTopic:
    """Key that sorts examples by topic; those without one come last, by name."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Place of an example among the topics."""
        stem = Path(filename).stem
        return _ORDER.index(stem) if stem in _ORDER else len(_ORDER), stem
