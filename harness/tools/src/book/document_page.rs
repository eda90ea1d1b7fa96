//! The pages of documents in JSON or YAML.

use std::fmt::Write;

use evictlab_report::text::{code_block, markdown_cell, markdown_table};

use crate::documents::{DOCUMENTS, Document, FORMAT_VERSION, Key, Section, sections};

/// Path of the page of a document.
pub(super) fn document_path(document: &Document) -> String {
    format!("reference/documents/{}.md", document.name)
}

/// The list of documents.
pub(super) fn documents_page() -> String {
    let about = format!(
        "# Documents in JSON and YAML\n\nEvery document that evictlab writes or reads, with all of \
        its keys. `evictlab schema NAME` prints its JSON Schema.\n\n\
        The documents have format {FORMAT_VERSION}, as the `$comment` of the schemas says; the changelog lists the keys \
        that a new format renames or removes. Later versions may add keys. The first event in `events.jsonl` has the version of evictlab \
        (`evictlab`), and so has `started.json` (`metadata.evictlab`); other documents have no version. Objects of Kubernetes are as the API server returned them, \
        without `managedFields`; Kubernetes documents their keys."
    );
    let rows = DOCUMENTS.iter().map(|document| {
        let Document { name, about, place, .. } = document;
        [format!("[{name}]({name}.md)"), (*about).to_owned(), (*place).to_owned()]
    });
    format!("{about}\n\n{}", markdown_table(&["document", "content", "place"], rows))
}

/// The page of a document.
pub(super) fn document_page(document: &Document) -> String {
    let Document { name, about, place, .. } = document;
    let mut text = format!(
        "# {name}\n\n{about}: {place}.\n\n{}\n\n`[]` stands for each item of a list, `*` for each key of a map.\n",
        code_block("sh", &format!("evictlab schema {name}"))
    );
    for section in sections(&document.schema()) {
        text.push_str(&section_text(&section));
    }
    text
}

fn section_text(section: &Section) -> String {
    let mut text = String::new();
    if let Some(heading) = &section.heading {
        let _ = write!(text, "\n## {heading}\n");
    }
    if !section.about.is_empty() {
        let _ = write!(text, "\n{}\n", section.about);
    }
    if section.keys.is_empty() {
        return text;
    }
    let rows = section.keys.iter().map(|key| {
        let presence = if key.required { "yes" } else { "no" };
        [format!("`{}`", key.path), key.form.clone(), presence.to_owned(), meaning(key)]
    });
    text + "\n" + &markdown_table(&["key", "type", "required", "meaning"], rows)
}

/// The meaning of a key and of its values.
fn meaning(key: &Key) -> String {
    let mut parts = vec![markdown_cell(&key.about)];
    if key.values.iter().all(|(_, about)| about.is_empty()) {
        let values: Vec<String> = key.values.iter().map(|(value, _)| format!("`{value}`")).collect();
        parts.push(markdown_cell(&values.join(", ")));
    } else {
        parts.extend(key.values.iter().map(|(value, about)| markdown_cell(&format!("`{value}`: {about}"))));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("<br>")
}
