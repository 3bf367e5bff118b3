"""The settings of balancers and of the store's servers, as they are shipped and as clusters under test have them."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import balancer
import nats
from nats import Ports


class Balancers(unittest.TestCase):
    nodes = {"n1": "127.0.0.1:1", "n2": "127.0.0.1:2", "n3": "127.0.0.1:3"}

    def test_the_shipped_settings_get_addresses_and_lose_what_is_switched_off(self):
        both = balancer.configuration("127.0.0.1:9", self.nodes, stick=True, retries=True)
        neither = balancer.configuration("127.0.0.1:9", self.nodes, stick=False, retries=False)
        self.assertIn("server n3 127.0.0.1:3 tcp-ut 3s\n", both)
        self.assertNotIn("10.0.0.", both)
        for word in ("    stick on", "    stick-table", "    retry-on", "    option redispatch"):
            self.assertIn(word, both)
            self.assertNotIn(word, neither)
        self.assertIn("    retries 0\n", neither)

    def test_a_cluster_of_one_node_has_no_other_server(self):
        one = balancer.configuration("127.0.0.1:9", {"n1": "127.0.0.1:1"}, stick=True, retries=True)
        self.assertEqual(one.count("    server "), 1)


class Servers(unittest.TestCase):
    ports = {f"s{n}": Ports(f"127.0.0.1:{n}", f"127.0.0.1:1{n}", f"127.0.0.1:2{n}") for n in (1, 2, 3)}

    def test_each_server_has_its_own_name_and_addresses_and_the_routes_of_all(self):
        text = nats.configuration("s2", self.ports, Path("/there"))
        for word in ("server_name: s2\n", '"127.0.0.1:2"', '"127.0.0.1:12"', '"127.0.0.1:22"', '"/there"', "sync_interval: a"):
            self.assertIn(word, text)
        self.assertEqual(text.count("nats-route://127.0.0.1:1"), 3)
        self.assertNotIn("10.0.0.", text)
        self.assertNotIn("sync_interval: always", nats.configuration("s2", self.ports, Path("/there"), lazy=True))

    def test_a_server_takes_the_shipped_settings(self):
        self.accepted(nats.SHIPPED.read_text())

    def test_a_server_takes_the_shipped_settings_with_certificates_and_accounts(self):
        text = nats.switched_on(nats.SHIPPED.read_text())
        self.assertEqual(text.count("cert_file:"), 2)
        with tempfile.TemporaryDirectory() as here:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=s1",
                 "-keyout", f"{here}/server.key", "-out", f"{here}/server.pem"],
                check=True, capture_output=True,
            )
            shutil.copy(f"{here}/server.pem", f"{here}/ca.pem")
            passwords = {"HOOKYARD_STORE_PASSWORD": "one", "NATS_ADMIN_PASSWORD": "other"}
            self.accepted(text.replace('"/etc/nats/', f'"{here}/'), passwords)

    def accepted(self, text: str, environment: dict[str, str] = {}) -> None:
        try:
            program = nats.program()
        except balancer.Missing as error:
            # The machine that guards every change may not go without.
            if os.environ.get("CI"):
                raise
            self.skipTest(str(error))
        with tempfile.TemporaryDirectory() as here:
            settings = Path(here, "nats.conf")
            settings.write_text(text)
            tried = subprocess.run(
                [program, "-t", "-c", str(settings)], capture_output=True, text=True, env={**os.environ, **environment}
            )
        self.assertEqual(tried.returncode, 0, tried.stderr)


class Versions(unittest.TestCase):
    def server(self, here: str, says: str) -> str:
        program = Path(here, "nats-server")
        program.write_text(f"#!/bin/sh\necho '{says}'\n")
        program.chmod(0o755)
        return str(program)

    def test_the_server_of_debian_is_refused_with_its_version(self):
        with tempfile.TemporaryDirectory() as here:
            old = self.server(here, "nats-server: v2.9.10")
            self.assertIn("2.9.10", nats.too_old(old) or "")
            with mock.patch.dict(os.environ, {nats.PROGRAM: old}), self.assertRaisesRegex(balancer.Missing, "2.12 or later"):
                nats.program()

    def test_a_server_that_is_new_enough_is_taken_from_the_path(self):
        with tempfile.TemporaryDirectory() as here:
            new = self.server(here, "nats-server: v2.12.0")
            self.assertIsNone(nats.too_old(new))
            with mock.patch.dict(os.environ, {"PATH": f"{here}:{os.environ['PATH']}"}):
                os.environ.pop(nats.PROGRAM, None)
                self.assertEqual(nats.program(), new)

    def test_another_program_is_no_server(self):
        with tempfile.TemporaryDirectory() as here, self.assertRaisesRegex(balancer.Missing, "is no nats-server"):
            nats.too_old(self.server(here, "hello"))


if __name__ == "__main__":
    unittest.main()
