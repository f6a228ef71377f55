// Models: their trainings, how good they are, and predictions.

import { every, get, post, sending } from "../api.js";
import { badge, button, destroy, facts, failure, form, h, input, load, loaded, opens, select, show, titled } from "../dom.js";
import { counted, grouped, shown, time } from "../format.js";
import { grid } from "../grid.js";
import { followed, ticks, watched } from "../list.js";
import { plot, plotTools } from "../plot.js";
import { may, where } from "../rights.js";
import { field } from "../row_form.js";
import { saveValues } from "../saving.js";
import { keepFollowing } from "../stream.js";
import { filePicker } from "./parameters.js";

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

/** When a version was trained. One that failed or was cancelled ended, too. @param {Api["MlModel"]} it */
function trained(it) {
  return time(it.status === "ready" ? it.training_completed_at : null);
}

/** The list of models and datasets. */
export function models() {
  const [sets, make] = [h("div", null), h("div", null)];
  const list = watched("Reading the models", (type) => ticks(type) || type.startsWith("model."), async () => {
    const row = (/** @type {Api["MlModel"]} */ it) => [
      h("a", { href: `#/models/${it.id}` }, it.name),
      it.version_number,
      badge(it.status),
      it.target_column,
      it.problem_type ?? "",
      trained(it),
    ];
    const columns = ["Model", "Newest version", "Status", "Predicts", "Kind", "Trained"];
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
  const of = select(datasets.map((it) => [it.id, `${it.name} (${counted(it.row_count, "row")})`]));
  const target = h("select", { required: true });
  const preset = select(PRESETS, "medium_quality");
  const change = () => {
    const [before, columns] = [target.value, datasets.find((it) => it.id === of.value)?.columns ?? []];
    show(target, h("option", { value: "" }, "choose a column"), ...columns.map((it) => h("option", { value: it.name, selected: it.name === before }, it.name)));
  };
  of.addEventListener("change", change);
  change();
  // A version usually differs from the one before in one respect, if in any.
  trained.addEventListener("change", () => {
    const last = known.find((it) => it.id === trained.value);
    name.disabled = last !== undefined;
    if (last) {
      of.value = datasets.some((it) => it.id === last.dataset_id) ? last.dataset_id : of.value;
      change();
      target.value = [...target.options].some((it) => it.value === last.target_column) ? last.target_column : "";
      preset.value = last.quality_preset;
    }
  });
  const go = async () => {
    const model = await post("/ml-models", {
      ...(trained.value ? { ml_model_id: trained.value } : { name: name.value }),
      dataset_id: of.value,
      target_column: target.value,
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
    /** @type {[Api["MlModel"], Api["MlModel"][]]} */
    const [newest, versions] = await Promise.all([get(`/ml-models/${id}`), every(`/ml-models/${id}/versions`)]);
    // The active version predicts while another one is trained, and after that has failed.
    const it = versions.find((version) => version.currently_active) ?? newest;
    titled(it.name);
    /** @type {Api["Dataset"] | null} */
    const dataset = await get(`/datasets/${it.dataset_id}`).catch(() => null);
    return { it, newest, versions, dataset };
  };
  const archive = async () => {
    await post(`/ml-models/${id}/archive`);
    location.hash = "#/models";
  };
  const isBusy = (/** @type {Api["MlModel"]} */ it) => ["pending", "training"].includes(it.status);
  // The progress has a stream of its own.
  const lasting = (/** @type {Api["MlModel"]} */ { progress, ...it }) => it;
  const place = followed("Reading the model", live, read, [
    { of: ({ it, dataset }) => [lasting(it), dataset?.name], make: ({ it, dataset }) => head(it, dataset) },
    { of: ({ it, newest }) => [isBusy(newest), newest.version_number, it.version_number, newest.error_message], make: ({ it, newest }, again) => (isBusy(newest) ? progress(newest, again) : newest.version_number === it.version_number ? null : troubleOf(newest)) },
    { of: ({ it }) => [it.status === "ready", it.version_number], make: ({ it }) => (it.status === "ready" ? results(it) : null) },
    { of: ({ versions }) => versions.map(lasting), make: ({ it, versions }, again) => h("section", null, h("h2", null, "Versions"), list(it, versions, again)) },
    { of: ({ it }) => it.name, make: ({ it }) => where("write", () => h("section", null, h("h2", null, "Archive"), destroy("Archive", `Archive ${it.name}: predictions with it stop`, archive))) },
  ]);
  return [h("p", { class: "crumbs" }, h("a", { href: "#/models" }, "← Models")), place];
}

/** @param {Api["MlModel"]} it @param {Api["Dataset"] | null} dataset */
function head(it, dataset) {
  return h(
    "div",
    null,
    h("h1", null, it.name, " ", badge(it.status)),
    it.error_message ? h("p", { class: "failure" }, it.error_message) : null,
    facts([
      ["Version", it.version_number],
      ["Predicts", it.target_column],
      ["Kind", it.problem_type ?? "–"],
      ["Dataset", dataset ? `${dataset.name} (${counted(dataset.row_count, "row")})` : "deleted, or kept to a group"],
      ["Quality", PRESETS.find(([preset]) => preset === it.quality_preset)?.[1] ?? it.quality_preset],
      ["Trained", trained(it)],
    ]),
  );
}

/** Why a version that was trained last is not the active one. @param {Api["MlModel"]} it */
function troubleOf(it) {
  return it.error_message ? h("p", { class: "failure" }, `The training of version ${it.version_number} failed: ${it.error_message}`) : null;
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
  return h("section", null, h("h2", null, `Training of version ${it.version_number}`), place, where("write", () => destroy("Cancel", "Cancel the training", cancel)));
}

/** Turns `root_mean_squared_error` into words. @param {string} name */
function metricWords(name) {
  return name.replaceAll("_", " ");
}

/** @param {Api["MlModel"]} it */
function results(it) {
  return loaded("Reading the results", async () => {
    /** @type {Api["TrainingResult"]} */
    const found = await get(`/ml-models/${it.id}/results?version_number=${it.version_number}`);
    const isFirst = (/** @type {string} */ name) => name === found.primary_metric;
    const metrics = Object.entries(found.metrics).sort(([a], [b]) => Number(isFirst(b)) - Number(isFirst(a)));
    const positive = found.problem_type === "binary" && found.classes ? ` Its positive class is ${found.classes.at(-1)}.` : "";
    const metric = (/** @type {[string, Api["Metric"]]} */ [name, value]) => [metricWords(name), figure(value.value), direction(value)];
    return h(
      "div",
      null,
      h("h2", null, "Metrics"),
      h("p", { class: "quiet" }, `Measured on ${counted(found.rows.test, "row")} held out of the training; trained on ${grouped(found.rows.train)}. The training chose its models by the ${metricWords(found.primary_metric)}.${positive}`),
      grid(["Metric", "Value", "Direction"], metrics.map(metric), "Nothing was measured."),
      found.feature_importance?.length ? bars(found.feature_importance) : null,
      found.confusion_matrix ? h("div", null, h("h2", null, "Confusion matrix"), matrix(found.confusion_matrix)) : null,
      found.residuals?.length ? residuals(it, found.residuals, found.rows.test) : null,
      leaderboard(found),
      h("p", null, h("a", { href: `api/v1/ml-models/${it.id}/report?version_number=${it.version_number}`, target: "_blank", rel: "noopener" }, "Full report")),
      h("h2", null, "Predict"),
      predict(it, found.features),
    );
  });
}

/** @param {Api["Metric"]} metric */
function direction(metric) {
  return metric.higher_is_better ? "higher is better" : "lower is better";
}

/** The models that were tried. @param {Api["TrainingResult"]} found */
function leaderboard(found) {
  const entry = (/** @type {Api["LeaderboardEntry"]} */ row) => [row.model, figure(row.score), figure(row.validation_score), figure(row.fit_seconds), figure(row.predict_seconds)];
  const metric = found.metrics[found.primary_metric];
  const chosen = found.leaderboard.length > 1 ? " The one with the best validation score predicts." : "";
  return h(
    "div",
    null,
    h("h2", null, "Leaderboard"),
    metric ? h("p", { class: "quiet" }, `Scores are the ${metricWords(found.primary_metric)}: ${direction(metric)}.${chosen}`) : null,
    grid(["Model", "Score", "Validation score", "Fit (s)", "Predict (s)"], found.leaderboard.map(entry), "No model was fitted."),
  );
}

/**
 * Predicted over actual values. On the line of equal values a prediction is right.
 * @param {Api["MlModel"]} it
 * @param {Api["Residual"][]} rows
 * @param {number} held rows that were held out
 */
function residuals(it, rows, held) {
  const actual = rows.map((row) => row.actual);
  const predicted = rows.map((row) => row.predicted);
  const all = [...actual, ...predicted];
  const ends = all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const place = plot(`Predicted over actual ${it.target_column} of ${rows.length} rows`);
  const said = h("span", { class: "quiet told" }, `${rows.length < held ? `${grouped(rows.length)} of ` : ""}${counted(held, "row")} held out of the training`);
  const curves = [
    { name: "predictions", x: actual, y: predicted, kind: /** @type {const} */ ("markers") },
    { name: "equal values", x: ends, y: ends, kind: /** @type {const} */ ("lines") },
  ];
  const axis = (/** @type {string} */ kind) => ({ title: `${kind} ${it.target_column}`, type: /** @type {const} */ ("linear") });
  place.draw(curves, axis("actual"), axis("predicted")).catch((error) => show(said, failure(error)));
  const values = () => saveValues(["actual", "predicted"], rows.map((row) => [row.actual, row.predicted]), `${it.name} predictions.csv`);
  return h("div", null, h("h2", null, "Predicted and actual values"), plotTools([place], `${it.name} predictions`, values, said), place);
}

/** Most features that are compared. */
const FEATURES = 20;

/** Bars of numbers, which are also told as text. @param {Api["FeatureImportance"][]} features */
function bars(features) {
  const most = Math.max(...features.map((it) => it.importance ?? 0), Number.MIN_VALUE);
  const row = (/** @type {Api["FeatureImportance"]} */ it) => [
    it.feature,
    h("meter", { min: 0, max: most, value: Math.max(0, it.importance ?? 0), "aria-label": it.feature }),
    figure(it.importance),
    figure(it.stddev),
  ];
  const rest = features.length > FEATURES ? ` The first ${FEATURES} of ${features.length}.` : "";
  return h(
    "div",
    null,
    h("h2", null, "Feature importance"),
    h("p", { class: "quiet" }, `Loss of score when the values of a column are shuffled, and its standard deviation.${rest}`),
    grid(["Feature", "Importance", "Value", "SD"], features.slice(0, FEATURES).map(row), ""),
  );
}

/** @param {Api["ConfusionMatrix"]} it */
function matrix(it) {
  const row = (/** @type {number[]} */ counts, /** @type {number} */ index) => [h("strong", null, String(it.labels[index])), ...counts];
  return grid(["Actual \\ predicted", ...it.labels.map(String)], it.counts.map(row), "");
}

/**
 * A field for a feature.
 * @param {Api["ModelFeature"]} feature
 * @returns {{element: HTMLElement, value: () => any}}
 */
function featureField({ name, data_type, levels }) {
  if (levels) {
    const box = select([["", ""], ...levels.map((level) => /** @type {[string, string]} */ ([level, level]))]);
    return { element: box, value: () => box.value || null };
  }
  if (data_type === "image") {
    const { field: element, value } = filePicker();
    return { element, value };
  }
  const { input, value } = field(/** @type {any} */ ({ name, data_type }), [], null, undefined);
  return { element: input, value };
}

/**
 * A form of the features.
 * @param {Api["MlModel"]} it
 * @param {Api["ModelFeature"][]} features
 */
function predict(it, features) {
  const said = h("div", { "aria-live": "polite" });
  const fields = features.map((feature) => ({ feature, ...featureField(feature) }));
  const go = async () => {
    show(said);
    const given = await Promise.all(fields.map(async ({ feature, value }) => ({ feature, value: await value() })));
    if (given.every(({ value }) => value === null)) {
      throw new Error("Nothing is filled in yet.");
    }
    const row = Object.fromEntries(given.map(({ feature, value }) => [feature.name, value]));
    const answer = await post("/ml-models/predict", { ml_model_id: it.id, data: [row] });
    // Of an empty field the model has learned what it means only where rows of its training were empty, too.
    const lacking = given.filter(({ feature, value }) => value === null && feature.nullable === false).map(({ feature }) => feature.name);
    show(said, outcome(it, answer, lacking));
  };
  const made = form(fields.map(({ feature, element }) => [feature.name, element]), "Predict", go, "permanent");
  // What is said is of the values that stand there.
  made.addEventListener("input", () => show(said));
  return h("div", null, made, said);
}

/**
 * @param {Api["MlModel"]} it
 * @param {any} answer
 * @param {string[]} lacking features without a value, though every row of the training had one
 */
function outcome(it, answer, lacking) {
  const chances = Object.entries(answer.probabilities?.[0] ?? {}).sort((a, b) => Number(b[1]) - Number(a[1]));
  return h(
    "div",
    null,
    h("p", null, `${it.target_column}: `, h("strong", null, shown(answer.predictions[0])), ` by version ${answer.version_number}`),
    lacking.length ? h("p", { class: "note warns" }, `Without a value of ${lacking.join(", ")}, though every row of the training had one: such a prediction says little.`) : null,
    chances.length ? grid(["Class", "Probability"], chances.map(([name, value]) => [name, figure(Number(value))]), "") : null,
  );
}

/**
 * @param {Api["MlModel"]} it
 * @param {Api["MlModel"][]} versions
 * @param {() => void} draw
 */
function list(it, versions, draw) {
  const activate = (/** @type {number} */ version_number) => sending("POST", `/ml-models/${it.id}/activate`, { version_number }, draw);
  const metric = (/** @type {Api["MlModel"]} */ version) => {
    const all = /** @type {Record<string, number>} */ (version.evaluation_metrics ?? {});
    const chosenBy = version.progress?.best_score?.metric ?? "";
    const name = chosenBy in all ? chosenBy : Object.keys(all)[0];
    return name ? `${metricWords(name)} ${figure(all[name])}` : "";
  };
  const row = (/** @type {Api["MlModel"]} */ version) => [
    version.version_number,
    badge(version.status),
    metric(version),
    trained(version),
    version.currently_active
      ? "active"
      : version.status === "ready"
        ? where("write", () => button("Activate", activate(version.version_number)))
        : "",
  ];
  return grid(["Version", "Status", "Metric", "Trained", "Active"], versions.map(row), "There is none.");
}
