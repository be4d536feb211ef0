"""Who comes in: a token, a proxy that tells who somebody is, or this machine alone."""

import hmac
from typing import Any

from jupyter_server.auth.identity import IdentityProvider, User
from traitlets import Unicode


class Door(IdentityProvider):
    """Knows visitors by a signed cookie, or by the header that a proxy sets.

    Attributes
    ----------
    header
        Header in which the proxy tells who somebody is; empty: there is none.
    """

    header = Unicode()

    @property
    def auth_enabled(self) -> bool:
        """Whether somebody may be refused."""
        return bool(self.token or self.header)

    def get_user(self, handler: Any) -> Any:
        """The visitor, or None for somebody who may not come in."""
        if not self.header:
            return super().get_user(handler)
        values = handler.request.headers.get_list(self.header)
        name = values[0].strip() if len(values) == 1 else ""
        return User(name) if 0 < len(name) <= 500 else None

    def process_login_form(self, handler: Any) -> Any:
        """The visitor who wrote the token into the form, or None."""
        said = handler.get_argument("token", default="").strip()
        if self.token and hmac.compare_digest(said.encode(), self.token.encode()):
            return self.generate_anonymous_user(handler)
        return None
