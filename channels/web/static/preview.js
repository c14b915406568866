// What a tool's author shows beside the arguments: text, a coloured diff, a picture.

import { h } from "/static/dom.js";

/** The elements of a card's preview, perhaps none. Its text only ever enters as text. */
export function previewOf(card) {
  const parts = [];
  if (card.preview) {
    const text = card.preview_kind === "diff" ? diff(card.preview) : [card.preview];
    parts.push(h("pre.preview", { testid: "preview", data: { kind: card.preview_kind } }, text));
  }
  if (card.image) {
    const source = `/page/previews/${encodeURIComponent(card.pending_id)}`;
    parts.push(h("img.preview", { testid: "preview-image", src: source, alt: `Preview of ${card.tool}` }));
  }
  return parts;
}

function diff(text) {
  let begun = false; // within a hunk a line of minus signs is a line that goes away
  return text.split("\n").map((line) => {
    begun ||= line.startsWith("@@");
    const name = /^(\+\+\+ |--- |diff |index )/.test(line) && !begun;
    const kind = name || line.startsWith("@@") ? "meta" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "same";
    return h(`span.${kind}`, {}, line);
  });
}
