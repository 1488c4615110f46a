// The page on the wall: counts only, in letters for the last row.

import { bars, el, fill, follow, options, room, strips, words } from "./page.js";

const SIZE = 30; // pixels of the smallest letters

function lab(state) {
  if (!state) return el("p", {}, "Work on the lab. This wall shows how far the class is once five have run a check.");
  return [el("h2", {}, `Lab ${state.check}`),
    el("ul", { class: "progress" }, state.requirements.map(row => el("li", {}, el("span", {}, words(row.words)), el("b", {}, row.met)))),
    state.obstacle ? el("p", { class: "obstacle" }, "Most common obstacle: ", words(state.obstacle)) : null];
}

const count = (number, of, told) => el("p", { class: "count" }, number === null ? `Fewer than five ${told}` : `${number} of ${of} ${told}`);

function poll(state, joined) {
  const asked = el("h1", {}, words(state.text));
  const choices = state.options.length ? options(state) : el("p", {}, `A number, in ${state.unit}`);
  if (state.phase === "first") return [asked, choices, el("p", {}, "Vote alone, in your notebook."), count(state.votes, joined, "have voted")];
  if (state.phase === "discuss") return [asked, choices, el("p", {}, "Talk to your neighbour. Find out why they chose as they did."), el("p", { class: "clock", id: "clock" }, time())];
  if (state.phase === "second") return [asked, choices, el("p", {}, "Vote again."), count(state.votes, joined, "have voted again")];
  if (state.phase === "run") return [asked, choices, el("p", {}, "Run the cell now."), count(state.ran, joined, "have run it")];
  const width = room("wall");
  const voted = state.first.length || state.second.length;
  const result = !state.options.length ? choices : voted ? bars(state, state.right) : options(state, state.right);
  const numbers = strips(state, width, SIZE);
  const few = !voted && !numbers;
  return [asked, result, numbers, few ? el("p", {}, "Fewer than five have voted, so no votes are shown.") : null];
}

// Without seconds: nobody should count them down.
const time = () => new Date().toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
setInterval(() => {
  const clock = document.getElementById("clock");
  if (clock && clock.textContent !== time()) clock.textContent = time();
}, 1000);

let last = null;
const show = () => last && fill("wall", [last, innerWidth], () => {
  if (last.ended) return [el("h1", {}, "The class is over"), el("p", {}, "All explanations are open. Thank you.")];
  return last.poll ? poll(last.poll, last.joined) : [el("h1", {}, "Class"), lab(last.lab)].flat();
});
follow(state => { last = state; show(); });
addEventListener("resize", show);
