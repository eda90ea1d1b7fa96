//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use std::io;
use std::path::PathBuf;

use error_row::row;
use evictlab_rules::quantity::QuantityError;

use crate::expression::ExpressionError;
use crate::select::{LabelFilter, LabelFilterError, SelectError, Shard, ShardError};
use crate::{
    DeletionError, LineMark, LoadErrors, MultipleActionsError, NewCaseError, NewCaseNameError, Problem,
    Source, SourceSpan, ValueError,
};

fn text(text: &str) -> String {
    text.to_owned()
}

fn problems() -> LoadErrors {
    let file = text("cases/memory/web.yaml");
    let mark = Some(LineMark { line: 3, column: 1, text: text("abuot: a pod exceeds its request") });
    let misspelled = SourceSpan { file: file.clone(), mark, note: text("did you mean `about`?") };
    let missing = SourceSpan { file, mark: None, note: String::new() };
    LoadErrors(vec![
        Problem { message: text("unknown key `abuot`"), spans: vec![misspelled] },
        Problem { message: text("`about` is missing"), spans: vec![missing] },
    ])
}

fn values() -> Vec<String> {
    vec![
        row(ValueError::Name(text("Web_1"))),
        row(ValueError::Quantity(QuantityError::Empty)),
        row(ValueError::NoNumber(text("Mi"))),
        row(ValueError::ResizedRequest(text("allocateable"))),
        row(ValueError::Bound(text("~200Mi"))),
        row(ValueError::Duration { text: text("soon"), why: text("expected a number and a unit") }),
        row(ValueError::WholeSeconds(text("500ms"))),
        row(ValueError::Kubelet { text: text("newest"), why: text("unexpected character 'n'") }),
        row(ValueError::Pattern { text: text("("), why: text("unclosed group") }),
        row(ValueError::Upstream(text("#124938"))),
        row(DeletionError::Target),
        row(DeletionError::GracePeriod),
        row(MultipleActionsError { first: "evict", second: "delete" }),
    ]
}

fn files_and_expressions() -> Vec<String> {
    let path = || PathBuf::from("cases/memory/web.yaml");
    vec![
        row(problems()),
        row(NewCaseError::Exists(path())),
        row(NewCaseError::Write { path: path(), source: io::Error::from(io::ErrorKind::PermissionDenied) }),
        row(NewCaseNameError::NoSuite),
        row(NewCaseNameError::Name(ValueError::Name(text("Web_1")))),
        row(ExpressionError::Syntax { text: text("pods.web ="), why: text("unexpected end") }),
        row(ExpressionError::Unknown {
            kind: "variable",
            name: text("pod"),
            hint: Some(text("did you mean `pods`?")),
        }),
        row(ExpressionError::Unknown { kind: "function", name: text("f"), hint: None }),
        row(ExpressionError::Absent(text("pods.web.status.reason does not exist"))),
        row(ExpressionError::NoValue(text("division by zero"))),
        row(ExpressionError::TooCostly(text("its macros iterate more than 1000000 times"))),
        row(ExpressionError::TooLong { length: 3000, max: 1024 }),
    ]
}

fn selection() -> Vec<String> {
    let no_such_name = |nearest: Option<&str>| SelectError::NoSuchName {
        name: text("memry"),
        place: Source::BuiltIn(&[]).to_string(),
        suites: vec![text("memory"), text("disk")],
        nearest: nearest.map(text),
    };
    let no_focus = |nearest: Option<&str>| SelectError::NoFocusMatch {
        focus: vec![text("wbe"), text("dsik")],
        count: 40,
        nearest: nearest.map(text),
    };
    vec![
        row(SelectError::Load(problems())),
        row(no_such_name(Some("memory"))),
        row(no_such_name(None)),
        row(SelectError::NoLabelMatch {
            filter: text("slow && !slow"),
            count: 40,
            labels: vec![text("fast"), text("slow")],
        }),
        row(no_focus(Some("web"))),
        row(no_focus(None)),
        row(SelectError::AllSkipped { skip: vec![text("memory"), text("disk")], count: 40 }),
        row(SelectError::NoUpstreamMatch { upstream: vec![text("kubernetes/kubernetes#124938")], count: 40 }),
        row(SelectError::EmptyShard { shard: Shard { part: 3, of: 3 }, count: 2 }),
        row::<LabelFilterError>("slow && (".parse::<LabelFilter>().unwrap_err()),
        row::<ShardError>("third".parse::<Shard>().unwrap_err()),
        row::<ShardError>("4/3".parse::<Shard>().unwrap_err()),
        row::<ShardError>("1/0".parse::<Shard>().unwrap_err()),
    ]
}

#[test]
fn texts() {
    insta::assert_snapshot!([values(), files_and_expressions(), selection()].concat().concat());
}
