"""Proxies that the environment names."""

from __future__ import annotations

import ipaddress
import os
from typing import Any, Callable, TypeVar

import httpx

from .errors import LabdataError

Client = TypeVar("Client")

_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def with_proxies(client: Callable[..., Client], base_url: str, **options: Any) -> Client:
    """Make a client of httpx that goes through the proxies of the environment.

    A platform on this machine is reached directly, because a proxy could not reach it.
    """
    host = httpx.URL(base_url).host
    is_local = _is_local(host)
    direct = {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    try:
        return client(**options, mounts=direct if is_local else None)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        named = _named_proxies()
        if not named:
            raise LabdataError(str(error)) from error
        if is_local:
            return client(**options, trust_env=False)
        extra = "; pip install 'labdata-client[socks5]'" if isinstance(error, ImportError) else ""
        message = (
            f"the proxy of {', '.join(named)} cannot be used ({error}){extra}; NO_PROXY={host} reaches the"
            " platform without it"
        )
        raise LabdataError(message) from error


def proxy_hint(error: Exception) -> str:
    """Say which proxy an error may be about."""
    named = _named_proxies()
    if not isinstance(error, (httpx.ProxyError, httpx.UnsupportedProtocol)) or not named:
        return ""
    return f"; the environment names the proxy of {', '.join(named)}"


def _named_proxies() -> list[str]:
    given = {name.upper(): value for name, value in os.environ.items() if value}
    return [name for name in _VARIABLES if name in given]


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
