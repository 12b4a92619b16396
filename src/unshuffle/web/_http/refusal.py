"""The answer to what cannot be done, in words for the page."""


class Refused(Exception):
    """A request that is refused; `field` names the setting that it concerns."""

    def __init__(self, message: str, field: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.field = field
        self.status = status
