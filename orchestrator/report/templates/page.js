"use strict";

// What belongs to one condition or claim (row, points, curves, legend) shares `data-row`.
const linked = new Map();
for (const element of document.querySelectorAll("[data-row]")) {
  const row = element.dataset.row;
  if (!linked.has(row)) linked.set(row, []);
  linked.get(row).push(element);
}

const tooltip = document.getElementById("tooltip");
let lit = null;
let picked = null;
let pointed = null;

function mark(row, name, isOn) {
  for (const element of linked.get(row) ?? []) element.classList.toggle(name, isOn);
}

function light(row) {
  if (lit === row) return;
  if (lit !== null) mark(lit, "lit", false);
  if (row !== null) mark(row, "lit", true);
  lit = row;
}

function pick(row) {
  const next = row === picked ? null : row;
  if (picked !== null) mark(picked, "picked", false);
  if (next !== null) mark(next, "picked", true);
  picked = next;
}

function showTooltip(point) {
  pointed = point;
  tooltip.textContent = point.getAttribute("aria-label");
  tooltip.hidden = false;
  const place = point.querySelector(".reach").getBoundingClientRect();
  const size = tooltip.getBoundingClientRect();
  const { clientWidth, clientHeight } = document.documentElement;
  const isLeft = place.right + size.width + 14 > clientWidth;
  const left = isLeft ? place.left - size.width - 6 : place.right + 6;
  const top = (place.top + place.bottom - size.height) / 2;
  tooltip.style.left = `${Math.max(8, left)}px`;
  tooltip.style.top = `${Math.max(8, Math.min(clientHeight - size.height - 8, top))}px`;
}

function hideTooltip() {
  pointed = null;
  tooltip.hidden = true;
}

function enter(event) {
  const element = event.target.closest("[data-row]");
  light(element ? element.dataset.row : null);
  if (element && element.matches(".mark")) showTooltip(element);
  else hideTooltip();
}

document.addEventListener("mouseover", enter);
document.addEventListener("focusin", enter);
document.addEventListener("scroll", () => pointed && showTooltip(pointed), { passive: true });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTooltip();
});
document.addEventListener("click", (event) => {
  const element = event.target.closest("tr[data-row], a[data-row]");
  if (element && String(window.getSelection()) === "") pick(element.dataset.row);
});

document.documentElement.classList.add("scripted");
if (linked.has(location.hash.slice(1))) pick(location.hash.slice(1));

// One stop of the Tab key for each figure; the arrow keys go from point to point, from left to right.
function travel(figure) {
  const left = (point) => point.querySelector(".reach").cx.baseVal.value;
  const points = [...figure.querySelectorAll(".mark")].sort((a, b) => left(a) - left(b));
  const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
  points.forEach((point, i) => point.setAttribute("tabindex", i === 0 ? "0" : "-1"));
  figure.addEventListener("keydown", (event) => {
    const here = points.indexOf(event.target.closest(".mark"));
    const ends = { Home: 0, End: points.length - 1 };
    const next = event.key in ends ? ends[event.key] : here + (steps[event.key] ?? 0);
    if (here < 0 || next === here || !points[next]) return;
    event.preventDefault();
    points[here].setAttribute("tabindex", "-1");
    points[next].setAttribute("tabindex", "0");
    points[next].focus({ preventScroll: true });
  });
}

document.querySelectorAll(".points").forEach(travel);

// Numbers by value, words by the alphabet; what is missing stays last.
function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const [x, y] = [Number(a), Number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return sign * a.localeCompare(b, "en", { numeric: true });
  return sign * (x - y);
}

function sort(header) {
  const table = header.closest("table");
  const column = header.cellIndex;
  const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of header.parentElement.cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", direction);
  const key = (row) => row.cells[column].dataset.key ?? row.cells[column].textContent.trim();
  const keyed = [...table.tBodies[0].rows].map((row) => [key(row), row]);
  keyed.sort(([a], [b]) => compare(a, b, direction === "ascending" ? 1 : -1));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

for (const header of document.querySelectorAll("th[aria-sort]")) {
  header.querySelector("button").addEventListener("click", () => sort(header));
}
