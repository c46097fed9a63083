// Keeps the page up to date without moving what the reader does: scroll, focus, open
// details and filters stay. Without it the page reloads itself.
(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const main = () => document.getElementById("main");
  let tag = "", ahead = 0, timer = 0, failedAt = 0, busy = false;

  const span = (s) => {
    const two = (n, unit, m, less) => n + " " + unit + (m ? " " + m + " " + less : "");
    if (s < 60) return Math.round(s) + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor(s / 60) % 60, "min");
    return two(Math.floor(s / 86400), "d", Math.floor(s / 3600) % 24, "h");
  };
  const due = "#observers td:nth-child(7) time"; // A poll that is due is not of the past.
  const tick = () => {
    for (const t of all("time[datetime]")) {
      const s = Math.round((Date.parse(t.dateTime) - Date.now() - ahead) / 1000);
      const text = s === 0 || s < 0 && t.matches(due) ? "now" : s > 0 ? "in " + span(s) : span(-s) + " ago";
      if (t.textContent !== text) t.textContent = text;
      if (!t.title) t.title = t.dateTime.replace("T", " ").replace("Z", " UTC");
    }
  };
  const filter = (input) => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of all("#" + input.dataset.for + " tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  };
  const prepare = () => {
    ahead = Date.parse(document.getElementById("now").textContent) - Date.now();
    for (const e of all(".copy")) e.hidden = false;
    for (const e of all(".filter")) {
      e.hidden = all("#" + e.dataset.for + " tbody tr").length < 10 && !e.value;
      filter(e);
    }
    tick();
  };

  // place names an element so that its successor can be found.
  const place = (e) => {
    const near = e && e.closest("#main, #main [id]"); // A card has no id.
    return near && { id: near.id, n: all("a, button, summary", near).indexOf(e) };
  };
  const find = (p) => {
    const near = p && document.getElementById(p.id);
    return near && (p.n < 0 ? near : all("a, button, summary", near)[p.n]);
  };
  const swap = (page) => {
    const from = main(), to = page.getElementById("main"), focus = document.activeElement;
    const at = place(focus), range = focus && focus.matches("input") ? [focus.selectionStart, focus.selectionEnd] : null;
    const old = all("[id]", from), scrolled = old.map((e) => [e.id, e.scrollLeft]);
    for (const e of old) {
      const next = page.getElementById(e.id);
      if (next && e.matches("details")) next.open = e.open;
      if (next && e.matches("input")) next.value = e.value;
    }
    document.title = page.title;
    document.getElementById("icon").href = page.getElementById("icon").getAttribute("href");
    document.getElementById("about").textContent = page.getElementById("about").textContent;
    const verdict = document.getElementById("verdict"), said = page.getElementById("verdict");
    verdict.className = said.className;
    if (verdict.textContent !== said.textContent) verdict.textContent = said.textContent; // It is read out.
    from.replaceChildren(...to.childNodes);
    prepare();
    for (const [id, left] of scrolled) if (left) { const e = document.getElementById(id); if (e) e.scrollLeft = left; }
    const next = find(at);
    if (next && next !== document.activeElement) {
      next.focus({ preventScroll: true });
      if (range) next.setSelectionRange(...range);
    }
  };
  const selecting = () => {
    const s = getSelection();
    return s && !s.isCollapsed && main().contains(s.anchorNode);
  };

  const offline = (why) => {
    failedAt = failedAt || Date.now();
    const e = document.getElementById("offline");
    e.textContent = "This node has not answered for " + span((Date.now() - failedAt) / 1000) + (why ? ": " + why : "") + ". What is shown is older.";
    e.hidden = false;
  };
  const update = async () => {
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    try {
      const answer = await fetch(location.pathname, { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store", signal: AbortSignal.timeout(15000) });
      if (answer.status === 200) {
        const text = await answer.text();
        if (!selecting()) {
          swap(new DOMParser().parseFromString(text, "text/html"));
          tag = answer.headers.get("ETag") || "";
        }
      } else if (answer.status !== 304) {
        throw new Error("HTTP " + answer.status);
      }
      failedAt = 0;
      document.getElementById("offline").hidden = true;
    } catch (err) {
      offline(err.message);
    }
    busy = false;
    timer = setTimeout(update, document.hidden ? 15000 : 2000);
  };

  document.addEventListener("input", (e) => { if (e.target.matches(".filter")) filter(e.target); });
  document.addEventListener("click", async (e) => {
    if (!e.target.matches(".copy")) return;
    const button = e.target, code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch { // Only secure pages may use the clipboard.
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
      getSelection().removeAllRanges();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) update(); });
  prepare();
  setInterval(tick, 1000);
  timer = setTimeout(update, 2000);
})();
