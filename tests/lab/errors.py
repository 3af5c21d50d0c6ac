"""What can go wrong with the lab itself."""


class LabError(Exception):
    """The lab cannot do what was asked; the text says why."""


class LabNeedsRoot(LabError):
    """Only root can do this: accounts, namespaces, other people's processes."""
