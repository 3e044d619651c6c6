#!/usr/bin/env python3
"""deploy/: what containers are told to run are options that the command has, and paths that it answers."""
import os
import re
import time
import unittest

import case
import server

DEPLOY = os.path.join(case.SOURCE, "deploy")


# Fields of the objects used, by what holds them, as the documentation of Kubernetes (apps/v1, v1,
# autoscaling/v2) and of KServe (v1alpha1, v1beta1) names them. Not all there are.
FIELDS = {
    "Deployment": {"apiVersion", "kind", "metadata", "spec"},
    "Deployment.spec": {"replicas", "selector", "strategy", "template"},
    "Deployment.spec.strategy": {"type", "rollingUpdate"},
    "Deployment.spec.strategy.rollingUpdate": {"maxUnavailable", "maxSurge"},
    "Deployment.spec.template": {"metadata", "spec"},
    "Deployment.spec.template.spec": {"terminationGracePeriodSeconds", "securityContext", "containers", "volumes"},
    "Deployment.spec.template.spec.securityContext": {"runAsNonRoot", "runAsUser"},
    "Deployment.spec.template.spec.volumes": {"name", "persistentVolumeClaim", "secret", "emptyDir"},
    "container": {"name", "image", "command", "args", "ports", "startupProbe", "livenessProbe", "readinessProbe",
                  "resources", "securityContext", "volumeMounts"},
    "container.ports": {"name", "containerPort", "protocol"},
    "container.startupProbe": {"httpGet", "periodSeconds", "failureThreshold"},
    "container.startupProbe.httpGet": {"path", "port"},
    "container.resources": {"requests", "limits"},
    "container.securityContext": {"allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"},
    "container.volumeMounts": {"name", "mountPath", "readOnly"},
    "Service": {"apiVersion", "kind", "metadata", "spec"},
    "Service.spec": {"selector", "ports"},
    "Service.spec.ports": {"name", "port", "targetPort"},
    "HorizontalPodAutoscaler": {"apiVersion", "kind", "metadata", "spec"},
    "HorizontalPodAutoscaler.spec": {"scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"},
    "HorizontalPodAutoscaler.spec.scaleTargetRef": {"apiVersion", "kind", "name"},
    "HorizontalPodAutoscaler.spec.metrics": {"type", "pods"},
    "HorizontalPodAutoscaler.spec.metrics.pods": {"metric", "target"},
    "HorizontalPodAutoscaler.spec.metrics.pods.metric": {"name"},
    "HorizontalPodAutoscaler.spec.metrics.pods.target": {"type", "averageValue"},
    "HorizontalPodAutoscaler.spec.behavior": {"scaleDown", "scaleUp"},
    "HorizontalPodAutoscaler.spec.behavior.scaleDown": {"stabilizationWindowSeconds"},
    "ServingRuntime": {"apiVersion", "kind", "metadata", "spec"},
    "ServingRuntime.spec": {"annotations", "supportedModelFormats", "protocolVersions", "containers"},
    "ServingRuntime.spec.supportedModelFormats": {"name", "version", "autoSelect", "priority"},
    "InferenceService": {"apiVersion", "kind", "metadata", "spec"},
    "InferenceService.spec": {"predictor"},
    "InferenceService.spec.predictor": {"minReplicas", "maxReplicas", "model"},
    "InferenceService.spec.predictor.model": {"modelFormat", "protocolVersion", "runtime", "storageUri"},
    "InferenceService.spec.predictor.model.modelFormat": {"name", "version"},
}
VERSIONS = {"Deployment": "apps/v1", "Service": "v1", "HorizontalPodAutoscaler": "autoscaling/v2",
            "ServingRuntime": "serving.kserve.io/v1alpha1", "InferenceService": "serving.kserve.io/v1beta1"}


class Deploy(server.ServeCase):
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
                    made = yaml.safe_load(document)
                    self.assertEqual(made["apiVersion"], VERSIONS[made["kind"]])
                    self.fields(made["kind"], made)

    def fields(self, where, node):
        """A field that has no such name there is what a cluster would refuse, or pass over."""
        for item in node if isinstance(node, list) else [node]:
            if not isinstance(item, dict) or where not in FIELDS:
                continue
            self.assertEqual(set(item) - FIELDS[where], set(), where)
            for key, value in item.items():
                below = "container" if key == "containers" else where + "." + key
                self.fields(below.replace("livenessProbe", "startupProbe").replace("readinessProbe", "startupProbe"),
                            value)

    def test_what_containers_run_answers(self):
        """The words of each manifest, with folders of this test in place of mounts, as a server that is asked."""
        models, cache = self.path("models"), self.path("cache")
        for folder in models, cache:
            os.mkdir(folder)
        os.symlink(os.path.join(case.DIGITS, "digits.onnx"), os.path.join(models, "model.onnx"))
        token = self.file("token", "a-long-secret\n")
        for name, model in ("deployment.yaml", "model"), ("kserve_runtime.yaml", "digits"), ("Containerfile", "model"):
            words = self.options_of(self.text(name))
            if name == "deployment.yaml":  # its words go behind the image's
                image = self.options_of(self.text("Containerfile"))
                words = image[:image.index("--token-file")] + words
            self.assertEqual(words[:2], ["nori", "serve"])
            words = [w.replace("/run/secrets/nori/token", token).replace("/cache", cache)
                     .replace("{{.Name}}", "digits").replace("/mnt/models", models) for w in words[2:]]
            words = [models if w == "/models" else w for w in words]
            at = words.index("--port")
            del words[at:at + 2]  # the test chooses one
            s = self.serve(*words)
            allowed = {"Authorization": "Bearer a-long-secret"} if "--token-file" in words else {}
            port = s.port
            self.assertTrue(s.url.endswith(":%d" % port))
            s.host = "127.0.0.1"
            end = time.monotonic() + 30  # the event tells of one model, this of all
            while s.get("/v2/health/ready").status != 200 and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(s.get("/v2/health/ready").status, 200)
            self.assertEqual(s.get("/v2/models/%s/ready" % model, headers=allowed).status, 200)
            if allowed:
                self.assertEqual(s.get("/v2/models/%s/ready" % model).status, 401)


if __name__ == "__main__":
    unittest.main()
