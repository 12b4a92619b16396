"""What is asked of the parameters of aligners and classifiers of sets."""


def check_slack_template(slack: float | None, template: str) -> None:
    """Refuse slack where there is no ball."""
    if slack is not None and template != "ball":
        raise ValueError(
            f"slack={slack} is the share of sets outside the ball, and template={template!r} has "
            'no ball. Leave slack out, or use template="ball".'
        )
