//! One file per subcommand.

pub mod lint;
pub mod list;
pub mod schema;
pub mod selection;
