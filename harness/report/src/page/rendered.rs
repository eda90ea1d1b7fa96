//! Markdown as HTML.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};
use regex::Regex;

/// A bare URL, which GitHub renders as a link.
static BARE_URL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"https://[^\s,<>]*[\w/]").expect("the pattern is valid"));

const WIDE: &str = "<div class=\"wide\" role=\"region\" aria-label=\"Table\" tabindex=\"0\">";

/// Renders Markdown. HTML in it is escaped, only `https:` and anchors are links, and images are
/// left out: the text may come from a pod.
pub(super) fn render(markdown: &str) -> Markup {
    let mut in_diff = false;
    let mut escape = |event| match event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(ref language))) if &**language == "diff" => {
            in_diff = true;
            vec![event]
        }
        Event::End(TagEnd::CodeBlock) if in_diff => {
            in_diff = false;
            vec![event]
        }
        Event::Text(text) if in_diff => vec![Event::Html(diff_lines(&text).into_string().into())],
        Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => link_urls(text),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => vec![],
        Event::Start(Tag::Link { dest_url, .. }) if !is_safe(&dest_url) => {
            vec![Event::Start(unlinked())]
        }
        // A wide table scrolls, and not the page.
        Event::Start(Tag::Table(_)) => vec![Event::Html(WIDE.into()), event],
        Event::End(TagEnd::Table) => vec![event, Event::Html("</div>\n".into())],
        other => vec![other],
    };
    let mut page = String::new();
    html::push_html(&mut page, Parser::new_ext(markdown, Options::ENABLE_TABLES).flat_map(&mut escape));
    PreEscaped(page)
}

/// Marks added and removed lines of a diff. Their first characters remain for readers without
/// colors.
fn diff_lines(text: &str) -> Markup {
    maud::html! {
        @for line in text.lines() {
            @match line.chars().next() {
                Some('+') => ins { (line) },
                Some('-') => del { (line) },
                _ => { (line) "\n" },
            }
        }
    }
}

fn is_safe(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with('#')
}

/// A link to nowhere, in place of an unsafe one, whose end follows.
fn unlinked() -> Tag<'static> {
    Tag::Link { link_type: LinkType::Inline, dest_url: "#".into(), title: "".into(), id: "".into() }
}

fn link_urls(text: CowStr<'_>) -> Vec<Event<'_>> {
    let piece = |text: &str| Event::Text(text.to_owned().into());
    let (mut events, mut done) = (Vec::new(), 0);
    for found in BARE_URL.find_iter(&text) {
        let url: CowStr<'_> = found.as_str().to_owned().into();
        let (link_type, title, id) = (LinkType::Autolink, CowStr::from(""), CowStr::from(""));
        events.push(piece(&text[done..found.start()]));
        events.push(Event::Start(Tag::Link { link_type, dest_url: url.clone(), title, id }));
        events.extend([Event::Text(url), Event::End(TagEnd::Link)]);
        done = found.end();
    }
    if done == 0 {
        return vec![Event::Text(text)];
    }
    events.push(piece(&text[done..]));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_html() {
        let page = render("seen <script>alert(1)</script>, `<b>`\n\n<img src=x>").into_string();
        assert!(page.contains("&lt;script&gt;") && page.contains("<code>&lt;b&gt;</code>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    }

    #[test]
    fn only_https_is_a_link_and_nothing_is_loaded() {
        let page = render(
            "[a](javascript:alert(1)) [b](data:text/html,x) ![c](https://e.example/c.png) [d](https://ok.example/)\n\n<javascript:alert(2)>\n\n[e]\n\n[e]: vbscript:x",
        )
        .into_string();
        for forbidden in ["href=\"javascript", "href=\"data", "href=\"vbscript", "<img", "src="] {
            assert!(!page.contains(forbidden), "{forbidden}: {page}");
        }
        assert!(page.contains("href=\"https://ok.example/\"") && page.contains(">a</a>"), "{page}");
    }

    #[test]
    fn lines_of_a_diff_are_marked_and_escaped() {
        let page = render("```diff\n a\n-<b>\n+c\n```\n\n```text\n-d\n```\n").into_string();
        assert!(page.contains(" a\n<del>-&lt;b&gt;</del><ins>+c</ins>"), "{page}");
        assert!(page.contains(">-d\n<") && !page.contains("<b>"), "{page}");
    }

    #[test]
    fn tables_scroll() {
        let page = render("| a | b |\n|---|---|\n| <i> | d |\n\nend").into_string();
        assert!(page.starts_with("<div class=\"wide\"") && page.contains("tabindex=\"0\"><table>"), "{page}");
        assert!(page.contains("</table>\n</div>\n<p>end") && page.contains("&lt;i&gt;"), "{page}");
    }

    #[test]
    fn links_bare_urls() {
        let page = render("Upstream: https://a.example/1, https://a.example/2.\n\n`https://c.example`")
            .into_string();
        assert!(page.contains("<a href=\"https://a.example/1\">https://a.example/1</a>, <a href"), "{page}");
        assert!(
            page.contains("https://a.example/2</a>.") && page.contains("<code>https://c.example</code>"),
            "{page}"
        );
    }
}
