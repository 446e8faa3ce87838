// Asks the server again as cells are typed; the page works without this, by its button.
"use strict";

const form = document.getElementById("case");
const parts = document.getElementById("parts");
const first = "answer";
let asking = null; // the round of questions under way
let waiting = 0;

function cells() {
  const data = new URLSearchParams(new FormData(form));
  for (const name of [...data.keys()]) if (data.get(name) === "") data.delete(name);
  return data;
}

async function ask() {
  if (asking) asking.abort();
  const round = (asking = new AbortController());
  const sent = cells();
  remember(sent);
  parts.setAttribute("aria-busy", "true");
  const sections = [...parts.querySelectorAll("[data-part]")];
  sections.sort((a, b) => (b.dataset.part === first) - (a.dataset.part === first));
  try {
    for (const section of sections) {
      const answer = await fetch("parts/" + section.dataset.part, { method: "POST", body: sent, signal: round.signal });
      section.innerHTML = await problemsOrPart(answer);
      if (!answer.ok) {
        for (const other of sections) if (other !== section) other.replaceChildren();
        break;
      }
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    sections[0].textContent = "The server does not answer. Is it still running?";
  }
  if (asking === round) parts.removeAttribute("aria-busy");
}

async function problemsOrPart(answer) {
  const text = await answer.text();
  if (!(answer.headers.get("content-type") || "").startsWith("application/json")) return text;
  const note = document.createElement("p");
  note.className = "attention-note";
  note.textContent = JSON.parse(text).problems.join(" ");
  return note.outerHTML;
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, 40);
}

// The cells stand in the fragment of the address, which no browser sends to a server.
function remember(sent) {
  const shown = new URLSearchParams(sent);
  shown.delete("before");
  history.replaceState(null, "", "#" + shown);
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

function number(text) {
  return text.trim() === "" ? NaN : Number(text.trim().replace(",", "."));
}

for (const slider of form.querySelectorAll(".slider")) {
  const field = document.getElementById(slider.dataset.of);
  const follow = () => {
    const value = number(field.value);
    slider.value = Number.isNaN(value) ? (Number(slider.min) + Number(slider.max)) / 2 : value;
  };
  slider.hidden = false;
  slider.addEventListener("input", () => {
    field.value = slider.value;
    choose(field);
    soon();
  });
  field.addEventListener("input", follow);
  field.addEventListener("keydown", (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way) return;
    event.preventDefault();
    follow();
    const steps = Math.max(1, Math.round((slider.max - slider.min) / 50 / slider.step));
    slider.value = Number(slider.value) + way * steps * slider.step;
    field.value = slider.value;
    choose(field);
    soon();
  });
}

function choose(field) {
  document.getElementById("column").value = field.dataset.column;
}

form.addEventListener("focusin", (event) => {
  if (event.target.dataset.column !== undefined) choose(event.target);
});
form.addEventListener("input", (event) => {
  if (!event.target.classList.contains("slider")) soon();
});
form.addEventListener("submit", (event) => {
  if (event.submitter && event.submitter.getAttribute("formaction")) return;
  event.preventDefault();
  ask();
});

const button = document.getElementById("print");
button.hidden = false;
button.addEventListener("click", () => window.print());

if (recall()) {
  ask();
} else {
  for (const slider of form.querySelectorAll(".slider")) document.getElementById(slider.dataset.of).dispatchEvent(new Event("input"));
}
