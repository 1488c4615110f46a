// The instructor's page.

import { bars, el, fill, follow, options, room, strips, words } from "./page.js";

const problem = document.getElementById("problem");
const STEPS = [["first", "Ask"], ["discuss", "Discuss"], ["second", "Vote again"], ["run", "Run the cell"], ["revealed", "Reveal"]];
const TOLD = { polling: "runs", revealed: "revealed", released: "open" };

async function order(name, given = {}) {
  try {
    const answer = await fetch(`do/${name}`, { method: "POST", body: JSON.stringify(given) });
    const { problem: said } = await answer.json();
    problem.textContent = said ?? "";
    return answer.ok;
  } catch {
    problem.textContent = "The board doesn't answer. Is the class still running in the terminal?";
    return false;
  }
}

const button = (text, name, given, more = {}) =>
  el("button", { "data-key": `${name} ${JSON.stringify(given)}`, onclick: () => order(name, given), ...more }, text);

const minutes = count => (count === null ? "not yet" : count === 0 ? "now" : `${count} min`);
const nothing = text => el("p", { class: "nothing" }, text);

function help(calls) {
  if (!calls.length) return nothing("Nobody.");
  return el("ul", { class: "rows" }, calls.map(call => el("li", {}, el("b", {}, call.seat), el("span", {}, call.where),
    el("span", { class: "time" }, minutes(call.minutes)), button("Lower", "lower", { seat: call.seat }, { "aria-label": `Lower the call of ${call.seat}` }))));
}

function poll(state) {
  if (!state) return nothing("None runs. Ask one of today's questions.");
  const at = STEPS.findIndex(([phase]) => phase === state.phase);
  const steps = el("div", { class: "steps" }, STEPS.map(([phase, text], place) => {
    if (place === at) return el("span", { class: "now", "aria-current": "step" }, text);
    return state.next.includes(phase) ? button(text, "move", { phase }) : el("span", { class: place < at ? "done" : "later" }, text);
  }));
  const second = ["second", "run", "revealed"].includes(state.phase) && state.votes[1];
  const counts = [`first vote: ${state.votes[0]} of ${state.joined}`];
  if (second || state.phase === "second") counts.push(`second vote: ${state.votes[1]} of ${state.joined}`);
  if (["run", "revealed"].includes(state.phase)) counts.push(`have run the cell: ${state.ran} of ${state.joined}`);
  const width = room("poll");
  return [
    el("p", { class: "question" }, words(state.text)), steps, el("p", { class: "counts" }, counts.join(" · ")),
    state.advice ? el("p", { class: "advice" }, state.advice) : null,
    state.options.length ? (state.votes[0] || state.votes[1] ? bars(state, state.right) : options(state, state.right)) : strips(state, width, 15),
    state.phase === "revealed" ? button("Take it off the wall", "close", {}) : button("End it without a reveal", "release", { questions: [state.id] }, { class: "quiet" }),
  ];
}

function questions(all, runs) {
  const held = all.filter(question => question.state === "held");
  if (!all.length) return nothing("Today's chapters have none.");
  const notebooks = [...new Set(all.map(question => question.notebook))];
  return [...notebooks.flatMap(notebook => [el("h3", {}, notebook), el("ul", { class: "rows questions" },
    all.filter(question => question.notebook === notebook).map(question => el("li", { class: question.state },
      el("span", { class: "text" }, words(question.text)),
      question.state !== "held" ? el("span", { class: "state" }, TOLD[question.state]) : [
        button("Ask", "ask", { question: question.id }, { disabled: runs, "aria-label": `Ask: ${question.text}` }),
        button("Don't poll", "release", { questions: [question.id] }, { class: "quiet", "aria-label": `Don't poll: ${question.text}` })])))]),
    held.length > 1 && !runs ? button("Open all the others without a poll", "release", { questions: held.map(question => question.id) }, { class: "quiet" }) : null];
}

function failing(rows) {
  if (!rows.length) return nothing("Nothing: no requirement is unmet at three seats or more.");
  return el("ul", { class: "rows" }, rows.map(row => el("li", {}, el("span", { class: "text" }, words(row.words), el("small", {}, ` ${row.check}, ${row.number}`)),
    el("b", {}, `${row.seats} seats`))));
}

function stuck(rows) {
  if (!rows.length) return nothing("Nobody has tried the same thing three times for eight minutes.");
  return el("ul", { class: "rows" }, rows.map(row => el("li", {}, el("b", {}, row.seat), el("span", { class: "text" }, words(row.words), el("small", {}, ` ${row.check}`)),
    el("span", { class: "time" }, `${row.minutes} min, ${row.attempts} attempts, ${row.hints} hints`))));
}

function seats(rows) {
  if (!rows.length) return nothing("Nobody has joined yet.");
  const head = ["Seat", "Exercise", "Last check", "Done", "Last seen"].map(text => el("th", { scope: "col" }, text));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "h-seats" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows.map(row => el("tr", {},
    el("th", { scope: "row" }, row.seat, row.foreign ? el("small", {}, ` ${row.foreign} records are no events`) : null), el("td", {}, row.exercise),
    el("td", {}, row.of === null ? "" : `${row.met} of ${row.of}`), el("td", {}, row.done), el("td", {}, minutes(row.minutes)))))));
}

function copy() {
  const said = el("p", { role: "status" });
  const give = async () => { said.textContent = (await order("copy")) ? "The class can read class.anonymous now." : ""; };
  return [el("p", {}, "Give the class its own events, without seats. Do it before you end the class."), el("button", { onclick: give }, "Copy to class.anonymous"), said];
}

document.getElementById("end").addEventListener("click", () => {
  if (confirm("End the class for all? Explanations open, and the seats' events are deleted.")) order("end");
});

let said = "";
follow(state => {
  if (state.problem !== said) problem.textContent = said = state.problem;
  document.getElementById("joined").textContent = state.ended ? "The class is over." : `${state.seats.length} ${state.seats.length === 1 ? "seat" : "seats"} joined`;
  document.getElementById("wall").href = state.wall;
  document.getElementById("end").disabled = state.ended;
  const runs = state.ended || (state.poll !== null && state.poll.phase !== "revealed");
  fill("help", state.help, () => help(state.help));
  fill("poll", state.poll, () => poll(state.poll));
  fill("questions", [state.questions, runs], () => questions(state.questions, runs));
  fill("failing", state.failing, () => failing(state.failing));
  fill("stuck", state.stuck, () => stuck(state.stuck));
  fill("seats", state.seats, () => seats(state.seats));
  fill("copy", state.ended, () => (state.ended ? nothing("The class is over.") : copy()));
});
