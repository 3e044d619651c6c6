#!/usr/bin/env python3
"""deploy/: what containers are told to run are options that the command has, and paths that it answers."""
import os
import re
import unittest

import case

DEPLOY = os.path.join(case.SOURCE, "deploy")


class Deploy(case.Case):
    def text(self, name):
        with open(os.path.join(DEPLOY, name), encoding="utf-8") as f:
            return f.read()

    def options_of(self, text):
        """Words in quotes of args and CMD lists."""
        lists = re.findall(r"(?:args|command|CMD|ENTRYPOINT):? ?(\[[^\]]*\])", text)
        self.assertTrue(lists)
        return [w for one in lists for w in re.findall(r'"([^"]*)"', one)]

    def test_options_are_the_commands(self):
        known = set(re.findall(r"^ +(--[a-z-]+)", self.nori("serve", "--help").out, re.M))
        self.assertIn("--drain", known)
        for name in "Containerfile", "deployment.yaml", "kserve_runtime.yaml":
            used = {w for w in self.options_of(self.text(name)) if w.startswith("--")}
            self.assertTrue(used, name)
            self.assertEqual(used - known, set(), name)

    def test_paths_and_times(self):
        for name in "deployment.yaml", "kserve_runtime.yaml":
            text = self.text(name)
            self.assertEqual(set(re.findall(r"path: (/v2/\S+?),", text)), {"/v2/health/live", "/v2/health/ready"})
            self.assertIn("/metrics", text)
        text = self.text("deployment.yaml")
        words = self.options_of(text)
        seconds = {o: int(words[words.index(o) + 1].rstrip("s")) for o in ("--notice", "--drain")}
        grace = int(re.search(r"terminationGracePeriodSeconds: (\d+)", text).group(1))
        self.assertGreater(grace, sum(seconds.values()))
        self.assertIn("nori_queue_size", text)

    def test_form(self):
        """Each document has what Kubernetes asks of all; the form itself where PyYAML is."""
        try:
            import yaml
        except ImportError:
            yaml = None
            print("PyYAML is not installed: the form of the files in deploy/ is not tested")
        for name in "deployment.yaml", "kserve_runtime.yaml", "kserve_inference.yaml":
            for document in self.text(name).split("\n---\n"):
                for word in "apiVersion: ", "kind: ", "metadata:", "spec:":
                    self.assertRegex(document, r"(?m)^" + word)
                self.assertNotIn("\t", document)
                if yaml:
                    self.assertIsInstance(yaml.safe_load(document), dict)


if __name__ == "__main__":
    unittest.main()
