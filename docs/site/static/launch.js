// The button for a class's hub. Its address is asked once, kept in this browser, and goes nowhere else.
"use strict";

{
  const KEY = "kafkalab:hub";
  const kept = () => { try { return localStorage.getItem(KEY) ?? ""; } catch { return ""; } };
  const keep = (address) => { try { localStorage.setItem(KEY, address); } catch { /* private window */ } };

  /* The hub's own address, from whichever of its pages somebody has copied it; empty if it's none. */
  const hubOf = (text) => {
    try {
      const { protocol, origin, pathname } = new URL(text.trim());
      return /^https?:$/.test(protocol) ? origin + pathname.replace(/\/(hub|user)(\/.*)?$/, "").replace(/\/+$/, "") : "";
    } catch { return ""; }
  };

  for (const place of document.querySelectorAll(".launch .hub")) {
    place.innerHTML = `<a>Class hub</a> <button type="button" aria-expanded="false"></button>
      <form hidden novalidate><label>Your class hub's address <input type="url" placeholder="https://hub.example.org"></label>
      <button>Keep</button> <span class="wrong" role="alert"></span></form>`;
    const [link, button, form, field, wrong] = ["a", "button", "form", "input", ".wrong"].map((name) => place.querySelector(name));

    const unfold = (open) => { form.hidden = !open; button.setAttribute("aria-expanded", String(open)); };
    const show = (hub) => {
      link.hidden = !hub;
      if (hub) link.href = `${hub}/hub/user-redirect/lab/tree/${place.dataset.notebook}`;
      button.textContent = hub ? "Change" : "Class hub …";
      button.setAttribute("aria-label", hub ? "Change the class hub's address" : "Class hub: give its address");
      field.value = hub;
    };
    button.addEventListener("click", () => { unfold(form.hidden); if (!form.hidden) field.focus(); });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const hub = hubOf(field.value);
      const isWrong = !hub && field.value.trim();
      wrong.textContent = isWrong ? "That's no address of a hub. It begins with https:// and is what your teacher gave you." : "";
      if (isWrong) return;
      keep(hub);
      show(hub);
      unfold(false);
    });
    show(kept());
    place.hidden = false;
  }
}
