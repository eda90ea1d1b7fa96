//! The document around every page: style sheets, the script of the search, and the policy that
//! allows nothing else.

use std::sync::LazyLock;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::rendered::render;

/// No script but [`SCRIPT`], by its hash, and nothing from elsewhere, whatever the evidence
/// contains.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-HASH'; base-uri 'none'; form-action 'none'";

/// The SHA-256 sum of [`SCRIPT`] in base64.
const SCRIPT_HASH: &str = "/EQHCbZvWqVKLzcAMXri113XgJPxeoYSxSKGANcZJzw=";

/// Searches the elements of class `item`, and opens the case that a link leads to. Pages are
/// complete without it.
pub(crate) const SCRIPT: &str = include_str!("script.js");

const STYLE: &str = include_str!("style.css");

/// The policy of every page.
static POLICY: LazyLock<String> = LazyLock::new(|| CONTENT_SECURITY_POLICY.replace("HASH", SCRIPT_HASH));

/// Renders a self-contained HTML document from its title, additional style sheets and body.
pub fn html_document(title: &str, styles: &[&str], body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(*POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) @for style in styles { (PreEscaped(style)) } }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    document.into_string()
}

/// Renders a document in Markdown as a page. Its texts may come from a cluster.
pub fn markdown_page(title: &str, markdown: &str) -> String {
    html_document(title, &[], &html! { main #main { (render(markdown)) } })
}

/// The field that searches the elements of class `item`; hidden without scripts. `what` is their
/// noun.
pub fn search_field(what: &str) -> Markup {
    html! {
        form.filters.search role="search" hidden {
            label for="search" { "Search " (what) }
            input #search type="search" autocomplete="off";
            span #found role="status" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn policy_allows_only_this_script() {
        let hash = ring::digest::digest(&ring::digest::SHA256, SCRIPT.as_bytes());
        assert_eq!(SCRIPT_HASH, STANDARD.encode(hash), "the script changed: update its hash");
        let page = markdown_page("title", "text");
        assert!(page.contains(&format!("script-src 'sha256-{SCRIPT_HASH}';")), "{page}");
        assert_eq!(page.matches("<script").count(), 1);
    }
}
