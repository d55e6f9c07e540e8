// Copyright (c) 2026 railops.rdma contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

(() => {
  "use strict";
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = json("data"), verdict = json("verdict");
  // All texts come from the plan and from hosts. They are only ever added as text.
  const el = (tag, name, ...content) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...content.filter((item) => item !== null && item !== undefined && item !== ""));
    return made;
  };
  const button = (text, action, name) => {
    const made = el("button", name || "", text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  };
  const number = (value) => Number(value).toLocaleString("en");
  const count = (value, noun) => number(value) + " " + noun + (value === 1 ? "" : "s");
  const table = (titles, rows) => el("div", "wide", el("table", "",
    el("thead", "", el("tr", "", ...titles.map((title) => el("th", "", title)))),
    el("tbody", "", ...rows.map((row) => el("tr", "", ...row.map((value) =>
      value instanceof HTMLTableCellElement ? value : el("td", "", value)))))));
  const section = (id, title, note, ...content) => {
    const made = el("section", "", el("h2", "", title), note ? el("p", "note", note) : null, ...content);
    made.id = id;
    return made;
  };
  const cut = (text) => text.length <= 240 ? text : text.slice(0, 239) + "\u2026";
  const utc = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";

  // A state has a shape, a color and a name; the first is the worst.
  const STATES = {
    b: ["\u2717", "bad", "deviates"], l: ["?", "lost", "no answer"], a: ["\u25c7", "affected", "affected by another host"],
    w: ["\u25b2", "warn", "warning"], u: ["\u00b7", "unknown", "not checked"], x: ["\u2013", "out", "out of service"],
    o: ["\u2713", "ok", "as planned"],
  };
  const RANK = Object.keys(STATES);
  const sign = (state) => el("i", "sign " + STATES[state][1], STATES[state][0]);

  // --- nodes -----------------------------------------------------------------------------------------------------
  const rails = data.rails;
  const nodes = data.nodes.map(([name, zone, slot, profile, addresses, cables], at) => {
    const seen = verdict ? verdict.states[name] : "";
    const more = verdict && verdict.details[name] || { host: name, error: "", checks: [] };
    const states = rails.map((_rail, rail) => verdict ? (seen || "").length > 1 ? seen[rail] : seen || "u" : "");
    const own = more.checks.some(([status, rail]) => status === "deviation" && !rail);
    const worst = Math.min(...states.map((state) => RANK.indexOf(state)), own ? 0 : RANK.length);
    return { name, zone, slot, profile, at, states, own, worst, ...more,
      leaves: rails.map((_rail, rail) => (cables[rail] || [""])[0] || data.zones[zone].leaves[rail] || ""),
      ports: rails.map((_rail, rail) => (cables[rail] || ["", ""])[1]),
      addresses: rails.map((_rail, rail) => (addresses[rail] || []).map((text) => text.split("|"))) };
  });
  if (verdict) nodes.sort((one, other) => one.worst - other.worst || one.at - other.at);
  const byHost = new Map(nodes.map((node) => [node.host, node]));
  const full = nodes.some((node) => node.addresses.some((rail) => rail.some((parts) => parts.length > 1)));
  const short = !full && nodes.some((node) => node.addresses.some((rail) => rail.length));
  const zoned = data.zones.length > 1 || data.zones[0].name !== "";
  const cabled = nodes.some((node) => node.leaves.some(Boolean));
  // The domain that all names have in common is left out of the table.
  const domains = new Set(nodes.map((node) => node.name.replace(/^[^.]*/, "")));
  const domain = nodes.length > 1 && domains.size === 1 ? [...domains][0] : "";
  const shortName = (name) => domain ? name.slice(0, -domain.length) : name;
  const address = (node, rail) => node.addresses[rail].length
    ? node.addresses[rail][0][0].replace(/\/.*/, "") : data.profiles[node.profile].interfaces[rail];

  // --- copying ---------------------------------------------------------------------------------------------------
  const copy = (text, label) => {
    const made = button(label, async () => {
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // Without a secure context there is only the old way.
        const area = el("textarea", "", text);
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      made.textContent = "Copied";
      setTimeout(() => { made.textContent = label; }, 1500);
    }, "copy");
    made.dataset.copy = text;
    return made;
  };
  const command = (text) => el("div", "command", el("pre", "", text), copy(text, "Copy"));

  // --- banner ----------------------------------------------------------------------------------------------------
  const main = document.getElementById("page");
  const bad = nodes.filter((node) => node.worst === 0);
  const badRails = nodes.reduce((sum, node) => sum + node.states.filter((state) => state === "b").length, 0);
  const lost = nodes.filter((node) => node.states[0] === "l");
  const ago = (seconds) => {
    for (const [size, noun] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
      if (seconds >= size) return count(Math.floor(seconds / size), noun) + " ago";
    }
    return "just now";
  };
  const banner = () => {
    const { planned, run, by_option: chosenNot, skipped: missed } = verdict.coverage || { planned: 0, run: 0, by_option: 0, skipped: 0 };
    const gaps = missed > 0;
    const kind = verdict.status === "pass" ? gaps ? "warn" : "ok" : verdict.status === "incomplete" ? "warn" : "bad";
    const title = { pass: gaps ? "Pass, partial" : "Pass", deviation: "Deviation", incomplete: "Incomplete", error: "Error" };
    const parts = [];
    if (bad.length) parts.push(number(bad.length) + " of " + count(nodes.length, "node"));
    if (badRails) parts.push(number(badRails) + " of " + count(nodes.length * rails.length, "rail"));
    if (lost.length) parts.push(count(lost.length, "node") + " without an answer");
    if (!parts.length) parts.push(count(nodes.length, "node") + ", " + count(nodes.length * rails.length, "rail"));
    const made = el("section", "banner " + kind,
      el("div", "status", el("i", "", { ok: "\u2713", warn: "\u25b2", bad: "\u2717" }[kind]),
        el("b", "", title[verdict.status] || verdict.status), el("span", "", parts.join(", "))));
    const first = verdict.causes[0], rest = verdict.causes.length + verdict.more - 1;
    if (first) made.append(el("p", "cause", "Cause: " + cut(first.sentence), rest > 0 ? " (and " + count(rest, "more cause") + ")" : null));
    const left = [...(chosenNot ? [number(chosenNot) + " skipped by options"] : []), ...(missed ? [number(missed) + " skipped" + (chosenNot ? " for other reasons" : "")] : [])];
    const others = verdict.sections.filter(([, status]) => status !== "pass").map(([name, status, why]) => name + ": " + status + (why ? " (" + why + ")" : ""));
    made.append(el("p", "sub", [number(run) + " of " + count(planned, "check") + " ran" + (left.length ? " (" + left.join(", ") + ")" : ""), ...others].join("; ") + "."));
    if (verdict.time) {
      const age = el("p", "sub age");
      const show = () => {
        const seconds = Date.now() / 1000 - verdict.time;
        age.textContent = "Checked " + ago(seconds) + ", " + utc(verdict.time) + ".";
        age.classList.toggle("stale", seconds > 7200);
      };
      show();
      setInterval(show, 60000);
      made.append(age);
    }
    if (verdict.history.length) {
      const runs = el("p", "runs", el("span", "sub", "Verdicts before this one, newest first: "));
      for (const [time, status, many] of verdict.history) {
        const mark = sign(status === "pass" ? "o" : status === "incomplete" ? "l" : "b");
        mark.title = utc(time) + ": " + status + ", " + count(many, "cause");
        runs.append(mark);
      }
      made.append(runs);
    }
    return made;
  };

  // --- cards -----------------------------------------------------------------------------------------------------
  const IMPACT = { none: "no reboot, no drain", rail_restart: "restarts the rail", drain: "drain the node first",
    reboot: "reboot", physical: "work at the hardware" };
  const names = (list, limit) => list.length <= limit ? list.join(", ")
    : list.slice(0, limit).join(", ") + " and " + number(list.length - limit) + " more";
  const card = (cause, kind, at) => {
    const made = el("article", "card " + kind);
    const chips = el("p", "chips", el("span", "chip", cause.check));
    if (cause.impact && (cause.command || cause.impact !== "none")) chips.append(el("span", "chip", IMPACT[cause.impact] || cause.impact));
    if (cause.since === null && verdict.history.length) chips.append(el("span", "chip new", "new"));
    if (cause.since) chips.append(el("span", "chip", "since " + utc(cause.since)));
    made.append(el("h3", "", cut(cause.sentence)), chips);
    if (cause.command) made.append(command(cause.command));
    else if (cause.fix) made.append(el("p", "fix", cause.fix));
    const notes = [];
    if (cause.follows) notes.push(count(cause.follows, "more check") + (cause.follows > 1 ? " follow" : " follows") + " from this.");
    if (cause.affected.length) notes.push("Affected: " + names(cause.affected, 8) + ".");
    if (cause.undecided) notes.push("Either end may be at fault.");
    if (notes.length) made.append(el("p", "sub", notes.join(" ")));
    const actions = el("p", "actions");
    const limit = cause.command.includes(" --limit ") ? cause.command.replace(/.* --limit /, "") : cause.hosts.length <= 10 ? cause.hosts.join(",") : "";
    if (limit) actions.append(copy("--limit " + limit, "Copy --limit"));
    if (kind === "bad" && cause.hosts.some((host) => byHost.has(host))) {
      actions.append(button("Show " + (cause.hosts.length > 1 ? count(cause.hosts.length, "node") : "the node"), () => {
        only = at;
        search.value = "";
        apply();
        document.getElementById("nodes").scrollIntoView();
      }));
    }
    if (actions.childNodes.length) made.append(actions);
    const more = cut(cause.sentence) === cause.sentence ? [] : [el("p", "", cause.sentence)];
    if (cause.command && cause.fix) more.push(el("p", "", cause.fix));
    if (cause.expected || cause.actual) {
      more.push(el("p", "", el("b", "", "Expected: "), el("code", "", cause.expected || "nothing")),
        el("p", "", el("b", "", "Actual: "), el("code", "", cause.actual || "nothing")));
    }
    if (cause.hosts.length > 1) more.push(el("p", "", el("b", "", "Hosts: "), names(cause.hosts, 2000)));
    if (cause.rails.length > 1) more.push(el("p", "", el("b", "", "Rails: "), cause.rails.join(", ")));
    if (cause.runbook) more.push(el("p", "", el("b", "", "Runbook: "), cause.runbook));
    made.append(el("details", "", el("summary", "", "Details"), ...more));
    return made;
  };
  const todo = () => verdict.commands.length < 2 ? null : el("details", "todo",
    el("summary", "", "Do this: " + count(verdict.commands.length, "command") + ", least impact first"),
    ...verdict.commands.flatMap(([impact, line]) => [el("p", "sub", IMPACT[impact] || impact), command(line)]));
  const SHOWN = 12;
  const cards = (list, kind) => {
    const box = el("div", "cards", ...list.slice(0, SHOWN).map((cause, at) => card(cause, kind, at)));
    if (list.length > SHOWN) {
      const rest = button("Show " + number(list.length - SHOWN) + " more", () =>
        rest.replaceWith(...list.slice(SHOWN).map((cause, at) => card(cause, kind, at + SHOWN))));
      box.append(rest);
    }
    return box;
  };
  const changes = () => {
    if (!verdict.history.length) return null;
    const fresh = verdict.causes.filter((cause) => cause.since === null).length;
    const text = "Since the last verdict (" + utc(verdict.history[0][0]) + "): " + number(fresh) + " new, " +
      number(verdict.resolved.length) + " resolved, " + number(verdict.causes.length - fresh) + " unchanged.";
    if (!verdict.resolved.length) return el("p", "note", text);
    return el("details", "note", el("summary", "", text),
      el("ul", "", ...verdict.resolved.map((sentence) => el("li", "", "Resolved: " + sentence))));
  };

  // --- the table of nodes ----------------------------------------------------------------------------------------
  const ROW = 30, STATIC = 300;
  const search = el("input"), answer = el("p", "answer"), detail = el("div", "detail"), total = el("span", "sub");
  const chosen = el("p", "chosen"), head = el("div", "head"), body = el("div", "body"), grid = el("div", "grid", head, body);
  const wrong = el("input"), plain = el("input"), view = el("select");
  let only = null, shown = nodes, rows = nodes, open = null;
  search.type = "search";
  search.id = "search";
  search.placeholder = "node, rail, leaf, address" + (verdict ? ", check or cause" : "");
  search.setAttribute("aria-label", "Search nodes");
  search.autocomplete = "off";
  search.spellcheck = false;
  total.id = "count";
  answer.id = "answer";
  detail.id = "detail";
  body.id = "rows";
  grid.tabIndex = 0;
  for (const item of [answer, total]) item.setAttribute("role", "status");
  wrong.type = plain.type = "checkbox";
  wrong.id = "only";
  plain.id = "addresses";
  plain.checked = !verdict;
  view.id = "view";
  for (const [value, text] of [["node", "by node"], ...(cabled ? [["leaf", "by leaf"]] : []), ...(zoned ? [["zone", "by zone"]] : [])]) {
    const option = el("option", "", text);
    option.value = value;
    view.append(option);
  }
  const cellOf = (node, rail) => {
    const state = node.states[rail], text = plain.checked ? address(node, rail) : "";
    const made = el("span", "cell " + (state ? STATES[state][1] : "") + (text ? "" : " bare"), state ? sign(state) : null, text);
    made.title = rails[rail] + ": " + address(node, rail) + (state ? ", " + STATES[state][2] : "");
    return made;
  };
  // Of a leaf or a zone: how many of its nodes deviate on each rail.
  const grouped = () => {
    const groups = new Map();
    for (const node of shown) {
      rails.forEach((_rail, rail) => {
        const leaf = view.value === "leaf" ? node.leaves[rail] : "", zone = data.zones[node.zone].name;
        const key = JSON.stringify([zone, leaf]);
        if (!groups.has(key)) groups.set(key, { name: leaf || zone || "no leaf", zone, query: leaf || zone, rails: rails.map(() => []) });
        groups.get(key).rails[rail].push(node.states[rail]);
      });
    }
    const of = (group) => group.rails.flat().filter((state) => state === "b").length;
    return [...groups.values()].sort((one, other) => of(other) - of(one));
  };
  const groupCell = (states) => {
    if (!states.length) return el("span", "cell");
    if (!verdict) return el("span", "cell", number(states.length));
    const worst = RANK.find((state) => states.includes(state)), many = states.filter((state) => state === worst).length;
    const made = el("span", "cell " + STATES[worst][1], sign(worst), many === states.length ? number(many) : number(many) + " of " + number(states.length));
    made.title = STATES[worst][2];
    return made;
  };
  const virtual = () => rows.length > STATIC;
  const makeRow = (item, position) => {
    const row = button("", () => {
      if (item.rails) {
        view.value = "node";
        search.value = item.query;
        apply();
      } else {
        open = open === item ? null : item;
        showDetail();
        draw();
      }
    }, "row");
    const name = el("span", "", item.own ? sign("b") : null, item.rails ? item.name : shortName(item.name));
    name.title = item.error || item.name;
    row.append(name);
    if (zoned) row.append(el("span", "", item.rails ? item.zone : data.zones[item.zone].name));
    if (item.rails) {
      row.append(...item.rails.map(groupCell));
    } else {
      row.dataset.node = item.name;
      row.setAttribute("aria-pressed", String(open === item));
      row.append(...rails.map((_rail, rail) => cellOf(item, rail)));
    }
    if (virtual()) row.style.top = position * ROW + "px";
    return row;
  };
  const columns = () => {
    const wide = plain.checked && view.value === "node";
    const longest = wide ? Math.max(...nodes.slice(0, 500).map((node) => Math.max(...rails.map((_rail, rail) => address(node, rail).length)))) : 0;
    const cell = wide ? Math.max(5, longest * 0.52 + 2) : view.value === "node" ? 3.8 : 6;
    grid.style.setProperty("--columns", "minmax(8rem, 1.2fr) " + (zoned ? "minmax(4rem, .6fr) " : "") +
      "repeat(" + rails.length + ", minmax(" + cell + "rem, 1fr))");
    grid.style.setProperty("--least", (8 + (zoned ? 4 : 0) + rails.length * cell) + "rem");
    head.replaceChildren(el("span", "", { node: "Node", leaf: "Leaf", zone: "Zone" }[view.value]), ...(zoned ? [el("span", "", "Zone")] : []),
      ...rails.map((rail, at) => {
        const many = nodes.filter((node) => node.states[at] === "b").length;
        const made = el("span", "", rail, many ? el("b", "bad", "\u2717" + number(many)) : null);
        made.title = rail + (many ? ": " + count(many, "node") + " deviate" + (many > 1 ? "" : "s") : "");
        return made;
      }));
  };
  const draw = () => {
    body.classList.toggle("virtual", virtual());
    document.body.classList.toggle("toolong", virtual());
    body.style.height = virtual() ? rows.length * ROW + "px" : "";
    const from = virtual() ? Math.max(0, Math.floor(grid.scrollTop / ROW) - 8) : 0;
    const room = virtual() ? Math.ceil((grid.clientHeight || 600) / ROW) + 16 : rows.length;
    const made = rows.slice(from, from + room).map((item, at) => makeRow(item, from + at));
    body.replaceChildren(...made.length ? made : [el("div", "empty", "No node matches.")]);
  };

  const showDetail = () => {
    detail.replaceChildren();
    if (!open) return;
    const node = open, profile = data.profiles[node.profile];
    const place = (zoned ? "zone " + data.zones[node.zone].name + ", " : "") + "slot " + node.slot;
    detail.append(el("h3", "", node.name), el("p", "note", place +
      (data.profiles.length > 1 ? ", interface names: " + profile.name : "")));
    if (node.error) detail.append(el("p", "bad", "No answer: " + node.error));
    for (const [status, rail, id, cause, fix, root] of node.checks) {
      const state = { warning: "w", affected: "a" }[status] || "b";
      detail.append(el("p", root ? "sub" : "", sign(state), el("b", "", (rail + " " + id).trim() + ": "),
        root ? "follows from " + root + "." : [cause, fix].filter(Boolean).join(" ")));
    }
    const mono = (text) => el("td", "", text ? el("code", "", text) : "");
    const own = [];
    rails.forEach((rail, at) => {
      for (const parts of node.addresses[at].length ? node.addresses[at] : [[]]) {
        own.push([el("td", "", node.states[at] ? sign(node.states[at]) : null, rail), mono(profile.interfaces[at]),
          ...(cabled ? [el("td", "", (node.leaves[at] + " " + node.ports[at]).trim())] : []), mono(parts[0]),
          ...(full ? [mono(parts[1]), ...(data.pods ? [mono(parts[2])] : [])] : [])]);
      }
    });
    const titles = ["Rail", "Interface", ...(cabled ? ["Leaf"] : []), "Address", ...(full ? ["Gateway", ...(data.pods ? ["Pods"] : [])] : [])];
    detail.append(table(titles, own), short ? el("p", "note", "hosts/" + node.host + ".json has gateways and subnets.") : "");
  };

  // --- searching -------------------------------------------------------------------------------------------------
  // Addresses are compared as text of one width; null is no complete address.
  const padded = (text) => {
    if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return text.split(".").map((part) => part.padStart(3, "0")).join(".");
    if (!/^[0-9a-f]*:[0-9a-f:]*$/i.test(text)) return null;
    const halves = text.toLowerCase().split("::").map((half) => half ? half.split(":") : []);
    const there = halves.flat().length;
    if (halves.length > 2 || (halves.length === 1 ? there !== 8 : there > 7) || halves.flat().some((part) => part.length > 4)) return null;
    const gap = halves.length === 1 ? [] : Array(8 - there).fill("0");
    return [...halves[0], ...gap, ...(halves[1] || [])].map((part) => part.padStart(4, "0")).join(":");
  };
  const inside = (range, value) => range.split(", ").filter(Boolean).some((span) => {
    const [low, high] = span.split("-").map(padded);
    return low.length === value.length && low <= value && value <= (high || low);
  });
  const owners = (value) => {
    const found = [];
    for (const node of nodes) {
      node.addresses.forEach((families, rail) => families.forEach(([own, gateway, pods]) => {
        const what = padded(own.replace(/\/.*/, "")) === value ? "address" : gateway && padded(gateway) === value ? "gateway"
          : pods && inside(pods, value) ? "pod address" : null;
        if (what) found.push({ what, node, rail });
      }));
    }
    return found;
  };
  const fits = (node, word) => node.name.toLowerCase().includes(word) || data.zones[node.zone].name.toLowerCase() === word ||
    node.leaves.some((leaf) => leaf.toLowerCase() === word) ||
    rails.some((rail, at) => rail.toLowerCase() === word && (!verdict || node.states[at] !== "o")) ||
    (/^[0-9a-f]*[.:]/.test(word) && node.addresses.some((rail) => rail.some(([own]) => own.startsWith(word)))) ||
    node.checks.some((row) => row.some((text) => text.toLowerCase().includes(word)));
  const apply = () => {
    const query = search.value.trim().toLowerCase(), value = padded(query);
    answer.textContent = "";
    open = null;
    shown = nodes;
    if (value !== null) {
      const found = owners(value);
      shown = found.map((row) => row.node);
      const [first] = found;
      answer.textContent = query + ": " + (!first ? short ? "no address of a node. hosts/ has gateways and pods' addresses." : "no address of this fabric."
        : first.what + (found.length > 1 ? " of " + count(found.length, "node") : " of " + first.node.name) + " on " + rails[first.rail] + ".");
    } else if (query) {
      const words = query.split(/\s+/);
      shown = nodes.filter((node) => words.every((word) => fits(node, word)));
    }
    if (only !== null) {
      const hosts = new Set(verdict.causes[only].hosts);
      shown = shown.filter((node) => hosts.has(node.host));
    }
    if (wrong.checked) shown = shown.filter((node) => node.worst < RANK.indexOf("w"));
    if (query && shown.length === 1) open = shown[0];
    chosen.replaceChildren(...only === null ? [] : ["Only: " + cut(verdict.causes[only].sentence) + " ", button("Show all", () => { only = null; apply(); })]);
    rows = view.value === "node" ? shown : grouped();
    total.textContent = shown.length === nodes.length ? count(nodes.length, "node") : number(shown.length) + " of " + count(nodes.length, "node");
    grid.scrollTop = 0;
    columns();
    showDetail();
    draw();
  };
  const csv = () => {
    // A cell that a spreadsheet would take for a formula begins with an apostrophe.
    const cell = (text) => '"' + String(text).replace(/^[=+@\t\r-]/, "'$&").replace(/"/g, '""') + '"';
    const lines = [["node", "zone", "rail", "leaf", "port", "interface", "address", "state", "checks"]];
    for (const node of shown) {
      rails.forEach((rail, at) => lines.push([node.name, data.zones[node.zone].name, rail, node.leaves[at], node.ports[at],
        data.profiles[node.profile].interfaces[at], node.addresses[at].map(([own]) => own).join(" "),
        node.states[at] ? STATES[node.states[at]][2] : "", node.checks.filter((row) => row[1] === rail).map((row) => row[2]).join(" ")]));
    }
    return lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  const save = () => {
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = data.name + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const nodesSection = () => {
    const label = (box, text) => el("label", "", box, " " + text);
    const legend = el("p", "legend");
    if (verdict) {
      const seen = new Set(nodes.flatMap((node) => node.states));
      for (const state of RANK) if (seen.has(state)) legend.append(el("span", "", sign(state), STATES[state][2]));
    }
    const note = "Search by node, zone, rail, leaf or address. Select a row for all addresses of a node." +
      (short ? " Above 1,000 nodes the page lists the nodes' own addresses only." : "");
    return section("nodes", "Nodes", note, el("div", "find", search, verdict ? label(wrong, "only not as planned") : null,
      verdict ? label(plain, "addresses") : null, view.options.length > 1 ? view : null, button("CSV", save), total),
    legend, chosen, answer, detail,
    el("p", "paper note", count(nodes.length, "node") + ". More than 300 are not printed: filter them on the screen first, or read hosts/."), grid);
  };

  // --- the plan --------------------------------------------------------------------------------------------------
  const railsTable = () => {
    const { titles, rows: lines, code } = data.table;
    let rail = -1;
    const made = lines.map((line) => {
      const cells = line.map((text, at) => el("td", "", code.includes(titles[at]) && text ? el("code", "", text) : text));
      if (line[0]) rail += 1;
      if (!verdict) return cells;
      const column = nodes.map((node) => node.states[rail]), good = column.filter((state) => state === "o" || state === "w").length;
      const worst = RANK.find((state) => column.includes(state)) || "u";
      return [el("td", "", ...line[0] ? [sign(worst), number(good) + " of " + number(column.length)] : []), ...cells];
    });
    return section("rails", "Rails", data.routes, table([...(verdict ? ["As planned"] : []), ...titles], made),
      cabled ? null : el("p", "note", "Leaf names are not declared (fabric_leaves)."));
  };
  const bar = (parts) => {
    const made = el("div", "bar");
    for (const [left, width, title, name] of parts.filter((part) => part[1] > 0)) {
      const part = el("i", name || "");
      part.style.left = left + "%";
      part.style.width = "max(2px, " + width + "% - 1px)";
      part.title = title;
      made.append(part);
    }
    return made;
  };
  const capacity = () => {
    const addresses = data.zones.some((zone) => zone.supernets.length);
    const lines = data.zones.map(({ name, group, supernets, slots: [used, retired, free, all] }) => [
      ...(zoned ? [name, group] : []), ...(addresses ? [el("td", "", el("code", "", supernets.join(" ")))] : []),
      el("td", "slots", bar([[0, 100 * used / all, used + " used"], [100 * used / all, 100 * retired / all, retired + " retired", "retired"]])),
      ...[used, retired, free, all].map(number)]);
    return section("capacity", "Capacity", data.growth,
      table([...(zoned ? ["Zone", "Group"] : []), ...(addresses ? ["Supernets"] : []), "Slots in use", "Used", "Retired", "Free", "Slots"], lines));
  };
  const skipped = () => verdict && verdict.skipped.length ? section("skipped", "Skipped checks", "",
    table(["Reason", "Checks", "Hosts"], verdict.skipped.map(([why, ids, hosts]) => [why, ids.join(", "), number(hosts)]))) : null;
  const profiles = () => data.declared || !data.profiles.length ? null : section("profiles", "Interface names",
    "Nodes name their interfaces in several ways." + (data.pods ? " A pod's injection value fits the nodes of one profile." : ""),
    table(["Profile", "Nodes", "Interfaces, by rail"], data.profiles.map((row) => [row.name, number(row.nodes), el("td", "", el("code", "", row.interfaces.join(", ")))])));
  const list = (id, title, items) => items.length ? section(id, title, "", el("ul", "", ...items.map((text) => el("li", "", text)))) : null;

  const tiles = el("ul", "tiles", ...data.tiles.map(([value, text]) => el("li", "", el("b", "", number(value)), el("span", "", text))));
  const notes = list("notes", "Notes on the plan", data.warnings);
  const causes = verdict && (verdict.causes.length || verdict.history.length) ? section("causes", verdict.causes.length ? "Causes" : "Changes", "",
    changes(), verdict.causes.length ? todo() : null, cards(verdict.causes, "bad"),
    verdict.more ? el("p", "note", number(verdict.more) + " more are in verdict.json.") : null) : null;
  const warnings = verdict && verdict.warnings.length ? section("warnings", "Warnings", "", cards(verdict.warnings, "warn")) : null;
  const split = el("div", causes ? "split" : "", causes, nodesSection());
  const plan = [tiles, notes, railsTable(), capacity(), profiles()];
  const all = verdict ? [split, warnings, skipped(), ...plan] : [tiles, notes, split, ...plan.slice(2)];
  main.append(el("header", "", el("h1", "", data.name), el("p", "sub", data.subtitle,
    ...verdict && verdict.digest ? [", plan ", el("code", "", verdict.digest.slice(0, 12))] : [])));
  if (verdict) main.append(banner());
  const nav = el("nav");
  main.append(nav, ...all.filter(Boolean), el("footer", "", "Made by railops.rdma from the plan" + (verdict ? " and the verdict" : "") +
    " beside this file. It loads nothing from a network."));
  for (const item of main.querySelectorAll("section[id]")) {
    nav.append(button(item.querySelector("h2").textContent, () => item.scrollIntoView()));
  }

  const fromHash = () => {
    const found = new URLSearchParams(location.hash.slice(1));
    if (found.has("q")) search.value = found.get("q");
    if (found.has("bad")) wrong.checked = Boolean(verdict);
    if (found.has("view")) view.value = found.get("view");
    if (!view.value) view.value = "node";
    apply();
  };
  search.addEventListener("input", () => {
    apply();
    const query = search.value.trim();
    history.replaceState(null, "", query ? "#q=" + encodeURIComponent(query) : location.pathname + location.search);
  });
  for (const item of [wrong, plain, view]) item.addEventListener("change", apply);
  let waiting = false;
  grid.addEventListener("scroll", () => {
    if (!virtual() || waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  });
  addEventListener("resize", () => { if (virtual()) draw(); });
  addEventListener("hashchange", fromHash);
  globalThis.railops = { nodes, csv };
  fromHash();
})();
