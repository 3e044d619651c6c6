// The page of `nori serve`: asks the server it came from, and nobody else.
"use strict";

const $ = (id) => document.getElementById(id);
const history_ = [];
let signatures = {};

function make(tag, text, parent) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem("token");
  const headers = { ...(options.headers || {}) };
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(path, { ...options, headers });
  $("login").hidden = answer.status !== 401;
  return answer;
}

// ---- figures ----

// {name: [[labels, value]]} of the text that Prometheus reads.
function parseMetrics(text) {
  const out = {};
  for (const line of text.split("\n")) {
    const m = line.match(/^(\w+)(?:\{([^}]*)\})? (\S+)$/);
    if (!m) continue;
    const labels = {};
    for (const l of (m[2] || "").matchAll(/(\w+)="([^"]*)"/g)) labels[l[1]] = l[2];
    (out[m[1]] ||= []).push([labels, Number(m[3])]);
  }
  return out;
}

function value(metrics, name, model, version) {
  const found = (metrics[name] || []).find(([l]) => l.model === model && l.version === version);
  return found ? found[1] : 0;
}

// The bound of the bucket that a share of all lies below, in words.
function within(metrics, name, model, version, share) {
  const buckets = (metrics[name + "_bucket"] || []).filter(([l]) => l.model === model && l.version === version);
  const total = buckets.length ? buckets[buckets.length - 1][1] : 0;
  const bucket = buckets.find(([, n]) => n >= share * total);
  if (!total) return "–";
  return bucket[0].le === "+Inf" ? "over 10 s" : time(Number(bucket[0].le));
}

function time(seconds) {
  return seconds >= 1 ? seconds.toFixed(2) + " s" : seconds >= 1e-3 ? (seconds * 1e3).toFixed(2) + " ms"
    : (seconds * 1e6).toFixed(0) + " µs";
}

function mean(metrics, name, model, version) {
  const count = value(metrics, name + "_count", model, version);
  return count ? time(value(metrics, name + "_sum", model, version) / count) : "–";
}

function showModels(index, metrics) {
  const body = $("models").tBodies[0];
  body.replaceChildren();
  for (const m of index) {
    const v = (name) => value(metrics, name, m.name, m.version);
    const runs = v("nori_runs_total");
    const row = make("tr", undefined, body);
    const d = "nori_request_duration_seconds";
    for (const text of [m.name, m.version, m.state.toLowerCase() + (m.reason ? ": " + m.reason : ""),
      v("nori_requests_success_total"), v("nori_requests_failed_total") + v("nori_requests_expired_total"),
      v("nori_requests_rejected_total"), v("nori_queue_size"),
      runs ? (v("nori_rows_total") / runs).toFixed(1) : "–",
      mean(metrics, "nori_queue_duration_seconds", m.name, m.version),
      mean(metrics, "nori_compute_duration_seconds", m.name, m.version),
      within(metrics, d, m.name, m.version, 0.5), within(metrics, d, m.name, m.version, 0.99)]) {
      make("td", text, row);
    }
  }
}

function showQueue(metrics) {
  const waiting = (metrics.nori_queue_size || []).reduce((sum, [, n]) => sum + n, 0);
  const capacity = (metrics.nori_queue_capacity || [[{}, 0]])[0][1];
  history_.push(waiting);
  if (history_.length > 60) history_.shift();
  const top = Math.max(4, ...history_);
  const points = history_.map((n, i) => `${600 - 10 * (history_.length - 1 - i)},${78 - 74 * n / top}`);
  $("queue").querySelector("polyline").setAttribute("points", points.join(" "));
  $("queue-text").textContent = `now ${waiting}, of ${capacity} that may wait for each model`;
}

async function refresh() {
  const state = $("state");
  try {
    const ready = await ask("/v2/health/ready");
    const about = await ready.json();
    state.textContent = about.ready ? "ready" : "not ready: " + (about.reason || "");
    state.className = about.ready ? "ready" : "bad";
    const index = await ask("/v2/repository/index");
    const figures = await ask("/metrics");
    if (!index.ok || !figures.ok) return;
    const metrics = parseMetrics(await figures.text());
    const models = await index.json();
    showModels(models, metrics);
    showQueue(metrics);
    await showChoice(models.filter((m) => m.state === "READY"));
  } catch (e) {
    state.textContent = "the server does not answer";
    state.className = "bad";
  }
}

// ---- try it ----

async function showChoice(models) {
  const select = $("model");
  const names = models.map((m) => m.name + "/versions/" + m.version);
  if (names.join() === [...select.options].map((o) => o.value).join()) return;
  select.replaceChildren();
  signatures = {};
  for (const [i, m] of models.entries()) {
    const answer = await ask("/v2/models/" + names[i]);
    if (!answer.ok) continue;
    signatures[names[i]] = await answer.json();
    const option = make("option", m.version === "1" ? m.name : m.name + ", version " + m.version, select);
    option.value = names[i];
  }
  showInputs();
}

// [channels, height, width, index of channels] where the shape is one of pictures.
function pictureOf(input) {
  const s = input.shape;
  if (s.length !== 4 || input.datatype === "BYTES" || input.datatype === "BOOL") return null;
  const size = (n) => (n > 0 ? n : 224);
  if (s[1] === 1 || s[1] === 3) return { channels: s[1], height: size(s[2]), width: size(s[3]), first: true };
  if (s[3] === 1 || s[3] === 3) return { channels: s[3], height: size(s[1]), width: size(s[2]), first: false };
  return null;
}

function sample(input) {
  const count = input.shape.reduce((n, d) => n * (d > 0 ? d : 1), 1);
  const one = input.datatype === "BYTES" ? "a text" : input.datatype === "BOOL" ? false : 0;
  return count <= 4096 ? JSON.stringify(Array(count).fill(one)) : "";
}

function showInputs() {
  const box = $("inputs");
  const s = signatures[$("model").value];
  box.replaceChildren();
  $("outputs").replaceChildren();
  for (const input of s ? s.inputs : []) {
    const set = make("fieldset", undefined, box);
    make("legend", `${input.name}: ${input.datatype} [${input.shape.join(", ")}]`, set);
    const label = make("label", "shape ", make("p", undefined, set));
    const shape = make("input", undefined, label);
    shape.value = input.shape.map((d) => (d > 0 ? d : 1)).join(", ");
    shape.className = "shape";
    const numbers = make("textarea", undefined, make("label", "data, as a JSON list ", set));
    numbers.rows = 3;
    numbers.className = "data";
    numbers.value = sample(input);
    const picture = pictureOf(input);
    if (picture) addPicture(set, input, picture, shape, numbers);
  }
}

function addPicture(set, input, picture, shape, numbers) {
  const line = make("p", undefined, set);
  const file = make("input", undefined, make("label", "or a picture ", line));
  file.type = "file";
  file.accept = "image/*";
  file.className = "picture";
  const scale = make("select", undefined, make("label", " values ", line));
  for (const [name, text] of [["255", "0 to 255"], ["1", "0 to 1"], ["2", "-1 to 1"], ["net", "ImageNet's mean and spread"]]) {
    make("option", text, scale).value = name;
  }
  const canvas = make("canvas", undefined, set);
  canvas.hidden = true;
  const draw = async () => {
    if (!file.files.length) return;
    try {
      const bitmap = await createImageBitmap(file.files[0]);
      canvas.width = picture.width;
      canvas.height = picture.height;
      canvas.hidden = false;
      const c = canvas.getContext("2d");
      c.drawImage(bitmap, 0, 0, picture.width, picture.height);
      shape.value = (picture.first ? [1, picture.channels, picture.height, picture.width]
        : [1, picture.height, picture.width, picture.channels]).join(", ");
      numbers.value = JSON.stringify(pixels(c.getImageData(0, 0, picture.width, picture.height).data,
        picture, scale.value));
    } catch (e) {
      $("trouble").textContent = "this picture cannot be read: " + e.message;
    }
  };
  file.addEventListener("change", draw);
  scale.addEventListener("change", draw);
}

// RGBA to the model's order: one channel is the luminance of ITU-R BT.601.
function pixels(rgba, p, scale) {
  const area = p.width * p.height;
  const out = new Array(area * p.channels);
  const means = [0.485, 0.456, 0.406], spreads = [0.229, 0.224, 0.225];
  for (let i = 0; i < area; i++) {
    for (let k = 0; k < p.channels; k++) {
      let v = p.channels === 1 ? 0.299 * rgba[4 * i] + 0.587 * rgba[4 * i + 1] + 0.114 * rgba[4 * i + 2]
        : rgba[4 * i + k];
      if (scale === "1") v /= 255;
      else if (scale === "2") v = v / 127.5 - 1;
      else if (scale === "net") v = (v / 255 - means[k]) / spreads[k];
      else v = Math.round(v);
      out[p.first ? k * area + i : i * p.channels + k] = scale === "255" ? v : Number(v.toFixed(6));
    }
  }
  return out;
}

function showOutputs(answer) {
  const box = $("outputs");
  box.replaceChildren();
  for (const o of answer.outputs) {
    make("h3", `${o.name}: ${o.datatype} [${o.shape.join(", ")}]`, box);
    const numeric = o.data.every((v) => typeof v === "number");
    if (numeric && o.data.length > 1) {
      const order = o.data.map((v, i) => [v, i]).sort((a, b) => b[0] - a[0]).slice(0, 10);
      const low = Math.min(...o.data.slice(0, 100000)), high = order[0][0];
      const table = make("table", undefined, box);
      table.className = "bars";
      for (const [v, i] of order) {
        const row = make("tr", undefined, table);
        make("td", "element " + i, row);
        const meter = make("meter", undefined, make("td", undefined, row));
        meter.min = low;
        meter.max = high > low ? high : low + 1;
        meter.value = v;
        make("td", v.toPrecision(6), row);
      }
    }
    const text = JSON.stringify(o.data.slice(0, 1000));
    make("pre", o.data.length > 1000 ? text.slice(0, -1) + ", …" : text, box);
  }
}

async function run(event) {
  event.preventDefault();
  const s = signatures[$("model").value];
  const trouble = $("trouble");
  trouble.textContent = "";
  $("took").textContent = "";
  $("outputs").replaceChildren();
  if (!s) return;
  $("run").disabled = true;
  try {
    const sets = [...$("inputs").querySelectorAll("fieldset")];
    const inputs = s.inputs.map((input, i) => ({
      name: input.name,
      datatype: input.datatype,
      shape: JSON.parse("[" + sets[i].querySelector(".shape").value + "]"),
      data: JSON.parse(sets[i].querySelector(".data").value || "[]"),
    })).filter((input, i) => !(s.inputs[i].optional && input.data.length === 0));
    const began = performance.now();
    const answer = await ask("/v2/models/" + $("model").value + "/infer", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ inputs }),
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error + (body.hint ? "\n" + body.hint : ""));
    $("took").textContent = `${(performance.now() - began).toFixed(1)} ms; the server: ` +
      (answer.headers.get("Server-Timing") || "").replaceAll(";dur=", " ");
    showOutputs(body);
  } catch (e) {
    trouble.textContent = e.message;
  }
  $("run").disabled = false;
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  refresh();
});
$("model").addEventListener("change", showInputs);
$("try").addEventListener("submit", run);
refresh();
setInterval(refresh, 2000);
