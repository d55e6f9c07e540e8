// Copyright (c) 2026 railops.rdma contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

(() => {
  "use strict";
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = json("data"), verdict = json("verdict") || { states: {}, findings: {}, lost: {} };
  const ROW = 32, STATIC = 300;
  const SIGN = { o: ["\u2713", "ok"], b: ["\u2717", "bad"], u: ["\u00b7", "unknown"] };
  const WIDTH = { 4: 32n, 6: 128n };

  const text4 = (value) => {
    const n = Number(value);
    return [n >>> 24, n >>> 16 & 255, n >>> 8 & 255, n & 255].join(".");
  };
  const text6 = (value) => {
    const groups = [];
    for (let shift = 112n; shift >= 0n; shift -= 16n) groups.push(Number(value >> shift & 0xffffn));
    let best = -1, length = 1;
    for (let i = 0; i < 8; i++) {
      let run = 0;
      while (i + run < 8 && groups[i + run] === 0) run++;
      if (run > length) { best = i; length = run; }
    }
    const hex = groups.map((group) => group.toString(16));
    if (best < 0) return hex.join(":");
    return hex.slice(0, best).join(":") + "::" + hex.slice(best + length).join(":");
  };
  const text = (family, value) => family === 4 ? text4(value) : text6(value);
  const span = (family, [low, high]) =>
    low === high ? text(family, low) : text(family, low) + "-" + text(family, high);

  const parse4 = (word) => {
    const parts = word.split(".");
    if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256)) {
      return null;
    }
    return parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  };
  const parse6 = (word) => {
    if (!/^[0-9a-f:]+$/i.test(word)) return null;
    const halves = word.split("::");
    if (halves.length > 2) return null;
    const groups = halves.map((half) => half ? half.split(":") : []);
    const count = groups.reduce((sum, half) => sum + half.length, 0);
    if (halves.length === 1 ? count !== 8 : count > 7) return null;
    const all = halves.length === 1 ? groups[0] : [...groups[0], ...Array(8 - count).fill("0"), ...groups[1]];
    if (!all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null;
    return all.reduce((sum, group) => sum * 65536n + BigInt("0x" + group), 0n);
  };

  const ranges = (list) => list.map(([low, high]) => [BigInt(low), BigInt(high)]);
  const blocks = data.blocks.map((raw) => ({
    zone: raw.z, rail: raw.r, family: raw.f, length: raw.l, perNode: raw.n === 1,
    base: BigInt(raw.b), end: BigInt(raw.e), size: 1n << (WIDTH[raw.f] - BigInt(raw.l)),
    gateway: raw.g === null ? null : BigInt(raw.g), hosts: ranges(raw.h), pods: ranges(raw.p),
    cuts: new Map(Object.entries(raw.c || {}).map(([slot, [host, pods]]) =>
      [Number(slot), { host: host === null ? null : BigInt(host), pods: ranges(pods) }])),
  }));
  const hasPods = blocks.some((block) => block.pods.length);
  const index = new Map(blocks.map((block) => [block.zone + "/" + block.rail + "/" + block.family, block]));
  const first = (block, slot) => block.base + (block.perNode ? BigInt(slot) * block.size : 0n);
  const gatewayOf = (block, slot) => block.gateway === null ? null : first(block, slot) + block.gateway;
  const hostOf = (block, slot) => {
    const cut = block.cuts.get(slot);
    if (cut) return cut.host;
    if (block.perNode) return first(block, slot) + block.hosts[0][0];
    let rest = BigInt(slot);
    for (const [low, high] of block.hosts) {
      if (rest <= high - low) return block.base + low + rest;
      rest -= high - low + 1n;
    }
    return null;
  };
  const podsOf = (block, slot) => {
    const cut = block.cuts.get(slot);
    if (cut) return cut.pods;
    const start = first(block, slot);
    return block.pods.map(([low, high]) => [start + low, start + high]);
  };
  const subnetOf = (block, slot) => text(block.family, first(block, slot)) + "/" + block.length;

  const nodes = data.nodes.map(([name, zone, slot, profile], at) =>
    ({ name, zone, slot, profile, at, states: verdict.states[name] || "", lost: verdict.lost[name] }));
  // The domain that all names have in common is left out of the table.
  const domains = new Set(nodes.map((node) => node.name.replace(/^[^.]*/, "")));
  const domain = nodes.length > 1 && domains.size === 1 ? [...domains][0] : "";
  const brief = (name) => domain ? name.slice(0, -domain.length) : name;
  const bySlot = new Map(nodes.map((node) => [node.zone + "/" + node.slot, node]));
  const main = data.families[0];
  const cell = (node, rail) => {
    const block = index.get(node.zone + "/" + rail + "/" + main);
    const host = block ? hostOf(block, node.slot) : null;
    return host === null ? data.profiles[node.profile].interfaces[rail] : text(main, host);
  };

  const el = (tag, name, content) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (content !== undefined && content !== null) made.textContent = content;
    return made;
  };
  const zoned = data.zones.length > 1 || data.zones[0] !== "";
  const grid = document.getElementById("grid"), body = document.getElementById("rows");
  const search = document.getElementById("search"), answer = document.getElementById("answer");
  const detail = document.getElementById("detail"), count = document.getElementById("count");
  const only = document.getElementById("only");
  const cellWidth = main === 6 ? 13 : 7.5;
  grid.style.setProperty("--columns",
    "minmax(9rem, 1.5fr) " + (zoned ? "minmax(4rem, .6fr) " : "") + "3.6rem repeat(" + data.rails.length +
    ", minmax(" + cellWidth + "rem, 1fr))");
  grid.style.setProperty("--least", (14 + (zoned ? 4 : 0) + data.rails.length * cellWidth) + "rem");
  const head = document.getElementById("head");
  for (const title of ["Node", ...(zoned ? ["Zone"] : []), "Slot", ...data.rails]) head.append(el("span", "", title));

  let shown = nodes, open = null;
  const virtual = () => shown.length > STATIC;
  const makeRow = (node, position) => {
    const row = el("button", "row");
    row.type = "button";
    row.dataset.node = node.name;
    row.setAttribute("aria-pressed", String(open === node));
    const name = el("span", node.lost === undefined ? "" : "bad", (node.lost === undefined ? "" : "? ") + brief(node.name));
    name.title = node.lost === undefined ? node.name : node.name + ": " + node.lost;
    row.append(name);
    if (zoned) row.append(el("span", "", data.zones[node.zone]));
    row.append(el("span", "mono", String(node.slot)));
    data.rails.forEach((_rail, rail) => {
      const state = SIGN[node.states[rail]];
      const made = el("span", "mono" + (state ? " " + state[1] : ""),
        (state ? state[0] + " " : "") + cell(node, rail));
      row.append(made);
    });
    row.addEventListener("click", () => { open = open === node ? null : node; showDetail(); draw(); });
    if (virtual()) row.style.top = position * ROW + "px";
    return row;
  };
  const draw = () => {
    body.classList.toggle("virtual", virtual());
    document.getElementById("nodes").classList.toggle("toolong", virtual());
    body.style.height = virtual() ? shown.length * ROW + "px" : "";
    const from = virtual() ? Math.max(0, Math.floor(grid.scrollTop / ROW) - 8) : 0;
    const room = virtual() ? Math.ceil((grid.clientHeight || 600) / ROW) + 16 : shown.length;
    const rows = [];
    for (let at = from; at < Math.min(shown.length, from + room); at++) rows.push(makeRow(shown[at], at));
    if (!shown.length) rows.push(el("div", "empty", "No node fits."));
    body.replaceChildren(...rows);
  };

  const showDetail = () => {
    detail.replaceChildren();
    if (!open) return;
    const node = open, profile = data.profiles[node.profile];
    const place = (zoned ? "zone " + data.zones[node.zone] + ", " : "") + "slot " + node.slot;
    detail.append(el("h3", "", node.name), el("p", "note", place +
      (data.profiles.length > 1 ? ", interface names: " + profile.name : "")));
    if (node.lost !== undefined) detail.append(el("p", "bad", "No answer: " + node.lost));
    for (const [rail, id, cause, fix] of verdict.findings[node.name] || []) {
      const card = el("article", "card deviation");
      card.append(el("h3", "", (rail + " " + id).trim()), el("p", "", cause), el("p", "fix", fix));
      detail.append(card);
    }
    const table = el("table"), top = el("tr"), rows = el("tbody"), caption = el("thead");
    const titles = ["Rail", "Interface", "Subnet", "Node", "Gateway", "Pods"].slice(0, hasPods ? 6 : 5);
    for (const title of titles) top.append(el("th", "", title));
    caption.append(top);
    data.rails.forEach((rail, number) => {
      const own = blocks.filter((block) => block.zone === node.zone && block.rail === number);
      for (const block of own.length ? own : [null]) {
        const row = el("tr"), state = SIGN[node.states[number]];
        const name = el("td", state ? state[1] : "", (state ? state[0] + " " : "") + rail);
        row.append(name);
        const values = [profile.interfaces[number]];
        if (block) {
          const host = hostOf(block, node.slot), gateway = gatewayOf(block, node.slot);
          values.push(subnetOf(block, node.slot), host === null ? "" : text(block.family, host),
            gateway === null ? "" : text(block.family, gateway),
            podsOf(block, node.slot).map((pair) => span(block.family, pair)).join(", "));
        }
        for (const value of [...values, "", "", "", ""].slice(0, titles.length - 1)) row.append(el("td", "mono", value));
        rows.append(row);
      }
    });
    table.append(caption, rows);
    const wide = el("div", "wide");
    wide.append(table);
    detail.append(wide);
  };

  const within = (list, value) => list.some(([low, high]) => low <= value && value <= high);
  const owner = (family, value) => {
    let best = null;
    for (const block of blocks) {
      if (block.family !== family || value < block.base || value > block.end) continue;
      const rail = data.rails[block.rail], zone = data.zones[block.zone];
      const where = rail + (zone ? ", zone " + zone : "");
      const slot = block.perNode ? Number((value - block.base) / block.size) : 0;
      const node = block.perNode ? bySlot.get(block.zone + "/" + slot) : null;
      const subnet = subnetOf(block, slot);
      const found = (what, who) => ({ what: what + " on " + where + ", in " + subnet, node: who });
      if (value === gatewayOf(block, slot)) {
        return found("gateway" + (node ? " of " + node.name : block.perNode ? " of the free slot " + slot : ""), node);
      }
      if (block.perNode) {
        const name = node ? node.name : "the free slot " + slot;
        if (value === hostOf(block, slot)) return found("address of " + name, node);
        if (within(podsOf(block, slot), value)) return found("pod address of " + name, node);
        return found("address that nobody gets, in the subnet of " + name, node);
      }
      const offset = value - block.base;
      let passed = 0n;
      for (const [low, high] of block.hosts) {
        if (low <= offset && offset <= high) {
          const at = Number(passed + offset - low), who = bySlot.get(block.zone + "/" + at);
          return found("address of " + (who ? who.name : "the free slot " + at), who || null);
        }
        passed += high - low + 1n;
      }
      if (within(podsOf(block, 0), value)) return found("pod address", null);
      best = best || { what: "address that nobody gets, in " + subnet, node: null };
    }
    return best;
  };

  const apply = () => {
    const query = search.value.trim().toLowerCase();
    answer.textContent = "";
    let wanted = nodes;
    const four = parse4(query), six = query.includes(":") ? parse6(query) : null;
    if (four !== null || six !== null) {
      const found = owner(four !== null ? 4 : 6, four !== null ? four : six);
      answer.textContent = query + ": " + (found ? found.what + "." : "no address of this fabric.");
      wanted = found && found.node ? [found.node] : [];
      open = wanted.length ? wanted[0] : null;
    } else if (query) {
      const partial = /^[0-9a-f]*[.:][0-9a-f.:]*$/.test(query);
      wanted = nodes.filter((node) => node.name.toLowerCase().includes(query) ||
        data.zones[node.zone].toLowerCase() === query ||
        (partial && data.rails.some((_rail, rail) => cell(node, rail).startsWith(query))));
      if (open && !wanted.includes(open)) open = null;
      if (wanted.length === 1) open = wanted[0];
    } else {
      open = null;
    }
    if (only && only.checked) wanted = wanted.filter((node) => node.states.includes("b") || node.lost !== undefined);
    shown = wanted;
    const all = nodes.length.toLocaleString("en") + " nodes";
    count.textContent = shown.length === nodes.length ? all : shown.length.toLocaleString("en") + " of " + all;
    grid.scrollTop = 0;
    showDetail();
    draw();
  };
  const fromHash = () => {
    const found = new URLSearchParams(location.hash.slice(1));
    if (found.has("q")) search.value = found.get("q");
    if (only && found.has("bad")) only.checked = true;
    apply();
  };
  search.addEventListener("input", () => {
    apply();
    const query = search.value.trim();
    history.replaceState(null, "", query ? "#q=" + encodeURIComponent(query) : location.pathname + location.search);
  });
  if (only) only.addEventListener("change", apply);
  let waiting = false;
  grid.addEventListener("scroll", () => {
    if (!virtual() || waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  addEventListener("resize", () => { if (virtual()) draw(); });
  addEventListener("hashchange", fromHash);
  globalThis.railops = { data, nodes, index, hostOf, gatewayOf, podsOf, subnetOf, text, span, owner };
  fromHash();
})();
