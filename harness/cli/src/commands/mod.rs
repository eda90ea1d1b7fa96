//! One file per subcommand, and the arguments that several share.

pub mod backend;
pub mod bench;
pub mod cluster;
pub mod completions;
pub mod doctor;
pub mod embedded;
pub mod existing;
pub mod explain;
pub mod gc;
pub mod image;
pub mod kubelets;
pub mod lint;
pub mod list;
pub mod man;
pub mod report;
pub mod run;
pub mod schema;
pub mod selection;
pub mod serve;
pub mod size;
pub mod words;
