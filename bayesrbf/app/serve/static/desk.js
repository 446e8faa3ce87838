// Asks the server again as cells are typed; the page works without this, by its button.
"use strict";

const form = document.getElementById("case");
const sections = [...document.querySelectorAll("#parts [data-part]")]; // in the order of asking
const stale = new Set(); // sections whose answer is not that of the cells
let asking = false;
let waiting = 0;

function cells() {
  const data = new URLSearchParams(new FormData(form));
  for (const name of [...data.keys()]) if (data.get(name) === "") data.delete(name);
  return data;
}

function soon(which) {
  for (const section of which) {
    stale.add(section);
    section.setAttribute("aria-busy", "true");
  }
  clearTimeout(waiting);
  waiting = setTimeout(ask, 40);
}

// One question at a time: what is typed meanwhile is asked next, and the server has no queue.
async function ask() {
  if (asking) return;
  asking = true;
  for (let section; (section = sections.find((one) => stale.has(one))); ) {
    stale.delete(section);
    const [status, text] = await answerOf(section.dataset.part);
    if (status === 422 && stale.size < sections.length) {
      stale.clear(); // bad cells have no answer at all
      for (const one of sections) show(one, "");
      section = sections[0];
    }
    show(section, text);
  }
  asking = false;
}

function show(section, text) {
  section.innerHTML = text;
  if (!stale.has(section)) section.removeAttribute("aria-busy");
}

async function answerOf(part) {
  try {
    const answer = await fetch("parts/" + part, { method: "POST", body: cells() });
    const text = await answer.text();
    const isPage = (answer.headers.get("content-type") || "").startsWith("text/html");
    return [answer.status, isPage ? text : note(JSON.parse(text).problems.join(" "))];
  } catch {
    return [0, note("The server does not answer. Is it still running?")];
  }
}

function note(sentence) {
  const paragraph = document.createElement("p");
  paragraph.className = "attention-note";
  paragraph.textContent = sentence;
  return paragraph.outerHTML;
}

// The cells stand in the fragment of the address, which no browser sends to a server.
function changed() {
  document.getElementById("filled")?.remove(); // they are no longer those of that row
  const shown = cells();
  shown.delete("before");
  history.replaceState(null, "", location.pathname + "#" + shown);
  soon(sections);
}

function recall() {
  const shown = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of shown) {
    const field = form.elements.namedItem(name);
    if (!(field instanceof HTMLElement)) continue;
    if (field instanceof HTMLSelectElement && ![...field.options].some((one) => one.value === value)) {
      field.add(new Option(value, value));
    }
    field.value = value;
  }
  return shown.size > 0;
}

// A number in a field; NaN where there is none. Points may stand between thousands.
function number(field) {
  let text = field.value.trim();
  if (form.dataset.decimal === "," && text.includes(",")) text = text.replaceAll(".", "");
  text = text.replace(",", ".");
  return text === "" ? NaN : Number(text);
}

function follow(slider, field) {
  const value = number(field);
  slider.value = isNaN(value) ? "" : value; // which puts it into the middle
}

function move(field, value) {
  const text = String(value).replace(".", form.dataset.decimal);
  field.value = /^-?\d{1,3},\d{3}$/.test(text) ? text + "0" : text; // else it may be thousands
  document.getElementById("column").value = field.dataset.column;
  changed();
}

for (const slider of form.querySelectorAll(".slider")) {
  const field = document.getElementById(slider.dataset.of);
  slider.hidden = false;
  slider.addEventListener("input", () => move(field, slider.value));
  field.addEventListener("input", () => follow(slider, field));
  field.addEventListener("keydown", (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    follow(slider, field);
    const steps = Math.max(1, Math.round((slider.max - slider.min) / 50 / slider.step));
    const from = number(field);
    const next = (isNaN(from) ? Number(slider.value) : from) + way * steps * slider.step;
    move(field, Number(next.toPrecision(12)));
    follow(slider, field);
  });
}

form.addEventListener("focusin", (event) => {
  const column = event.target.dataset.column;
  const chosen = document.getElementById("column");
  if (column === undefined || column === chosen.value) return;
  chosen.value = column;
  soon(sections.filter((one) => one.dataset.part === "along"));
});
form.addEventListener("input", (event) => {
  if (!event.target.classList.contains("slider")) changed();
});
form.addEventListener("submit", (event) => {
  if (event.submitter && event.submitter.getAttribute("formaction")) return;
  event.preventDefault();
  changed();
});
window.addEventListener("hashchange", () => location.reload());

// Fields of a long form are found by the names of their columns.
const find = document.getElementById("find");
const fields = [...form.querySelectorAll(".field")];
find.hidden = fields.length < 20;
find.firstElementChild.addEventListener("input", (event) => {
  event.stopPropagation(); // no cell has changed
  const part = event.target.value.trim().toLowerCase();
  for (const one of fields) {
    const name = one.firstElementChild.textContent.toLowerCase();
    one.classList.toggle("elsewhere", !name.includes(part));
  }
});

const [print, copy] = ["print", "copy"].map((id) => document.getElementById(id));
print.hidden = false;
print.addEventListener("click", () => window.print());
copy.hidden = !navigator.clipboard; // which only a page over TLS or of this machine has
copy.addEventListener("click", async () => {
  await navigator.clipboard.writeText(location.href);
  copy.textContent = "Link copied";
});

if (recall() || !sections[0].firstElementChild) soon(sections);
for (const slider of form.querySelectorAll(".slider")) follow(slider, document.getElementById(slider.dataset.of));
