// An edit form typed from a tool's schema. Values leave as JSON text: a browser would round large numbers.

import { h } from "/static/dom.js";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const INTEGER = /^-?(0|[1-9]\d*)$/;

/** The kind of input for one parameter, from its schema or, without one, from its value. */
function kindOf(schema, value) {
  if (Array.isArray(schema?.enum) && schema.enum.every((option) => typeof option === "string")) return "select";
  const type = schema?.type ?? (schema?.anyOf || schema?.$ref || schema?.oneOf ? "json" : guess(value));
  return ["string", "integer", "number", "boolean"].includes(type) ? type : "json";
}

function guess(value) {
  if (typeof value === "number") return "number";
  return typeof value === "string" || typeof value === "boolean" ? typeof value : "json";
}

/** {element, read(): {json} | {problems: [{field, message}]}, complain(problems)} for one card. */
export function editForm(card, { submit, cancel }) {
  const schema = card.schema?.properties ?? {};
  const required = new Set(card.schema?.required ?? []);
  const given = new Map(card.fields.map((field) => [field.key, field]));
  const names = [...new Set([...given.keys(), ...Object.keys(schema)])];
  const rows = names.map((name) => row(name, {
    card, schema: schema[name], raw: given.get(name)?.raw, present: given.has(name), required: required.has(name),
  }));
  const general = h("p.problem", { role: "alert", testid: "edit-problem", hidden: true });
  const element = h("form.edit", {
    testid: "edit-form", novalidate: "", "aria-label": `Edit the arguments of ${card.tool}`,
    onsubmit: (event) => { event.preventDefault(); submit(); },
    onkeydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); cancel(); } },
  }, rows.map((entry) => entry.element), general, h("div.buttons", {},
    h("button.primary", { type: "submit", testid: "edit-submit" }, "Approve as edited"),
    h("button.quiet", { type: "button", testid: "edit-cancel", onclick: cancel }, "Cancel")));

  function complain(problems) {
    const loose = [];
    for (const entry of rows) entry.complain("");
    for (const { field, message } of problems) {
      const entry = rows.find(({ name }) => field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`));
      if (entry) entry.complain(message);
      else loose.push(field ? `${field}: ${message}` : message);
    }
    general.textContent = loose.join("; ");
    general.hidden = loose.length === 0;
    element.querySelector("[aria-invalid=true]")?.focus();
  }

  function read() {
    const parts = [], problems = [];
    for (const entry of rows) {
      const { json, problem } = entry.read();
      if (problem) problems.push({ field: entry.name, message: problem });
      else if (json !== null) parts.push(`${JSON.stringify(entry.name)}:${json}`);
    }
    return problems.length ? { problems } : { json: `{${parts.join(",")}}` };
  }

  return { element, read, complain };
}

let serial = 0;

function row(name, { card, schema, raw, present, required }) {
  const id = `edit-${++serial}`;
  const secret = card.secret.includes(name);
  const kind = kindOf(schema, card.args[name]);
  const input = control(kind, { id, schema, raw, present });
  const problem = h("p.problem", { id: `${id}-problem`, testid: "field-problem", hidden: true });
  input.id = id;
  input.dataset.testid = "edit-field";
  input.dataset.name = name;
  input.setAttribute("aria-describedby", problem.id);
  if (required) input.setAttribute("aria-required", "true");
  if (secret) input.disabled = true;
  const note = secret ? "secret, stays as it is" : required ? "" : "optional";
  const element = h("div.field", { data: { kind } },
    h("label", { for: id }, h("span.mono", {}, name), note ? h("span.faint", {}, ` ${note}`) : null),
    input, schema?.description ? h("p.faint.hint", {}, schema.description) : null, problem);
  return {
    name, element,
    read: () => (secret ? { json: null } : value(kind, input, present, required)),
    complain: (message) => {
      problem.textContent = message;
      problem.hidden = !message;
      input.setAttribute("aria-invalid", String(Boolean(message)));
    },
  };
}

function control(kind, { schema, raw, present }) {
  if (kind === "boolean") return h("input", { type: "checkbox", checked: raw === "true" });
  if (kind === "select") {
    const options = schema.enum.map((option) => h("option", { value: option, selected: option === raw }, option));
    return h("select", {}, present ? null : h("option", { value: "" }, ""), options);
  }
  if (kind === "integer" || kind === "number") {
    return h("input", { type: "text", inputmode: kind === "integer" ? "numeric" : "decimal", value: raw ?? "", spellcheck: "false" });
  }
  const lines = (raw ?? "").split("\n").length;
  const area = h("textarea", { rows: String(Math.min(Math.max(lines, Math.ceil((raw ?? "").length / 70), 1), 14)), spellcheck: "false" });
  if (kind === "json") area.classList.add("mono");
  area.value = raw ?? "";
  return area;
}

/** {json: JSON text, or null to leave it out} or {problem}. */
function value(kind, input, present, required) {
  const text = input.value;
  if (kind === "boolean") return { json: !present && !required && !input.checked ? null : String(input.checked) };
  if (kind === "string" || kind === "select") return { json: !text && !present ? null : JSON.stringify(text) };
  if (!text.trim()) return required ? { problem: "a value is needed" } : { json: null };
  if (kind === "integer" && !INTEGER.test(text.trim())) return { problem: "a whole number is needed" };
  if (kind === "number" && !NUMBER.test(text.trim())) return { problem: "a number is needed, like 12.50" };
  if (kind !== "json") return { json: text.trim() };
  try {
    JSON.parse(text);
    return { json: text };
  } catch (error) {
    return { problem: `not JSON: ${error.message}` };
  }
}
