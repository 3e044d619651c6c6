#!/usr/bin/env python3
"""nori profile and nori route call nori serve over TLS; certificates that are not to be trusted are one
clear error each, and nothing is sent then."""
import os
import shutil
import subprocess
import unittest

import case
import server

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


class RemoteTls(server.ServeCase):
    def setUp(self):
        super().setUp()
        if not shutil.which("openssl"):
            self.skipTest("openssl is not there to make certificates")
        probe = self.nori("profile", DIGITS, "--cloud", "http://127.0.0.1:9", code=None)
        if "built without" in probe.err or "cannot be loaded" in probe.err:
            self.skipTest(probe.err.strip())

    def certificate(self, name, address="IP:127.0.0.1"):
        """Signed by itself."""
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=" + address,
                        "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem")], check=True,
                       capture_output=True)
        return self.path(name + ".pem"), self.path(name + ".key")

    def expired(self):
        """Signed for a day long ago."""
        _, key = self.certificate("old")
        request, made = self.path("old.csr"), self.path("expired.pem")
        subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=expired", "-out", request], check=True,
                       capture_output=True)
        config = self.file("ca.cnf", "[ca]\ndefault_ca=d\n[d]\ndatabase=%s\nserial=%s\nnew_certs_dir=%s\n"
                           "default_md=sha256\npolicy=p\nx509_extensions=x\n[p]\ncommonName=supplied\n[x]\n"
                           "subjectAltName=IP:127.0.0.1\n" % (self.file("index", ""), self.file("serial", "01\n"),
                                                            self.folder.name))
        subprocess.run(["openssl", "ca", "-batch", "-config", config, "-selfsign", "-keyfile", key, "-in", request,
                        "-out", made, "-notext", "-startdate", "20200101000000Z", "-enddate", "20200102000000Z"],
                       check=True, capture_output=True)
        return made, key

    def start(self, pair, *more):
        return self.serve(DIGITS, "--cert", pair[0], "--key", pair[1], *more)

    def fails(self, url, ca, *words):
        """profile and route say the same, in one error with a hint."""
        args = ("--cloud", url) + (("--ca", ca) if ca else ())
        for verb in (("profile", DIGITS), ("route", DIGITS, "--only", "cloud", "--calls", "1")):
            r = self.nori(*verb, *args, code=None)
            self.assertNotEqual(r.code, 0, r.out)
            self.assertEqual(r.err.count("error: ") + r.err.count("warning: "), 1, r.err)
            self.assertLessEqual(r.err.count("hint: "), 1, r.err)
            for word in words:
                self.assertIn(word, r.err)

    def test_there_and_back(self):
        pair = self.certificate("server")
        s = self.start(pair)
        self.assertTrue(s.url.startswith("https://"))
        p = self.nori("profile", DIGITS, "--cloud", s.url, "--ca", pair[0], "--runs", "5", "--json").json()
        self.assertTrue(p["reported_by_server"])
        self.assertGreater(p["connect"]["mean_ms"], 0)
        j = self.nori("route", DIGITS, "--cloud", s.url, "--ca", pair[0], "--only", "cloud", "--calls", "20",
                      "--json").json()
        self.assertEqual((j["answered"], j["agree"], j["cloud"]["answers"]), (20, 20, 20))

    def test_token_over_tls(self):
        pair = self.certificate("server")
        token = self.file("token", "a-long-secret\n")
        s = self.start(pair, "--token-file", token)
        args = ("route", DIGITS, "--cloud", s.url, "--ca", pair[0], "--only", "cloud", "--calls", "3", "--json")
        self.assertEqual(self.nori(*args, "--token-file", token).json()["agree"], 3)
        self.assertIn("401", self.nori(*args, code=None).err)

    def test_not_trusted(self):
        s = self.start(self.certificate("server"))
        self.fails(s.url, None, "certificate", "--ca FILE names the certificate to trust")
        other, _ = self.certificate("other")
        self.fails(s.url, other, "certificate", "--ca FILE must hold the server's own")
        self.assertEqual(s.stop(), 0)

    def test_expired(self):
        pair = self.expired()
        self.fails(self.start(pair).url, pair[0], "expired", "needs a new certificate")

    def test_another_name(self):
        pair = self.certificate("named", "DNS:elsewhere.example")
        self.fails(self.start(pair).url, pair[0], "match", "the name or address that its certificate has")

    def test_plain_and_tls_mixed_up(self):
        pair = self.certificate("server")
        s = self.start(pair)
        self.fails(s.url.replace("https:", "http:"), None, "https://")
        plain = self.serve(DIGITS)
        self.fails(plain.url.replace("http:", "https:"), pair[0], "a server without TLS is called by http://")

    def test_a_file_that_is_none(self):
        s = self.start(self.certificate("server"))
        self.fails(s.url, self.path("nobody.pem"), "nobody.pem")
        self.fails(s.url, self.file("empty.pem", "no certificate\n"), "PEM")


if __name__ == "__main__":
    unittest.main()
