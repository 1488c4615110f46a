// Recordings play on the page: a button, and a slider for those who want to go through one at their own pace.
"use strict";

for (const player of document.querySelectorAll(".player")) {
  const { seconds, left, right } = Object.fromEntries(Object.entries(player.dataset).map(([name, value]) => [name, Number(value)]));
  const moments = [...player.querySelectorAll(".moment")];
  const curve = [...player.querySelectorAll(".record img")].at(-1); // beside the names, which stay
  const [button, slider, clock] = player.querySelector(".controls").children;
  const stays = matchMedia("(prefers-reduced-motion: reduce)");
  let timer = null;

  const show = (at) => {
    const shown = moments.findLast((moment) => Number(moment.dataset.at) <= at) ?? moments[0];
    for (const moment of moments) moment.hidden = moment !== shown;
    const end = left + (at / seconds) * (curve.offsetWidth - left - right);
    curve.style.clipPath = at < seconds ? `inset(0 ${curve.offsetWidth - end}px 0 0)` : "";
    slider.value = at;
    clock.textContent = `${at.toFixed(1)} s`;
    slider.setAttribute("aria-valuetext", `${at.toFixed(1)} seconds. ${shown.querySelector(".happened").textContent}`);
  };
  const pause = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  const step = (by) => {
    const at = Math.min(Number(slider.value) + by, seconds);
    show(at);
    if (at >= seconds) pause();
  };
  // With less motion, it goes from one change to the next, and each stays for a while.
  const nextChange = () => (moments.map((moment) => Number(moment.dataset.at)).find((at) => at > Number(slider.value)) ?? seconds);
  const play = () => {
    if (Number(slider.value) >= seconds) show(0);
    button.textContent = "Pause";
    timer = stays.matches
      ? setInterval(() => step(nextChange() + 0.05 - Number(slider.value)), 2000)
      : setInterval(() => step(0.1), 100);
  };

  button.addEventListener("click", () => (timer === null ? play() : pause()));
  slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
  player.querySelector(".controls").hidden = false;
  show(seconds);
}
