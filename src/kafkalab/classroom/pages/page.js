// What both pages share: elements, the state that the server sends, and drawings of votes and numbers.

export function el(tag, attributes = {}, ...children) {
  const element = tag === "svg" || attributes.svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "svg" || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return element;
}

// The course's words: backticks for code, asterisks for emphasis.
export function words(text) {
  return text.split(/(`[^`]+`|\*\w+\*)/).filter(Boolean).map(part => {
    if (/^`.+`$/.test(part)) return el("code", {}, part.slice(1, -1));
    return /^\*\w+\*$/.test(part) ? el("em", {}, part.slice(1, -1)) : part;
  });
}

export const letter = place => String.fromCharCode(65 + place);

// Calls a function with each new state. A page that lost the server says so, and the browser tries again by itself.
export function follow(show) {
  const problem = document.getElementById("problem");
  const events = new EventSource(`${location.pathname.replace(/\/$/, "")}/events`);
  let lost = false;
  events.onmessage = event => {
    if (lost) problem.textContent = "";
    lost = false;
    show(JSON.parse(event.data));
  };
  events.onerror = () => {
    lost = true;
    problem.textContent = "The board doesn't answer. This page goes on as soon as it does.";
  };
}

// Replaces what an element holds if that has changed. So a button stays the same while somebody presses it.
const shown = new Map();
export function fill(id, state, make) {
  const text = JSON.stringify(state);
  if (shown.get(id) === text) return;
  shown.set(id, text);
  const place = document.getElementById(id);
  const key = document.activeElement?.dataset?.key;
  place.replaceChildren(...[make()].flat().filter(child => child !== null && child !== ""));
  if (key) place.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

export function options(question, right = null) {
  return el("ol", { class: "options" }, question.options.map((option, place) =>
    el("li", { class: place === right ? "right" : undefined }, el("b", {}, letter(place)), el("span", {}, words(option),
      place === right ? el("span", { class: "note" }, " (what happened)") : null))));
}

// One row an option, with a bar for each vote.
export function bars(question, right = null) {
  const rounds = [["first vote", question.first], ["second vote", question.second]].filter(([, votes]) => votes.some(Boolean));
  const most = Math.max(1, ...rounds.flatMap(([, votes]) => votes));
  return el("div", { class: "bars" },
    rounds.length > 1 ? el("p", { class: "key" }, el("i", { class: "first" }), " first vote ", el("i", { class: "second" }), " second vote") : null,
    el("ol", { class: "options" }, question.options.map((option, place) => el("li", { class: place === right ? "right" : undefined },
      el("b", {}, letter(place)),
      el("div", {}, el("span", {}, words(option), place === right ? el("span", { class: "note" }, " (what happened)") : null),
        rounds.map(([name, votes]) => el("div", { class: "bar" },
          el("i", { class: name === "first vote" ? "first" : "second", style: { width: `${85 * votes[place] / most}%` } }),
          el("span", { "aria-label": `${votes[place]} in the ${name}` }, String(votes[place])))))))));
}

// The width in pixels that an element has for what it holds.
export function room(id) {
  const element = document.getElementById(id);
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  return element.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}

// Guesses and measurements as dots over one axis. Equal ones are stacked.
export function strips(question, width, size) {
  const rows = [["guessed", question.guesses, "first"], ["measured", question.measured, "second"]].filter(([, numbers]) => numbers.length);
  if (!rows.length) return "";
  const all = rows.flatMap(([, numbers]) => numbers);
  let [low, high] = [Math.min(0, ...all), Math.max(...all)];
  if (low === high) high = low + 1;
  const [left, right, radius] = [size * 6, size * 2, size * 0.35];
  const place = number => left + (width - left - right) * (number - low) / (high - low);
  const drawn = [];
  let top = size;
  for (const [name, numbers, kind] of rows) {
    const stacks = new Map();
    const placed = numbers.map(number => {
      const column = Math.round(place(number) / (2 * radius));
      stacks.set(column, (stacks.get(column) ?? 0) + 1);
      return [column * 2 * radius, stacks.get(column) - 1];
    });
    const height = Math.max(1, ...stacks.values()) * 2 * radius;
    drawn.push(el("text", { svg: true, x: 0, y: top + height, "font-size": size }, name));
    drawn.push(...placed.map(([x, stack]) =>
      el("circle", { svg: true, class: kind, cx: x, cy: top + height - radius - stack * 2 * radius, r: radius * 0.9 })));
    top += height + size * 0.8;
  }
  const ticks = [low, (low + high) / 2, high];
  drawn.push(el("line", { svg: true, class: "axis", x1: left, x2: width - right, y1: top, y2: top }));
  const tell = number => Number(number.toPrecision(3)).toLocaleString("en");
  drawn.push(...ticks.map(number => el("text", { svg: true, x: place(number), y: top + size * 1.2, "font-size": size, "text-anchor": "middle" },
    number === high ? `${tell(number)} ${question.unit}` : tell(number))));
  const told = rows.map(([name, numbers]) => `${name} by ${numbers.length}: ${tell(Math.min(...numbers))} to ${tell(Math.max(...numbers))} ${question.unit}`);
  return el("svg", { class: "strips", role: "img", "aria-label": told.join("; "), width, height: top + size * 1.8 }, drawn);
}
