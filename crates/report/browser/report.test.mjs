// The reports as a reader sees them: in Chromium, wide and narrow, light and dark, without errors,
// without network, readable for everybody. Screenshots stay in the folder of $ARTEFACTS.
//
// FLOWSTART is the program, CHROMIUM the browser (default: /usr/bin/chromium).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const program = process.env.FLOWSTART ?? "flowstart";
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const artefacts = process.env.ARTEFACTS ?? join(here, "artefacts");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const scenario = join(here, "../../../scenarios/fair-queuing.toml");

const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const LARGEST_REPORT = 500_000;

const folder = mkdtempSync(join(tmpdir(), "flowstart-browser-"));
const PAGES = {
  race: ["compare", "--out", "race"],
  runs: [
    "compare",
    "-C",
    "cubic,reno,paced_chirping+cubic",
    "--background",
    "cubic",
    "--runs",
    "3",
  ],
  scenario: ["run", scenario, "-o", "scenario.html"],
};
PAGES.runs.push("--size", "100kB", "-o", "runs.html", "--no-report");
const FILES = { race: "race/report.html", runs: "runs.html", scenario: "scenario.html" };

let browser;

before(async () => {
  mkdirSync(artefacts, { recursive: true });
  for (const words of Object.values(PAGES)) {
    execFileSync(program, words, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  }
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/** Opens a report; fails the test on errors, on messages, and on every request but for itself. */
const open = async (t, name, options = {}) => {
  const context = await browser.newContext({ viewport: WIDE, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const said = [];
  page.on("pageerror", (error) => said.push(`error: ${error.message}`));
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  const address = pathToFileURL(join(folder, FILES[name])).href;
  page.on("request", (request) => {
    const url = request.url();
    if (url !== address && !/^(data|blob):/.test(url)) said.push(`request: ${url}`);
  });
  await page.goto(address);
  t.after(async () => {
    await context.close();
    assert.deepEqual(said, []);
  });
  return page;
};

const shot = (page, name, fullPage = false) =>
  page.screenshot({ path: join(artefacts, `${name}.png`), fullPage });

for (const name of Object.keys(FILES)) {
  for (const [what, options] of [
    ["desktop", {}],
    ["phone", { viewport: PHONE, hasTouch: true, isMobile: true }],
    ["dark", { colorScheme: "dark" }],
  ]) {
    test(`${name} on ${what}: no error, nothing wider than the page, accessible`, async (t) => {
      const page = await open(t, name, options);
      await shot(page, `${name}-${what}`);
      await shot(page, `${name}-${what}-whole`, true);
      const overflow = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        return scrollWidth - clientWidth;
      });
      assert.ok(overflow <= 0, `${overflow} pixels wider than the screen`);
      // What is folded counts too. The page's policy forbids scripts from outside: evaluated.
      await page.evaluate(() => {
        for (const details of document.querySelectorAll("details")) details.open = true;
      });
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run());
      const violations = found.violations.map(({ id, help, nodes }) => {
        return `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`;
      });
      assert.deepEqual(violations, []);
    });
  }
}

test("a report is small enough to send", () => {
  const size = statSync(join(folder, FILES.race)).size;
  assert.ok(size <= LARGEST_REPORT, `${size} bytes`);
});

test("the first screen says who was fastest, shows the picture and the delay below it", async (t) => {
  const page = await open(t, "race");
  const order = [".answer", ".lead svg", ".joined svg", ".summary"];
  const tops = [];
  for (const what of order) tops.push((await page.locator(what).first().boundingBox()).y);
  assert.deepEqual(
    tops,
    [...tops].sort((a, b) => a - b),
    order.join(),
  );
  assert.ok(tops[0] < 200, `the answer stands at ${tops[0]} pixels`);
  assert.ok(tops[3] < WIDE.height, `the verdict begins at ${tops[3]} pixels`);
  assert.match(await page.locator(".answer").textContent(), /^Fastest: .* MB in .*delay/);
  const verdict = (await page.locator(".summary").textContent()).trim();
  assert.match(verdict, /^Fastest: /);
  assert.match(verdict, /Its cost: /);
});

test("links are grey: no flow's colour is theirs", async (t) => {
  const page = await open(t, "scenario");
  const colors = (figure) =>
    page
      .locator("figure")
      .nth(figure)
      .locator("button.entry > :first-child")
      .evaluateAll((marks) => marks.map((mark) => getComputedStyle(mark).color));
  const [flows, links] = [await colors(0), await colors(1)];
  assert.ok(flows.length > 0 && links.length > 0, "both have a legend");
  assert.ok(
    links.every((color) => !flows.includes(color)),
    `${links} ${flows}`,
  );
});

test("text in figures is readable on a phone", async (t) => {
  const page = await open(t, "race", { viewport: PHONE, isMobile: true });
  const smallest = await page.evaluate(() => {
    const heights = [...document.querySelectorAll(".live text")].map((text) => {
      const svg = text.ownerSVGElement;
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      return Number.parseFloat(getComputedStyle(text).fontSize) * scale;
    });
    return Math.min(...heights);
  });
  assert.ok(smallest >= 11.5, `${smallest} pixels`);
});

test("dragging zooms all figures over the same axis, and the button goes back", async (t) => {
  const page = await open(t, "race");
  const labels = (figure) => page.locator("figure").nth(figure).locator("text").allInnerTexts();
  const before = [await labels(0), await labels(1)];
  const drawing = page.locator(".drawing").first();
  const box = await drawing.boundingBox();
  await page.mouse.move(box.x + 200, box.y + 120);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 130, { steps: 4 });
  await page.mouse.up();
  assert.notDeepEqual(await labels(0), before[0]);
  assert.notDeepEqual(await labels(1), before[1], "the one below is zoomed too");
  await page.locator("figure").nth(0).getByRole("button", { name: "first" }).click();
  assert.deepEqual([await labels(0), await labels(1)], before);
  await drawing.focus();
  await page.keyboard.press("+");
  assert.notDeepEqual(await labels(0), before[0]);
  await page.keyboard.press("0");
  assert.deepEqual(await labels(0), before[0]);
});

test("two fingers one above the other zoom to what can be read", async (t) => {
  const page = await open(t, "race");
  const drawing = page.locator(".drawing").first();
  const box = await drawing.boundingBox();
  const touch = (kind, pointerId, x, y) =>
    drawing.dispatchEvent(kind, {
      pointerId,
      pointerType: "touch",
      button: 0,
      clientX: box.x + x,
      clientY: box.y + y,
    });
  await touch("pointerdown", 1, 200, 100);
  await touch("pointerdown", 2, 400, 160);
  await touch("pointermove", 2, 200, 160);
  const labels = await page.locator("figure").first().locator("text").allInnerTexts();
  assert.doesNotMatch(labels.join(" "), /NaN|Infinity/);
  assert.ok((await page.locator("figure").first().locator("text").count()) > 10);
});

test("pointing shows every curve's value, in round trips and in seconds", async (t) => {
  const page = await open(t, "race");
  const box = await page.locator(".drawing").first().boundingBox();
  await page.mouse.move(box.x + 300, box.y + 150);
  const readout = await page.locator(".readout").textContent();
  assert.match(readout, /RTT = [0-9.]+ s/);
  assert.match(readout, /hystart\+cubic/);
});

test("a click on a name hides it everywhere", async (t) => {
  const page = await open(t, "race");
  const curves = () => page.locator('g.series[data-name="hystart+cubic"]').count();
  const shown = await curves();
  const entry = page.locator('button.entry[data-name="hystart+cubic"]').first();
  await entry.click();
  assert.equal(await curves(), 0);
  assert.equal(await entry.getAttribute("aria-pressed"), "false");
  await entry.click();
  assert.equal(await curves(), shown);
});

test("figures are saved as CSV, SVG and PNG", async (t) => {
  const page = await open(t, "race");
  const saved = async (name) => {
    const waiting = page.waitForEvent("download");
    await page.locator("figure").first().getByRole("button", { name, exact: false }).click();
    const download = await waiting;
    const path = join(artefacts, download.suggestedFilename());
    await download.saveAs(path);
    return readFileSync(path);
  };
  const csv = (await saved("as CSV")).toString().split("\n");
  assert.match(csv[0], /^series,.*_rtt,.*_s,.*_mb$/);
  assert.ok(csv.length > 1000);
  assert.match((await saved("as SVG")).toString(), /^<svg[^>]*>/);
  const png = await saved("as PNG");
  assert.deepEqual(
    [...png.subarray(1, 4)],
    [..."PNG"].map((letter) => letter.charCodeAt(0)),
  );
});

test("a click on a heading sorts the table", async (t) => {
  const page = await open(t, "race");
  const table = page.locator(".table table").first();
  const column = () => table.locator("tbody tr > :nth-child(2)").allInnerTexts();
  await table.locator("thead th").nth(1).getByRole("button").click();
  const up = await column();
  await table.locator("thead th").nth(1).getByRole("button").click();
  const down = await column();
  assert.notDeepEqual(up, down);
});

test("of several runs the median is drawn within a band", async (t) => {
  const page = await open(t, "runs");
  assert.ok((await page.locator(".lead path.band").count()) >= 3);
  assert.match(await page.locator("figcaption").first().textContent(), /Median of 3 runs/);
});

test("without a script there are still pictures and tables", async (t) => {
  const page = await open(t, "race", { javaScriptEnabled: false });
  await shot(page, "race-without-script");
  assert.ok(await page.locator("figure svg.figure").first().isVisible());
  assert.ok(await page.locator("table").first().isVisible());
});
