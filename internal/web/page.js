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

  // A strip shows the poll of the bar that the pointer or the arrow keys are at.
  const strips = "#observers svg", bars = 60, tip = document.getElementById("tip");
  let bar = null, polls = {};
  const named = (svg) => { const th = svg.closest("tr").cells[0]; return (th.querySelector("summary") || th).textContent; };
  const pollsOf = (id, at) => {
    if (polls.id !== id || polls.at !== at) {
      const list = fetch("/api/v1/polls?observer=" + encodeURIComponent(id), { signal: AbortSignal.timeout(5000) })
        .then((answer) => answer.ok ? answer.json() : []).catch(() => []);
      // Those which had ended when the page was made, newest first.
      polls = { id, at, list: list.then((l) => l.filter((p) => Date.parse(p.started_at) + p.duration_ms <= Date.parse(at))) };
    }
    return polls.list;
  };
  const hide = () => { bar = null; tip.hidden = true; };
  const show = async (svg, n) => {
    const label = svg.getAttribute("aria-label"), here = bar = { id: named(svg), n };
    const list = await pollsOf(here.id, document.getElementById("at").textContent);
    if (bar !== here) return;
    const p = bars - n <= parseInt(label) && list[bars - 1 - n]; // The label begins with their number.
    tip.textContent = p ? p.started_at.slice(0, 19).replace("T", " ") + " UTC: " + p.outcome + ", took " + (p.duration_ms < 1000 ? p.duration_ms + " ms" : span(p.duration_ms / 1000)) +
      ", " + p.rows + (p.rows === 1 ? " row" : " rows") + (p.poison_rows ? ", " + p.poison_rows + " poison" : "") + (p.reason ? ": " + p.reason.slice(0, 200) : "") : label;
    tip.hidden = false;
    const box = svg.getBoundingClientRect(), x = box.left + box.width * (n + .5) / bars - tip.offsetWidth / 2;
    tip.style.left = scrollX + Math.max(8, Math.min(x, document.documentElement.clientWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = scrollY + box.top - tip.offsetHeight - 6 + "px";
  };
  const leave = () => { if (!document.activeElement.matches(strips)) hide(); };
  const point = (e) => {
    const svg = e.target.closest(strips);
    if (!svg) {
      leave();
      return;
    }
    const box = svg.getBoundingClientRect(), n = Math.max(0, Math.min(bars - 1, Math.floor((e.clientX - box.left) / box.width * bars)));
    if (!bar || bar.n !== n || bar.id !== named(svg)) show(svg, n);
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -bars, End: bars };
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.documentElement.addEventListener("pointerleave", leave);
  document.addEventListener("focusin", (e) => { if (e.target.matches(strips) && !bar) show(e.target, bars - 1); });
  document.addEventListener("focusout", (e) => { if (e.target.matches(strips)) hide(); });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") hide();
    if (!e.target.matches(strips) || !steps[e.key]) return;
    e.preventDefault();
    show(e.target, Math.max(0, Math.min(bars - 1, (bar ? bar.n : bars - 1) + steps[e.key])));
  });

  const prepare = () => {
    for (const svg of all(strips)) {
      const title = svg.querySelector("title");
      svg.setAttribute("aria-label", title.textContent);
      svg.setAttribute("tabindex", "0");
      title.remove();
    }
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
    const at = place(focus), shown = bar, on = focus && focus.matches(strips) && named(focus), range = focus && focus.matches("input") ? [focus.selectionStart, focus.selectionEnd] : null;
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
    const strip = (id) => all(strips).find((svg) => named(svg) === id);
    if (shown && strip(shown.id)) show(strip(shown.id), shown.n);
    else hide();
    const next = on ? strip(on) : find(at);
    if (next && next !== document.activeElement) {
      next.focus({ preventScroll: true });
      if (range) next.setSelectionRange(...range);
      if (!shown) hide();
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
