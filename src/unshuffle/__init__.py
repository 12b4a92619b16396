"""Find the order your data lost."""

__version__ = "0.1.0"
__all__ = ["__version__"]
