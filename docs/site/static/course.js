// Predictions can be answered on the page: the choice is kept in this browser, and goes nowhere else.
"use strict";

// The arrows in the sidebar have no name for those who don't see them.
for (const arrow of document.querySelectorAll("nav li.has-children > details > summary")) {
  arrow.setAttribute("aria-label", `Labs of ${arrow.closest("li").querySelector("a").textContent.trim()}`);
}

const stored = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
const store = (key, value) => { try { localStorage.setItem(key, value); } catch { /* private window */ } };

for (const asked of document.querySelectorAll(".predict")) {
  const name = asked.dataset.predict;
  const key = `kafkalab:${location.pathname.split("/").pop()}:${name}`;
  const explained = document.querySelector(`.explained[data-predict="${CSS.escape(name)}"]`);
  const buttons = [...asked.querySelectorAll("button")];
  const field = asked.querySelector("input");

  const choose = (guess) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === guess));
    if (field) field.value = guess;
    if (!explained) return;
    explained.querySelector(".guess").textContent = `You predicted: ${guess}`;
    explained.open = true;
  };
  const guess = (value) => { store(key, value); choose(value); };

  for (const button of buttons) button.addEventListener("click", () => guess(button.textContent));
  if (field) field.addEventListener("change", () => { if (field.value.trim()) guess(field.value.trim()); });
  const before = stored(key);
  if (before !== null) choose(before);
}
