// Masks of an image: the editor, those that are saved, and those that a model predicts.

import { call, get, post, sending, stored } from "../api.js";
import { button, destroy, failure, form, h, input, loaded, select, show } from "../dom.js";
import { pixels } from "../images.js";
import { COLORS, MaskEditor, readMask } from "../mask_editor.js";
import { base64, png } from "../masks.js";
import { may } from "../rights.js";

/** Most pixels of an image that is labelled here. A browser needs four bytes for each. */
const MOST_PIXELS = 50_000_000;

/** Masks that are drawn when the page opens. */
const SHOWN = 20;

/**
 * @typedef {{
 *   annotation: any,
 *   read: () => Promise<import("../masks.js").Mask>,
 *   mask: import("../masks.js").Mask | null,
 *   isShown: boolean,
 *   color: [number, number, number],
 * }} Entry a mask that is saved or predicted
 */

/**
 * The section of an image's page. The editor comes once it is asked for: it holds every pixel.
 * @param {Api["FileRecord"]} file
 * @param {string} address its `download_url`
 */
export function annotations(file, address) {
  const place = h("div", null);
  const begin = button(
    may("write") ? "Label this image" : "Show the masks",
    async () => {
      const image = await pixels(address);
      if (image.width * image.height > MOST_PIXELS) {
        image.close();
        throw new Error("The image has over 50 megapixels, more than a browser holds. Label it with the Python client.");
      }
      const labelling = new Labelling(file, image, place);
      await labelling.reload();
      labelling.editor.canvas.focus();
    },
    "primary",
  );
  place.append(h("p", null, begin));
  return [h("h2", null, "Masks"), place];
}

/** The masks of one image, on its page. */
class Labelling {
  /**
   * @param {Api["FileRecord"]} file
   * @param {ImageBitmap} image
   * @param {Element} place
   */
  constructor(file, image, place) {
    this.file = file;
    this.image = image;
    this.path = `/images/${file.file_id}/annotations`;
    /** @type {Entry[]} */
    this.saved = [];
    /** @type {Entry[]} */
    this.predicted = [];
    /** The annotation that the mask in the editor replaces. @type {Entry | null} */
    this.corrected = null;
    this.editor = new MaskEditor(image, file.file_name, () => {});
    this.lists = h("div", { class: "columns" });
    this.said = h("div", { "aria-live": "polite" });
    const label = { list: "labels", required: true, maxlength: 200, autocomplete: "off" };
    this.label = input(label);
    this.labels = h("datalist", { id: "labels" });
    this.vetted = input({ type: "checkbox", checked: true });
    show(
      place,
      this.editor.element,
      ...(may("write") ? [form([["Label", this.label], ["Vetted: datasets learn from it", this.vetted]], "Save the mask", () => this.save()), h("p", null, button("Begin anew", () => this.anew()))] : []),
      this.said,
      this.lists,
      this.labels,
      this.model(),
    );
  }

  /** Reads the saved masks, and draws the newest. */
  async reload() {
    const known = new Map(this.saved.map((entry) => [entry.annotation.id, entry]));
    const listed = await get(this.path);
    this.saved = listed.map((/** @type {any} */ annotation, /** @type {number} */ index) => {
      const old = known.get(annotation.id);
      return old ? { ...old, annotation } : this.entry(annotation, index, () => this.fetched(annotation), listed.length - index <= SHOWN);
    });
    show(this.labels, ...[...new Set(listed.map((/** @type {any} */ it) => it.label))].map((value) => h("option", { value })));
    await this.redraw();
  }

  /**
   * @param {any} annotation
   * @param {number} index
   * @param {() => Promise<Blob>} file
   * @param {boolean} isShown
   * @returns {Entry}
   */
  entry(annotation, index, file, isShown) {
    const read = async () => readMask(await file(), this.image.width, this.image.height);
    return { annotation, read, mask: null, isShown, color: COLORS[index % COLORS.length] };
  }

  /** @param {any} annotation */
  async fetched(annotation) {
    const answer = await fetch(stored(annotation.mask_url));
    if (!answer.ok) {
      throw new Error(`The mask cannot be read (${answer.status}). Reload the page.`);
    }
    return answer.blob();
  }

  /** Draws the masks that are to be seen, and the lists. */
  async redraw() {
    this.lists.replaceChildren(
      this.list("Saved", this.saved, "No masks yet.", (entry) => this.savedActions(entry)),
      ...(this.predicted.length ? [this.list("Predicted", this.predicted, "", (entry) => this.predictedActions(entry))] : []),
    );
    const seen = [...this.saved, ...this.predicted].filter((entry) => entry.isShown && entry !== this.corrected);
    for (const entry of seen) {
      entry.mask ??= await entry.read();
    }
    this.editor.layers = seen.flatMap(({ mask, color }) => (mask ? [{ mask, color }] : []));
    this.editor.draw();
  }

  /**
   * @param {string} title
   * @param {Entry[]} entries
   * @param {string} empty
   * @param {(entry: Entry) => (Node | null)[]} actions
   */
  list(title, entries, empty, actions) {
    const rows = entries.map((entry) => {
      const { annotation } = entry;
      const toggle = async () => {
        entry.isShown = seen.checked;
        await this.attempt(() => this.redraw());
      };
      const seen = input({ type: "checkbox", checked: entry.isShown, change: toggle });
      const share = `${(100 * annotation.foreground_fraction).toFixed(2)} %`;
      const sure = annotation.confidence === undefined ? "" : `, confidence ${annotation.confidence.toFixed(2)}`;
      const swatch = h("canvas", { class: "swatch", width: 12, height: 12, "aria-hidden": "true" });
      const pen = /** @type {HTMLCanvasElement} */ (swatch).getContext("2d");
      if (pen) {
        pen.fillStyle = `rgb(${entry.color.join(",")})`;
        pen.fillRect(0, 0, 12, 12);
      }
      const vetted = annotation.is_human_vetted ? h("span", { class: "badge completed" }, "vetted") : null;
      return h(
        "li",
        null,
        h("label", { class: "check" }, seen, swatch, h("span", { class: "name" }, annotation.label)),
        h("span", { class: "quiet" }, share + sure, annotation.user ? `, ${annotation.user.name}` : ""),
        vetted,
        actions(entry),
      );
    });
    const heading = h("h3", null, title);
    return h("div", null, heading, rows.length ? h("ul", { class: "masks", "aria-label": `${title} masks` }, rows) : h("p", { class: "empty" }, empty));
  }

  /** @param {Entry} entry */
  savedActions(entry) {
    if (!may("write")) {
      return [];
    }
    const one = `${this.path}/${entry.annotation.id}`;
    const again = () => this.attempt(() => this.reload());
    return [
      entry.annotation.is_human_vetted ? null : button("Vet", sending("PATCH", one, { is_human_vetted: true }, again)),
      button("Correct", () => this.correct(entry)),
      destroy("Delete", `Delete the mask ${entry.annotation.label}`, sending("DELETE", one, undefined, again)),
    ];
  }

  /** @param {Entry} entry */
  predictedActions(entry) {
    const accept = async () => {
      await this.add({ ...entry.annotation, is_human_vetted: true });
      await this.dismiss(entry);
    };
    return !may("write") ? [] : [button("Accept", accept), button("Correct", () => this.correct(entry)), button("Dismiss", () => this.dismiss(entry))];
  }

  /** @param {Entry} entry */
  async dismiss(entry) {
    this.predicted = this.predicted.filter((other) => other !== entry);
    await this.reload();
  }

  /** Puts a mask into the editor. When it is saved, it takes the other's place. @param {Entry} entry */
  async correct(entry) {
    entry.mask ??= await entry.read();
    this.corrected = entry;
    this.label.value = this.label.defaultValue = entry.annotation.label;
    this.editor.open(entry.mask);
    await this.redraw();
    this.editor.canvas.focus();
  }

  /** Leaves what is drawn, and the mask that it would have replaced. */
  async anew() {
    this.corrected = null;
    this.editor.reset();
    await this.redraw();
  }

  /** @param {any} annotation */
  async add(annotation) {
    await post(this.path, { annotations: [annotation] });
  }

  /** Saves the mask of the editor, and begins the next one. */
  async save() {
    if (this.editor.mask.count() === 0) {
      throw new Error("The mask is empty: draw where the label is.");
    }
    const mask = await base64(await png(this.editor.mask));
    await this.add({ mask, label: this.label.value, is_human_vetted: this.vetted.checked });
    const replaced = this.corrected;
    this.corrected = null;
    if (replaced?.annotation.id) {
      await call("DELETE", `${this.path}/${replaced.annotation.id}`);
    }
    this.predicted = this.predicted.filter((other) => other !== replaced);
    this.editor.reset();
    await this.reload();
  }

  /** A form that asks a model for masks. */
  model() {
    return loaded("Reading the models", async () => {
      const models = (await get("/ml-models")).filter((/** @type {any} */ it) => it.task_type === "segmentation" && it.status === "ready");
      if (models.length === 0) {
        return h("p", { class: "quiet" }, "Once a model of segmentation is trained, it can predict masks here.");
      }
      const chosen = select(models.map((/** @type {any} */ it) => [it.id, it.name]));
      const threshold = input({ type: "number", min: "0", max: "1", step: "any", value: "0.5" });
      const region = input({ type: "number", min: "0", step: "1", value: "0" });
      const predict = async () => {
        const model = models.find((/** @type {any} */ it) => it.id === chosen.value);
        const answer = await post("/ml-models/predict", {
          ml_model_id: model.id,
          data: [{ [model.image_columns[0]]: this.file.file_id }],
          pixel_threshold: Number(threshold.value),
          min_region_pixels: Number(region.value),
        });
        this.predicted = answer.annotations.map((/** @type {any} */ annotation, /** @type {number} */ index) => {
          const bytes = Uint8Array.from(atob(annotation.mask), (character) => character.charCodeAt(0));
          return this.entry(annotation, index + 2, async () => new Blob([bytes], { type: "image/png" }), true);
        });
        await this.redraw();
        if (this.predicted.length === 0) {
          throw new Error("The model found nothing on this image. A lower threshold finds more.");
        }
      };
      return h(
        "details",
        null,
        h("summary", null, "Predict masks with a model"),
        form([["Model", chosen], ["Threshold of a pixel", threshold], ["Smallest region, in pixels", region]], "Predict", predict, ));
    });
  }

  /** @param {() => Promise<void>} work */
  async attempt(work) {
    show(this.said);
    try {
      await work();
    } catch (error) {
      show(this.said, failure(error));
    }
  }
}
