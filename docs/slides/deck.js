// Stills are as large as fits, and then the slides begin.
"use strict";

const WIDTH = 1160; // pixels of a slide that a still may take
const LARGEST = 2.2; // times its own size
const WIDTHS = ["max-content", "1160px", "900px", "700px", "520px"]; // a still's parts wrap, so that each gives another height

async function fit(still) {
  const copy = still.cloneNode(true);
  copy.classList.add("measured");
  document.body.append(copy);
  await Promise.all([...copy.querySelectorAll("img")].map((image) => image.decode()));
  const share = still.parentElement.querySelectorAll(":scope > .still").length;
  const room = Number(still.parentElement.dataset.room) / share;
  const scrolls = (element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
  let best = { zoom: 0 };
  for (const width of WIDTHS) {
    copy.style.width = width;
    if (width !== "max-content" && [copy, ...copy.querySelectorAll("*")].some(scrolls)) continue; // it would be cut off
    const zoom = Math.min(LARGEST, WIDTH / copy.offsetWidth, room / copy.offsetHeight);
    if (zoom > best.zoom) best = { zoom, width: copy.offsetWidth };
  }
  copy.remove();
  still.style.width = `${best.width + 1}px`;
  still.style.zoom = best.zoom;
}

Promise.all([...document.querySelectorAll(".still")].map(fit)).then(() => Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none", backgroundTransition: "none",
  navigationMode: "linear", controls: false, slideNumber: "c/t", pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1,
  plugins: [RevealNotes],
}));
