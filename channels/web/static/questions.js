// Questions on a card: options, own answers of a kind, several questions in one form.
// Values leave as texts: the server reads numbers and dates, a browser would round some.

import { h } from "/static/dom.js";

let serial = 0;

/** The controls of an open question. `answer(value, {form})` sends; `handlers` collects single keys. */
export function questionControls(card, answer, handlers) {
  if (card.parts?.length) return [severalForm(card, answer)];
  const controls = [];
  if (card.confirm && !card.multi) return [confirmed(card, answer, handlers)];
  if (card.options.length && card.multi) return [multi(card, answer, handlers)];
  if (card.options.length) controls.push(single(card, answer, handlers));
  if (card.allow_text || !card.options.length) controls.push(freeText(card, answer));
  if (card.about === "unknown") controls.push(resultForm(answer));
  return controls;
}

const words = (option) =>
  h("span", {}, option.label, option.description ? h("span.faint", {}, option.description) : null);

function single(card, answer, handlers) {
  const pick = (index) => answer(card.options[index].value);
  card.options.forEach((_, index) => { if (index < 9) handlers[String(index + 1)] = () => pick(index); });
  return h("div.choices", {}, card.options.map((option, index) =>
    h("button.choice", { type: "button", testid: "option", data: { value: option.value }, onclick: () => pick(index) },
      h("span.number", { "aria-hidden": "true" }, String(index + 1)), words(option))));
}

/** One answer that can be changed until Confirm: options, own words, or both; the one touched last counts. */
function confirmed(card, answer, handlers) {
  const id = `question-${++serial}`, values = card.options.map((option) => option.value);
  const given = (card.answered ?? [])[0] ?? "";
  const boxes = values.map((value) => h("input", { type: "radio", name: id, value, checked: value === given }));
  const told = card.options.length ? "Something else" : "Your answer";
  const own = card.allow_text || !card.options.length
    ? ownInput(card.answer_kind ?? "text", values.includes(given) ? "" : given, { testid: "answer-text", "aria-label": told, placeholder: told })
    : null;
  const confirm = h("button.primary", { type: "submit", testid: "confirm" }, "Confirm");
  const read = () => own?.value.trim() || boxes.find((box) => box.checked)?.value || "";
  const look = () => { confirm.disabled = !read(); };
  const pick = (box) => { box.checked = true; if (own) own.value = ""; look(); };
  boxes.forEach((box, index) => {
    box.onchange = () => pick(box);
    if (index < 9) handlers[String(index + 1)] = () => pick(box);
  });
  if (own) own.oninput = () => { if (own.value.trim()) for (const box of boxes) box.checked = false; look(); };
  look();
  return h("form.choices", {
    testid: "confirmed", onsubmit: (event) => { event.preventDefault(); if (read()) answer(read()); },
  }, card.options.map((option, index) =>
    h("label.choice", { testid: "option", data: { value: option.value } }, boxes[index], words(option))),
  own, h("div.buttons", {}, confirm));
}

function multi(card, answer, handlers) {
  const answered = card.answered ?? [], values = card.options.map((option) => option.value);
  const boxes = values.map((value) => h("input", { type: "checkbox", value, checked: answered.includes(value) }));
  const told = "Something else", before = answered.filter((value) => !values.includes(value)).join(", ");
  const own = card.allow_text
    ? ownInput(card.answer_kind ?? "text", before, { testid: "answer-text", "aria-label": told, placeholder: told })
    : null;
  const least = card.least ?? 1, most = card.most ?? card.options.length;
  const confirm = h("button.primary", { type: "submit", testid: "confirm" }, "Confirm");
  const look = () => {
    const count = boxes.filter((box) => box.checked).length;
    confirm.disabled = count > most || (count < least && !own?.value.trim()); // own words may stand for several
  };
  look();
  if (own) own.oninput = look;
  boxes.forEach((box, index) => { if (index < 9) handlers[String(index + 1)] = () => { box.checked = !box.checked; look(); }; });
  return h("form.choices", {
    onchange: look,
    onsubmit: (event) => {
      event.preventDefault();
      const text = own?.value.trim() ?? "";
      answer([...values.filter((_, index) => boxes[index].checked), ...(text ? [text] : [])]);
    },
  }, card.options.map((option, index) => h("label.choice", { testid: "option", data: { value: option.value } }, boxes[index], words(option))),
  own, h("div.buttons", {}, confirm));
}

/** An input for an own answer of a kind. */
function ownInput(kind, value, props) {
  if (kind === "boolean") {
    const options = [["", ""], ["true", "Yes"], ["false", "No"]];
    return h("select", props, options.map(([name, text]) => h("option", { value: name, selected: name === value }, text)));
  }
  const mode = { integer: "numeric", number: "decimal" }[kind] ?? null;
  return h("input", { type: kind === "date" ? "date" : "text", inputmode: mode, value, ...props });
}

function freeText(card, answer) {
  const told = card.options.length ? "Something else" : "Your answer";
  const field = ownInput(card.answer_kind ?? "text", "", { testid: "answer-text", "aria-label": told, placeholder: told });
  return h("form.free", {
    onsubmit: (event) => {
      event.preventDefault();
      if (!field.value.trim()) field.focus();
      else answer(field.value.trim());
    },
  }, field, h("button.plain", { type: "submit", testid: "answer-submit" }, "Answer"));
}

/** A cut-off call that did take effect: what it came to, for the agent to read. */
function resultForm(answer) {
  const told = "What did the call come to? (may stay empty)";
  const field = h("textarea", { rows: "2", testid: "done-result", "aria-label": told, placeholder: told });
  return h("form.free", {
    onsubmit: (event) => {
      event.preventDefault();
      answer(field.value.trim() ? ["treat as done", field.value.trim()] : "treat as done");
    },
  }, field, h("button.plain", { type: "submit", testid: "done-submit" }, "Done, with result"));
}

/** Several questions: everything can be changed until Confirm. */
function severalForm(card, answer) {
  const rows = card.parts.map(part);
  const complain = (problems) => {
    for (const row of rows) row.complain(problems.filter(({ field }) => field === row.name).map(({ message }) => message).join("; "));
    element.querySelector("[aria-invalid=true]")?.querySelector("input, select, textarea")?.focus();
  };
  const element = h("form.edit", {
    testid: "questions-form", novalidate: "", "aria-label": card.question,
    onsubmit: (event) => {
      event.preventDefault();
      const problems = [], values = {};
      for (const row of rows) {
        const value = row.read();
        if (value === null) problems.push({ field: row.name, message: "an answer is needed" });
        else values[row.name] = value;
      }
      if (problems.length) complain(problems);
      else answer(values, { form: { complain } });
    },
  }, rows.map((row) => row.element), h("div.buttons", {}, h("button.primary", { type: "submit", testid: "confirm" }, "Confirm")));
  return element;
}

/** One of several questions: {name, element, read(): a value, a list, or null, complain(text)}. */
function part(asked) {
  const id = `question-${++serial}`;
  const given = asked.answered ?? [];
  const boxes = asked.options.map((option) => h("input", {
    type: asked.multi ? "checkbox" : "radio", name: id, value: option.value, checked: given.includes(option.value),
  }));
  const values = asked.options.map((option) => option.value);
  const ownTold = asked.options.length ? "or something else" : asked.question;
  const own = asked.options.length && !asked.allow_text ? null : ownInput(asked.answer_kind,
    given.filter((value) => !values.includes(value)).join(", "), { testid: "part-input", "aria-label": ownTold });
  if (own && asked.options.length && "placeholder" in own) own.placeholder = ownTold;
  const problem = h("p.problem", { id: `${id}-problem`, testid: "field-problem", hidden: true });
  const element = h("fieldset.field", { testid: "part", data: { name: asked.name }, "aria-describedby": problem.id },
    h("legend", {}, asked.question, asked.hint ? h("span.faint", {}, ` ${asked.hint}`) : null),
    asked.options.length ? h("div.choices", {}, asked.options.map((option, index) =>
      h("label.choice", { testid: "option", data: { value: option.value } }, boxes[index], words(option)))) : null,
    own, problem);
  return {
    name: asked.name, element,
    read: () => {
      const text = own?.value.trim() ?? "";
      const chosen = values.filter((_, index) => boxes[index].checked);
      if (asked.multi) return text || chosen.length || asked.least === 0 ? [...chosen, ...(text ? [text] : [])] : null;
      return text || (chosen.length ? chosen[0] : null);
    },
    complain: (message) => {
      problem.textContent = message;
      problem.hidden = !message;
      element.setAttribute("aria-invalid", String(Boolean(message)));
    },
  };
}
