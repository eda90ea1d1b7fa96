//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use std::io::{Error, ErrorKind};
use std::path::PathBuf;

use error_row::row;
use evictlab_case::{LineMark, Problem, SourceSpan};

use crate::profile::error::ProfileError;

#[test]
fn texts() {
    let text = |text: &str| text.to_owned();
    let unknown = |profiles: Option<&str>| ProfileError::Unknown {
        name: text("nightly"),
        file: text("evictlab.toml"),
        profiles: profiles.map(text),
    };
    let mark = Some(LineMark { line: 2, column: 1, text: text("kubelt = \"v1.36.2\"") });
    let place = SourceSpan { file: text("evictlab.toml"), mark, note: text("did you mean `kubelet`?") };
    let rows = [
        row(ProfileError::Read {
            path: PathBuf::from("evictlab.toml"),
            source: Error::from(ErrorKind::PermissionDenied),
        }),
        row(ProfileError::Invalid(Problem { message: text("unknown option `kubelt`"), spans: vec![place] })),
        row(unknown(Some("default, ci"))),
        row(unknown(None)),
        row(ProfileError::NoFile(text("nightly"))),
    ];
    insta::assert_snapshot!(rows.concat());
}
