//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use error_row::row;
use serde_json::json;

use crate::{EvidenceSource, Recorded, yaml_documents};

#[test]
fn texts() {
    let rows = [
        row("logs/web".parse::<EvidenceSource>().unwrap_err()),
        row(Recorded::<Vec<u8>>::decode(json!([1, "two"])).unwrap_err()),
        row(yaml_documents("kind: [Pod").unwrap_err()),
    ];
    insta::assert_snapshot!(rows.concat());
}
