#!/usr/bin/env python3
"""The page of nori serve in a browser: figures, a try with numbers and with a picture, errors, a token."""
import os
import sys

import browser
import case
import model_file as mf
import server

DIGITS = os.path.join(case.DIGITS, "digits.onnx")


class Page(server.ServeCase):
    def setUp(self):
        super().setUp()
        self.page = browser.Browser()
        self.addCleanup(self.page.close)

    def test_page(self):
        add = self.file("add.onnx", mf.one_node("Add", ["n"], ["n"], extra_inputs=["c"],
                                                initializers=[mf.floats("c", [1], [10])]))
        s = self.serve(DIGITS, add, "--queue", "50")
        p = self.page
        p.open(s.url + "/")
        p.wait("document.getElementById('state').textContent === 'ready'")
        p.wait("document.querySelectorAll('#models tbody tr').length === 2")
        p.wait("document.getElementById('model').options.length === 2")
        self.assertIn("of 50 that may wait", p.run("document.getElementById('queue-text').textContent"))

        # Numbers.
        p.run("""(() => { const m = document.getElementById('model');
            m.value = [...m.options].find((o) => o.textContent === 'add').value;
            m.dispatchEvent(new Event('change'));
            document.querySelector('.shape').value = '3';
            document.querySelector('.data').value = '[1, 2.5, -3]';
            document.getElementById('run').click(); })()""")
        p.wait("document.querySelector('#outputs pre')")
        self.assertEqual(p.run("document.querySelector('#outputs pre').textContent"), "[11,12.5,7]")
        self.assertIn("queue", p.run("document.getElementById('took').textContent"))

        # What is wrong is said, in the server's words.
        p.run("document.querySelector('.shape').value = '4'; document.getElementById('run').click()")
        p.wait("document.getElementById('trouble').textContent.includes('its shape needs 4')")

        # A picture: the digit is what the model sees on it.
        p.run("""(() => { const m = document.getElementById('model');
            m.value = [...m.options].find((o) => o.textContent === 'digits').value;
            m.dispatchEvent(new Event('change')); })()""")
        p.wait("document.querySelector('.picture')")
        p.files(".picture", os.path.join(case.DIGITS, "pictures", "7_00.png"))
        p.wait("JSON.parse(document.querySelector('.data').value).some((v) => v > 200)")
        p.run("document.getElementById('run').click()")
        p.wait("document.querySelector('.bars tr')")
        self.assertEqual(p.run("document.querySelector('.bars td').textContent"), "element 7")

        # Figures follow by themselves.
        p.wait("""[...document.querySelectorAll('#models tbody tr')].every((r) => r.cells[3].textContent === '1')
            && /(s|ms)$/.test(document.querySelector('#models tbody tr').cells[10].textContent)""")
        wrong = [c for c in p.complaints() if "400" not in c]  # the browser tells of the answer above
        self.assertEqual(wrong, [])
        for url in p.requested():
            self.assertTrue(url.startswith(s.url) or url.startswith("data:") or url == "about:blank", url)

    def test_token(self):
        s = self.serve(DIGITS, "--token-file", self.file("t", "s3cret-token"))
        p = self.page
        p.open(s.url + "/")
        p.wait("!document.getElementById('login').hidden")
        self.assertEqual(p.run("document.querySelectorAll('#models tbody tr').length"), 0)
        p.run("document.getElementById('token').value = 's3cret-token';"
              "document.querySelector('#login button').click()")
        p.wait("document.querySelectorAll('#models tbody tr').length === 1")
        p.wait("document.getElementById('login').hidden")

    def test_names_are_text(self):
        """A name that is markup stays a name."""
        odd = "<img src=x onerror=alert(1)>"
        path = self.file("m.onnx", mf.model(mf.Graph(
            [mf.node("Identity", [odd], ["y"])], [mf.value(odd, mf.tensor_type(mf.FLOAT, [1]))],
            [mf.value("y", mf.tensor_type(mf.FLOAT, [1]))])))
        s = self.serve(path)
        p = self.page
        p.open(s.url + "/")
        p.wait("document.querySelector('legend') && document.querySelector('legend').textContent.includes('<img')")
        self.assertEqual(p.run("document.images.length"), 0)
        self.assertEqual(p.complaints(), [])


if __name__ == "__main__":
    if not browser.find():
        print("no Chromium is installed: the page of nori serve is not tested")
        sys.exit(77)
    case.main()
