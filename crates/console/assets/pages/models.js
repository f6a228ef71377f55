// Models: their trainings, how good they are, and predictions.

import { every, get, post, sending } from "../api.js";
import { badge, button, destroy, facts, failure, form, h, input, load, loaded, opens, select, show, titled } from "../dom.js";
import { counted, time } from "../format.js";
import { grid } from "../grid.js";
import { followed, ticks, watched } from "../list.js";
import { plot, plotTools } from "../plot.js";
import { may, where } from "../rights.js";
import { saveValues } from "../saving.js";
import { keepFollowing } from "../stream.js";
import { parsed } from "../tables.js";

const PRESETS = /** @type {[string, string][]} */ ([
  ["medium_quality", "quick"],
  ["good_quality", "good"],
  ["high_quality", "better, slower"],
  ["best_quality", "best, slowest"],
]);

/** @param {number | null} value */
function figure(value) {
  return value === null || value === undefined ? "" : Number(value.toPrecision(4));
}

/** The list of models and datasets. */
export function models() {
  const [sets, make] = [h("div", null), h("div", null)];
  const list = watched("Reading the models", (type) => type.startsWith("model."), async () => {
    const row = (/** @type {Api["MlModel"]} */ it) => [
      h("a", { href: `#/models/${it.id}` }, it.name),
      it.version_number,
      badge(it.status),
      it.target_column,
      it.problem_type ?? "",
      time(it.training_completed_at),
    ];
    const columns = ["Model", "Version", "Status", "Predicts", "Kind", "Trained"];
    return grid(columns, (await get("/ml-models")).map(row), `There is no model yet.${may("write") ? " Create a dataset below, then train one on it." : ""}`);
  });
  const draw = () =>
    load(sets, "Reading the datasets", async () => {
      const [all, known] = await Promise.all([every("/datasets"), get("/ml-models")]);
      show(make, all.length && may("write") ? h("details", null, h("summary", null, "Train a model"), train(all, known)) : null);
      const row = (/** @type {Api["Dataset"]} */ it) => [it.name, it.row_count, it.columns.length, time(it.created_at)];
      return grid(["Dataset", "Rows", "Columns", "Created"], all.map(row), ["There is no dataset yet. A dataset is the stored result of a query. ", may("write") ? opens("Make the first dataset", made) : null]);
    });
  const made = h("details", null, h("summary", null, "New dataset"), dataset(draw));
  draw();
  return [
    h("h1", null, "Models"),
    make,
    list,
    h("h2", null, "Datasets"),
    may("write") ? made : "",
    sets,
  ];
}

/** @param {() => void} draw */
function dataset(draw) {
  const name = input({ required: true, maxlength: 200 });
  const query = h("textarea", { rows: 5, required: true, spellcheck: "false" });
  const add = async () => {
    await post("/datasets", { name: name.value, query: query.value });
    draw();
  };
  return form([["Name", name], ["SELECT", query]], "Create the dataset", add);
}

/**
 * @param {Api["Dataset"][]} datasets
 * @param {Api["MlModel"][]} known models, of which a further version can be trained
 */
function train(datasets, known) {
  const trained = select([["", "a new model"], ...known.map((it) => /** @type {[string, string]} */ ([it.id, `the next version of ${it.name}`]))]);
  const name = input({ required: true, maxlength: 200 });
  trained.addEventListener("change", () => (name.disabled = trained.value !== ""));
  const of = select(datasets.map((it) => [it.id, `${it.name} (${it.row_count} rows)`]));
  const target = h("select", null);
  const preset = select(PRESETS, "medium_quality");
  const change = () => {
    const chosen = datasets.find((it) => it.id === of.value);
    show(target, ...(chosen?.columns ?? []).map((it) => h("option", { value: it.name }, it.name)));
  };
  of.addEventListener("change", change);
  change();
  const go = async () => {
    const model = await post("/ml-models", {
      ...(trained.value ? { ml_model_id: trained.value } : { name: name.value }),
      dataset_id: of.value,
      target_column: /** @type {HTMLSelectElement} */ (target).value,
      quality_preset: preset.value,
    });
    location.hash = `#/models/${model.id}`;
  };
  return form([["Train", trained], ["Name", name], ["Dataset", of], ["Column to predict", target], ["Quality", preset]], "Train", go);
}

/** One model: its active version, or the newest. @param {string} id */
export function model(id) {
  const live = (/** @type {string} */ type, /** @type {any} */ data) => ticks(type) || data.ml_model_id === id;
  const read = async () => {
    const [it, versions] = await Promise.all([get(`/ml-models/${id}`), every(`/ml-models/${id}/versions`)]);
    titled(it.name);
    return { it: /** @type {Api["MlModel"]} */ (it), versions: /** @type {Api["MlModel"][]} */ (versions) };
  };
  const archive = async () => {
    await post(`/ml-models/${id}/archive`);
    location.hash = "#/models";
  };
  const isBusy = (/** @type {Api["MlModel"]} */ it) => ["pending", "training"].includes(it.status);
  // The progress has a stream of its own.
  const lasting = (/** @type {Api["MlModel"]} */ { progress, ...it }) => it;
  const place = followed("Reading the model", live, read, [
    { of: ({ it }) => lasting(it), make: ({ it }) => head(it) },
    { of: ({ it }) => [isBusy(it), it.version_number], make: ({ it }, again) => (isBusy(it) ? progress(it, again) : null) },
    { of: ({ it }) => [it.status === "ready", it.version_number], make: ({ it }) => (it.status === "ready" ? results(it) : null) },
    { of: ({ versions }) => versions.map(lasting), make: ({ it, versions }, again) => h("section", null, h("h2", null, "Versions"), list(it, versions, again)) },
    { of: ({ it }) => it.name, make: ({ it }) => where("write", () => h("section", null, h("h2", null, "Archive"), destroy("Archive", `Archive ${it.name}: predictions with it stop`, archive))) },
  ]);
  return [h("p", { class: "crumbs" }, h("a", { href: "#/models" }, "← Models")), place];
}

/** @param {Api["MlModel"]} it */
function head(it) {
  return h(
    "div",
    null,
    h("h1", null, it.name, " ", badge(it.status)),
    it.error_message ? h("p", { class: "failure" }, it.error_message) : null,
    facts([
      ["Version", it.version_number],
      ["Predicts", it.target_column],
      ["Kind", it.problem_type ?? "–"],
      ["Trained", time(it.training_completed_at)],
    ]),
  );
}

/**
 * @param {Api["MlModel"]} it
 * @param {() => void} draw
 */
function progress(it, draw) {
  const place = h("div", { "aria-live": "polite" });
  const tell = (/** @type {Api["MlModel"]} */ now) => {
    const at = now.progress;
    const best = at?.best_score ? `, best ${at.best_score.metric} ${figure(at.best_score.value)}` : "";
    show(place, h("p", null, at ? `${at.phase}: ${at.models_tried} models tried${best}` : "Waiting for a worker, or starting."));
  };
  tell(it);
  const on = (/** @type {import("../stream.js").StreamEvent} */ { name, data }) => {
    tell(data);
    if (name === "end") {
      draw();
    }
    return name === "end";
  };
  keepFollowing(`/ml-models/${it.id}/progress?version_number=${it.version_number}`, on, {}).catch(() => {});
  const cancel = sending("POST", `/ml-models/${it.id}/cancel-training`, undefined, draw);
  return h("section", null, h("h2", null, "Training"), place, where("write", () => destroy("Cancel", "Cancel the training", cancel)));
}

/** @param {Api["MlModel"]} it */
function results(it) {
  return loaded("Reading the results", async () => {
    /** @type {Api["TrainingResult"]} */
    const found = await get(`/ml-models/${it.id}/results?version_number=${it.version_number}`);
    const metric = (/** @type {[string, Api["Metric"]]} */ [name, value]) => [name, figure(value.value), value.higher_is_better ? "higher is better" : "lower is better"];
    const entry = (/** @type {Api["LeaderboardEntry"]} */ row) => [row.model, figure(row.score), figure(row.validation_score), figure(row.fit_seconds), figure(row.predict_seconds)];
    return h(
      "div",
      null,
      h("h2", null, "Metrics"),
      h("p", { class: "quiet" }, `Measured on ${found.rows.test} rows held out of the training; trained on ${found.rows.train}.`),
      grid(["Metric", "Value", "Direction"], Object.entries(found.metrics).map(metric), "Nothing was measured."),
      found.feature_importance?.length ? h("div", null, h("h2", null, "Feature importance"), bars(found.feature_importance)) : null,
      found.confusion_matrix ? h("div", null, h("h2", null, "Confusion matrix"), matrix(found.confusion_matrix)) : null,
      found.residuals?.length ? residuals(it, found.residuals) : null,
      h("h2", null, "Leaderboard"),
      grid(["Model", "Score", "Validation score", "Fit (s)", "Predict (s)"], found.leaderboard.map(entry), "No model was fitted."),
      h("p", null, h("a", { href: `api/v1/ml-models/${it.id}/report?version_number=${it.version_number}`, target: "_blank", rel: "noopener" }, "Full report")),
      h("h2", null, "Predict"),
      predict(it, found.features),
    );
  });
}

/**
 * Predicted over actual values. On the line of equal values a prediction is right.
 * @param {Api["MlModel"]} it
 * @param {Api["Residual"][]} rows
 */
function residuals(it, rows) {
  const actual = rows.map((row) => row.actual);
  const predicted = rows.map((row) => row.predicted);
  const all = [...actual, ...predicted];
  const ends = all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const place = plot(`Predicted over actual ${it.target_column} of ${rows.length} rows`);
  const said = h("span", { class: "quiet told" }, `${counted(rows.length, "row")} held out of the training`);
  const curves = [
    { name: "predictions", x: actual, y: predicted, kind: /** @type {const} */ ("markers") },
    { name: "equal values", x: ends, y: ends, kind: /** @type {const} */ ("lines") },
  ];
  const axis = (/** @type {string} */ kind) => ({ title: `${kind} ${it.target_column}`, type: /** @type {const} */ ("linear") });
  place.draw(curves, axis("actual"), axis("predicted")).catch((error) => show(said, failure(error)));
  const values = () => saveValues(["actual", "predicted"], rows.map((row) => [row.actual, row.predicted]), `${it.name} predictions.csv`);
  return h("div", null, h("h2", null, "Predicted and actual values"), plotTools([place], `${it.name} predictions`, values, said), place);
}

/** Bars of numbers, which are also told as text. @param {Api["FeatureImportance"][]} features */
function bars(features) {
  const most = Math.max(...features.map((it) => it.importance ?? 0), Number.MIN_VALUE);
  const row = (/** @type {Api["FeatureImportance"]} */ it) => [
    it.feature,
    h("meter", { min: 0, max: most, value: Math.max(0, it.importance ?? 0), "aria-label": it.feature }),
    figure(it.importance),
  ];
  return grid(["Feature", "Importance", "Value"], features.slice(0, 20).map(row), "");
}

/** @param {Api["ConfusionMatrix"]} it */
function matrix(it) {
  const row = (/** @type {number[]} */ counts, /** @type {number} */ index) => [h("strong", null, String(it.labels[index])), ...counts];
  return grid(["Actual \\ predicted", ...it.labels.map(String)], it.counts.map(row), "");
}

/**
 * A form of the features.
 * @param {Api["MlModel"]} it
 * @param {Api["ModelFeature"][]} features
 */
function predict(it, features) {
  const said = h("div", { "aria-live": "polite" });
  const fields = features.map((feature) => {
    const isNumber = ["integer", "float", "number", "numeric"].includes(feature.data_type);
    const field = feature.levels
      ? select([["", ""], ...feature.levels.map((level) => /** @type {[string, string]} */ ([String(level), String(level)]))])
      : input({ type: "text", inputmode: isNumber ? "decimal" : "text" });
    return { feature, field, isNumber };
  });
  const go = async () => {
    const row = fields.map(({ feature, field, isNumber }) => {
      const type = !isNumber ? "text" : feature.data_type === "integer" ? "integer" : "float";
      return [feature.name, parsed({ name: feature.name, data_type: type }, field.value)];
    });
    const answer = await post("/ml-models/predict", { ml_model_id: it.id, data: [Object.fromEntries(row)] });
    const chances = Object.entries(answer.probabilities?.[0] ?? {}).sort((a, b) => Number(b[1]) - Number(a[1]));
    show(
      said,
      h("p", null, `${it.target_column}: `, h("strong", null, String(answer.predictions[0]))),
      chances.length ? grid(["Class", "Probability"], chances.map(([name, value]) => [name, figure(Number(value))]), "") : null,
    );
  };
  return h("div", null, form(fields.map(({ feature, field }) => [feature.name, field]), "Predict", go, "permanent"), said);
}

/**
 * @param {Api["MlModel"]} it
 * @param {Api["MlModel"][]} versions
 * @param {() => void} draw
 */
function list(it, versions, draw) {
  const activate = (/** @type {number} */ version_number) => sending("POST", `/ml-models/${it.id}/activate`, { version_number }, draw);
  const metric = (/** @type {Api["MlModel"]} */ version) => {
    const [first] = Object.entries(version.evaluation_metrics ?? {});
    return first ? `${first[0]} ${figure(first[1])}` : "";
  };
  const row = (/** @type {Api["MlModel"]} */ version) => [
    version.version_number,
    badge(version.status),
    metric(version),
    time(version.training_completed_at),
    version.currently_active
      ? "active"
      : version.status === "ready"
        ? where("write", () => button("Activate", activate(version.version_number)))
        : "",
  ];
  return grid(["Version", "Status", "Metric", "Trained", "Active"], versions.map(row), "There is none.");
}
