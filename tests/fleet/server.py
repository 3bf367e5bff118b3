"""config/fleet/nginx.conf as it is shipped, with the addresses and directories of a fleet on this machine."""

from __future__ import annotations

import os
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[2] / "config/fleet"

# Debian's nginx.conf, less what needs root or a machine of its own.
AROUND = """\
{user}daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    access_log access.log;
    client_body_temp_path incoming;
    proxy_temp_path temporary/proxy;
    fastcgi_temp_path temporary/fastcgi;
    uwsgi_temp_path temporary/uwsgi;
    scgi_temp_path temporary/scgi;
    include site.conf;
}}
"""


def write(directory: Path, port: int, publisher: str) -> None:
    """Writes all that nginx reads, with one publisher who has this token."""
    for made in ("bundles", "incoming", "temporary", "sink"):
        (directory / made).mkdir()
    text = (SHIPPED / "nginx.conf").read_text()
    for old, new in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("server_name hooks.example.com;", "server_name localhost;"),
        ("/etc/hookyard/tls/fullchain.pem", str(directory / "server.pem")),
        ("/etc/hookyard/tls/key.pem", str(directory / "server.key")),
        ("include /etc/hookyard/publishers.map;", f"include {directory}/publishers.map;"),
        ("unix:/run/hookyard-sink/socket", f"unix:{directory}/sink/socket"),
        ("root /srv/hookyard/bundles;", f"root {directory}/bundles;"),
        ("client_body_temp_path /srv/hookyard/incoming;", f"client_body_temp_path {directory}/incoming;"),
    ):
        if text.count(old) != 1:
            raise ValueError(f"{SHIPPED}/nginx.conf must have `{old}` once")
        text = text.replace(old, new)
    (directory / "site.conf").write_text(text)
    (directory / "publishers.map").write_text(f'"PUT:Bearer {publisher}" 1;\n')
    # Workers of root's would be those of another user, who may not look into this directory.
    user = "user root;\n" if os.getuid() == 0 else ""
    (directory / "nginx.conf").write_text(AROUND.format(user=user))
