//! An account as HTML.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};
use regex::Regex;

/// A link that stands for itself, as GitHub takes it.
static BARE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"https://[^\s,<>]*[\w/]").ok());

/// What was written for an issue. Markup in it is text: it may be a pod's.
pub(super) fn rendered(account: &str) -> Markup {
    let plain = |event| match event {
        Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => linked(text),
        other => vec![other],
    };
    let mut page = String::new();
    html::push_html(&mut page, Parser::new_ext(account, Options::ENABLE_TABLES).flat_map(plain));
    PreEscaped(page)
}

fn linked(text: CowStr<'_>) -> Vec<Event<'_>> {
    let piece = |text: &str| Event::Text(text.to_owned().into());
    let (mut events, mut told) = (Vec::new(), 0);
    for found in BARE.iter().flat_map(|bare| bare.find_iter(&text)) {
        let url: CowStr<'_> = found.as_str().to_owned().into();
        let (link_type, title, id) = (LinkType::Autolink, CowStr::from(""), CowStr::from(""));
        events.push(piece(&text[told..found.start()]));
        events.push(Event::Start(Tag::Link { link_type, dest_url: url.clone(), title, id }));
        events.extend([Event::Text(url), Event::End(TagEnd::Link)]);
        told = found.end();
    }
    if told == 0 {
        return vec![Event::Text(text)];
    }
    events.push(piece(&text[told..]));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_of_others_gets_in() {
        let page = rendered("seen <script>alert(1)</script>, `<b>`\n\n<img src=x>").into_string();
        assert!(page.contains("&lt;script&gt;") && page.contains("<code>&lt;b&gt;</code>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    }

    #[test]
    fn links_are_links() {
        let page = rendered("Upstream: https://a.example/1, https://a.example/2.\n\n`https://c.example`")
            .into_string();
        assert!(page.contains("<a href=\"https://a.example/1\">https://a.example/1</a>, <a href"), "{page}");
        assert!(
            page.contains("https://a.example/2</a>.") && page.contains("<code>https://c.example</code>"),
            "{page}"
        );
    }
}
