//! The HTML pages in headless Chromium. Skipped without Chromium.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

/// Names of the program.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A script that measures its page: by how many pixels it is wider than its frame, and texts with
/// too little contrast (WCAG 2.2, 1.4.3: 4.5, large ones 3), with their colors.
const PROBE: &str = r"(() => {
  const root = document.documentElement;
  const scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const parse = color => (color.match(/[\d.]+/g) || []).map(Number);
  const luminance = rgb => rgb.slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const background = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return scheme === 'dark' ? [18, 18, 18] : [255, 255, 255];
  };
  document.querySelectorAll('details').forEach(details => { details.open = true; });
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const element = node.parentElement, style = getComputedStyle(element);
    const isShown = element.getClientRects().length && style.visibility === 'visible';
    if (!node.data.trim() || !isShown || element.closest('script, style, .skip')) continue;
    const own = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const [one, other] = [luminance(parse(own)), luminance(background(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    if (contrast < (isLarge ? 3 : 4.5))
      faint.add(`${node.data.trim().slice(0, 40)}: ${own} on ${background(element)}, ${contrast.toFixed(2)}`);
  }
  const search = document.getElementById('search'), items = [...document.querySelectorAll('.item')];
  const found = {};
  if (search) {
    for (const words of ['', 'sidecars', 'no such case']) {
      search.value = words;
      search.dispatchEvent(new Event('input'));
      found[words] = items.filter(item => !item.hidden).length;
    }
  }
  const unnamed = [...document.querySelectorAll('input, svg[role=img], a')].filter(element =>
    !(element.textContent.trim() || element.getAttribute('aria-label') || element.labels?.length)).length;
  const right = element => element.getBoundingClientRect().right;
  const cut = [...document.querySelectorAll('article a')].filter(link => right(link) > right(link.closest('article'))).length;
  parent.postMessage({scheme, cut, tooWide: root.scrollWidth - root.clientWidth, faint: [...faint], found, unnamed}, '*');
})()";

/// Collects what the pages in frames report, by the name of the frame.
const COLLECT: &str = "const reports = {};
addEventListener('message', event => {
  const frame = [...document.querySelectorAll('iframe')].find(frame => frame.contentWindow === event.source);
  reports[frame.name] = event.data;
  document.getElementById('out').textContent = JSON.stringify(reports);
});";

/// Widths of the window of a laptop and of a telephone, in pixels.
const WIDTHS: [u32; 2] = [1400, 420];

fn browser() -> Option<PathBuf> {
    let dirs: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    PROGRAMS.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name))).find(|path| path.is_file())
}

/// Returns the document after its scripts have run, and what the browser wrote to its log.
fn load(browser: &Path, profile: &Path, page: &Path, options: &[&str]) -> (String, String) {
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--enable-logging=stderr",
    ]);
    command.args(["--window-size=1500,1000", "--virtual-time-budget=10000", "--dump-dom"]).args(options);
    command.arg(format!("--user-data-dir={}", profile.display()));
    let output = command.arg(format!("file://{}", page.display())).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (document, log) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success() && document.contains("</html>"), "{log}");
    (document, log)
}

/// Lets pages report about themselves in frames of all widths; the keys are `PAGE at WIDTH`.
fn probe(browser: &Path, dir: &Path, pages: &[(&str, String)], scheme: &str) -> Map<String, Value> {
    let mut frames = String::new();
    for (name, page) in pages {
        // The policy of a page allows no script but its own.
        let open = page.replacen("Content-Security-Policy", "Removed-Policy", 1);
        fs::write(dir.join(format!("{name}-probed.html")), open + "<script>" + PROBE + "</script>").unwrap();
        for width in WIDTHS {
            frames += &format!(
                "<iframe name='{name} at {width}' src='{name}-probed.html' style='width:{width}px;height:900px;border:0'></iframe>"
            );
        }
    }
    let frame = format!("<!doctype html><pre id='out'></pre><script>{COLLECT}</script>{frames}");
    fs::write(dir.join("frames.html"), frame).unwrap();
    let (document, log) = load(browser, &dir.join("profile"), &dir.join("frames.html"), &[scheme]);
    let report = document.split("<pre id=\"out\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let report = report.unwrap_or_default().replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
    serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report:?}\n{log}"))
}

/// Pages of every kind, with their names.
fn pages(dir: &Path) -> Vec<(&'static str, String)> {
    let evictlab = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        let output = command.current_dir(dir).env_remove("EVICTLAB_CASES").args(arguments).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {output:?}");
    };
    let kubelets = ["--kubelet", "v1.31", "--kubelet", "v1.32"];
    evictlab(&[&["run", "message", "--output-dir", "one"][..], &kubelets].concat());
    let broken = ["--defect", "message-omits-sidecars"];
    evictlab(&[&["run", "sidecars-are-named", "--output-dir", "other"][..], &kubelets, &broken].concat());
    evictlab(&["report", "one", "--output", "report.html"]);
    evictlab(&["report", "--compare", "one", "other", "--output", "comparison.html"]);
    evictlab(&["history", "one", "other", "--output", "history.html"]);
    let mutants = ["--case", "ephemeral-resources-are-refused", "--output-dir", "mutants"];
    evictlab(&[&["mutants", "run"][..], &mutants].concat());
    let files = [
        ("report", "report.html"),
        ("comparison", "comparison.html"),
        ("history", "history.html"),
        ("mutants", "mutants/mutants.html"),
    ];
    files.map(|(name, file)| (name, fs::read_to_string(dir.join(file)).unwrap())).to_vec()
}

#[test]
fn pages_are_readable_in_a_browser() {
    let Some(browser) = browser() else {
        eprintln!("skipped: none of these programs exists: {}", PROGRAMS.join(", "));
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pages = pages(dir.path());
    for (name, page) in &pages {
        let file = dir.path().join(format!("{name}.html"));
        fs::write(&file, page).unwrap();
        let (document, log) = load(&browser, &dir.path().join("profile"), &file, &[]);
        assert!(!log.contains("CONSOLE"), "{name}: {log}");
        // The script runs under the policy of the page.
        let field = document.split("<form").nth(1).and_then(|rest| rest.split('>').next());
        assert!(field.is_none_or(|field| !field.contains("hidden")), "{name}: {field:?}");
    }
    for (scheme, option) in [("light", 1), ("dark", 0)] {
        let option = format!("--blink-settings=preferredColorScheme={option}");
        let reports = probe(&browser, dir.path(), &pages, &option);
        assert_eq!(reports.len(), pages.len() * WIDTHS.len(), "{reports:?}");
        for (name, report) in &reports {
            assert_eq!(report["scheme"], scheme, "{name}");
            assert_eq!(report["tooWide"], 0, "{name} px, {scheme}");
            assert_eq!(report["faint"], json!([]), "{name} px, {scheme}");
            assert_eq!(report["cut"], 0, "{name} px, {scheme}");
            assert_eq!(report["unnamed"], 0, "{name} px, {scheme}");
        }
        let found = |words: &str| reports["report at 1400"]["found"][words].as_u64().unwrap();
        assert!(found("sidecars") > 0 && found("sidecars") < found(""), "{reports:?}");
        assert_eq!(found("no such case"), 0);
    }
}
