"""What can go wrong in Hero itself, by who has to handle it.

    HeroError
    ├── ConfigurationError    a setting or contract is wrong: the person at the keyboard mends it (exit 2)
    ├── StoreError            the database refused
    │   ├── StoreFullError    no space left: nothing may be promised until there is (R29)
    │   └── LeaseLostError    another Hero looks after the runs: this one must stop acting
    └── ServiceError          a service could not be asked or refused; becomes an Unknown at the adapter's border
        ├── RefusedError      credentials, permission, wrong address: retrying does not help
        ├── UnreachableError  no connection, a service that is ill
        │   └── DeadlineError no answer within Hero's own deadline
        ├── UnrecognisedError an answer whose shape we do not know
        └── BusyError         all workers of the service's pool are held by earlier calls

Trouble that is expected (an Unknown reading, a refused plan, a message to be sent later) is a value, not an exception.
"""


class HeroError(Exception):
    """The root; its text names the thing, what is wrong with it, and the fix."""


class ConfigurationError(HeroError):
    """A setting or a contract is wrong or missing.

    Mend: each problem names its key, the file and, where known, the line.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class StoreError(HeroError):
    """The database could not do what was asked."""


class StoreFullError(StoreError):
    """The disk under the database is full. Mend: free space; Hero goes on by itself."""


class LeaseLostError(StoreError):
    """Another process holds the lease; this one's writes are fenced off. Mend: none, stop."""


class ServiceError(HeroError):
    """A service outside did not give a usable answer.

    Attributes:
        service: which one, as in the settings: ``iris``, ``slack`` …
        detail: what it said, scrubbed and short.
    """

    def __init__(self, service: str, detail: str) -> None:
        super().__init__(f"{service}: {detail}")
        self.service = service
        self.detail = detail


class RefusedError(ServiceError):
    """It answered no. Mend: the detail says which credential or permission."""


class UnreachableError(ServiceError):
    """No answer, or one that says the service is ill. Mend: wait; the next tick asks again."""


class DeadlineError(UnreachableError):
    """No answer within Hero's own deadline. Mend: wait, or raise ``deadline`` in its section."""


class UnrecognisedError(ServiceError):
    """It answered in a shape that we do not know. Mend: the detail names the offending field; report it."""


class BusyError(ServiceError):
    """Earlier calls still hold every worker of this service. Mend: wait, or raise ``threads`` in its section."""
